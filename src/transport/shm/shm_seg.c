/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/shm/shm_seg.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "transport/shm/memfd.h"
#include "transport/shm/shm_room.h"
#include "util/error.h"
#include "util/fault.h"
#include "util/fd.h"
#include "util/fork.h"

#define PAGE  4096u
#define GRAIN TTI_SHM_GRAIN
#define MAGIC UINT64_C(0x3430676573697474)

#define RING_BYTES (TTI_SHM_RING * sizeof(struct tti_shm_entry))

struct header {
	uint64_t magic, total_bytes;
	_Alignas(128) _Atomic uint32_t pairs; /* regions handed out */
	struct tti_shm_agreement agreement;
};

_Static_assert(sizeof(struct tti_shm_entry) == 64, "an entry is a cache line");
_Static_assert(sizeof(struct tti_shm_pair) % PAGE == 0, "buffers follow on a page of their own");
_Static_assert(sizeof(struct header) <= PAGE, "doorbells follow on the next page");

static size_t round_up(size_t nbytes, size_t unit)
{
	return (nbytes + unit - 1) / unit * unit;
}

tutti_status tti_shm_layout_init(struct tti_shm_layout *out, int n, size_t slot_bytes, int slots)
{
	const size_t count = (size_t)n;
	size_t buffer, table, broadcasts, pairs, pair;
	bool over = n < 1 || slots < 1 || slots > TTI_SHM_SLOTS || slot_bytes < 1 ||
		    slot_bytes > TTI_SHM_LONGEST;

	memset(out, 0, sizeof(*out));
	out->n = n;
	out->slots = slots;
	out->slot_bytes = slot_bytes;
	buffer = over ? 0 : tti_shm_room_bytes(slot_bytes, slots, n);
	over = over || __builtin_mul_overflow(count * sizeof(uint32_t), count, &table);
	over = over || __builtin_mul_overflow(buffer, count, &broadcasts);
	over = over || __builtin_mul_overflow(buffer, (size_t)2, &pair);
	over = over || __builtin_mul_overflow(round_up(pair + sizeof(struct tti_shm_pair), GRAIN),
					      count * count, &pairs);
	if (over || count * count >= UINT32_MAX || broadcasts > SIZE_MAX / 4 ||
	    pairs > SIZE_MAX / 4)
		return tti_fail_quiet(
			TUTTI_EINVAL,
			"shared memory for %d ranks of a host with %d slots of %zu bytes: "
			"more than a file can hold, lower TUTTI_SHM_SLOT or TUTTI_SHM_SLOTS",
			n, slots, slot_bytes);
	out->bounce_bytes = buffer;
	out->doorbells_at = PAGE;
	out->trials_at = out->doorbells_at + count * sizeof(struct tti_shm_doorbell);
	out->table_at = round_up(out->trials_at + count * sizeof(struct tti_shm_trial), PAGE);
	out->rings_at = round_up(out->table_at + table, PAGE);
	out->broadcast_at = round_up(out->rings_at + count * RING_BYTES, PAGE);
	out->control_bytes = round_up(out->broadcast_at + broadcasts, GRAIN);
	out->pair_bytes = round_up(sizeof(struct tti_shm_pair) + pair, GRAIN);
	/* Two ranks that look at the same time take two regions for one pair. */
	out->most_pairs = (uint32_t)(count * count);
	out->total_bytes = out->control_bytes + pairs;
	return TUTTI_OK;
}

tutti_status tti_shm_seg_map(const struct tti_shm_seg *seg, uint64_t at, size_t nbytes, void **out)
{
	void *const base = tti_fault("shm.mmap") ? (errno = ENOMEM, MAP_FAILED)
						 : mmap(NULL, nbytes, PROT_READ | PROT_WRITE,
							MAP_SHARED, seg->fd, (off_t)at);

	if (base == MAP_FAILED)
		return tti_fail_quiet(
			TUTTI_ESYS,
			"mmap of %zu bytes of shared memory: %m (see vm.max_map_count and "
			"ulimit -v; TUTTI_SHM_SLOT and TUTTI_SHM_SLOTS make it smaller)",
			nbytes);
	/* A child that lives longer than this process would keep all of the file. */
	(void)madvise(base, nbytes, MADV_DONTFORK);
	*out = base;
	return TUTTI_OK;
}

static tutti_status map_control(struct tti_shm_seg *seg)
{
	void *base = NULL;

	TTI_TRY(tti_shm_seg_map(seg, 0, seg->layout.control_bytes, &base));
	seg->base = base;
	return TUTTI_OK;
}

tutti_status tti_shm_seg_create(struct tti_shm_seg *seg)
{
	const uint64_t total = seg->layout.total_bytes;
	struct header *header;
	tutti_status st;

	seg->fd = -1;
	TTI_TRY(tti_memfd_create("tutti", total, &seg->fd));
	tti_fork_close(seg->fd);
	st = map_control(seg);
	if (st != TUTTI_OK)
		goto fail;
	header = (struct header *)seg->base;
	header->magic = MAGIC;
	header->total_bytes = total;
	return TUTTI_OK;

fail:
	tti_shm_seg_release(seg);
	return st;
}

tutti_status tti_shm_seg_adopt(struct tti_shm_seg *seg, int fd)
{
	const uint64_t total = seg->layout.total_bytes;
	const struct header *header;
	tutti_status st;

	seg->fd = tti_fork_close(fd);
	st = tti_memfd_check(fd, total);
	if (st != TUTTI_OK)
		goto fail;
	st = map_control(seg);
	if (st != TUTTI_OK)
		goto fail;
	header = (const struct header *)seg->base;
	if (header->magic != MAGIC || header->total_bytes != total) {
		st = tti_fail_quiet(TUTTI_EPROTO, "the shared memory offered has another layout");
		goto fail;
	}
	return TUTTI_OK;

fail:
	tti_shm_seg_release(seg);
	return st;
}

void tti_shm_seg_release(struct tti_shm_seg *seg)
{
	if (seg->base)
		munmap(seg->base, seg->layout.control_bytes);
	seg->base = NULL;
	tti_fd_close(&seg->fd);
}

struct tti_shm_doorbell *tti_shm_seg_doorbell(const struct tti_shm_seg *seg, int index)
{
	return (struct tti_shm_doorbell *)(seg->base + seg->layout.doorbells_at) + index;
}

struct tti_shm_agreement *tti_shm_seg_agreement(const struct tti_shm_seg *seg)
{
	return &((struct header *)seg->base)->agreement;
}

struct tti_shm_trial *tti_shm_seg_trial(const struct tti_shm_seg *seg, int index)
{
	return (struct tti_shm_trial *)(seg->base + seg->layout.trials_at) + index;
}

struct tti_shm_entry *tti_shm_seg_ring(const struct tti_shm_seg *seg, int index)
{
	return (struct tti_shm_entry *)(seg->base + seg->layout.rings_at +
					(size_t)index * RING_BYTES);
}

uint8_t *tti_shm_seg_broadcast(const struct tti_shm_seg *seg, int index)
{
	return seg->base + seg->layout.broadcast_at + (size_t)index * seg->layout.bounce_bytes;
}

/* Which region two ranks use, counted from 1; most_pairs + 1 or more is nonsense. */
static uint32_t find_pair(const struct tti_shm_seg *seg, int lo, int hi)
{
	_Atomic uint32_t *const table = (_Atomic uint32_t *)(seg->base + seg->layout.table_at);
	_Atomic uint32_t *const entry = &table[(size_t)lo * (size_t)seg->layout.n + (size_t)hi];
	uint32_t seen = atomic_load_explicit(entry, memory_order_acquire);
	uint32_t mine;

	if (seen)
		return seen;
	mine = 1 + atomic_fetch_add(&((struct header *)seg->base)->pairs, 1);
	return atomic_compare_exchange_strong(entry, &seen, mine) ? mine : seen;
}

tutti_status tti_shm_pair_map(const struct tti_shm_seg *seg, int a, int b,
			      struct tti_shm_pair **out)
{
	const struct tti_shm_layout *const layout = &seg->layout;
	const uint32_t number = find_pair(seg, a < b ? a : b, a < b ? b : a);
	void *base = NULL;

	if (!number || number > layout->most_pairs)
		return tti_fail_quiet(TUTTI_EPROTO, "region %u of shared memory, there are %u",
				      (unsigned)number, (unsigned)layout->most_pairs);
	TTI_TRY(tti_shm_seg_map(seg,
				layout->control_bytes + (uint64_t)(number - 1) * layout->pair_bytes,
				layout->pair_bytes, &base));
	*out = base;
	return TUTTI_OK;
}

void tti_shm_pair_unmap(const struct tti_shm_seg *seg, struct tti_shm_pair *pair)
{
	if (pair)
		munmap(pair, seg->layout.pair_bytes);
}
