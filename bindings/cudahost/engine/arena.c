/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/arena.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include "engine/device.h"
#include "engine/reach.h"

/* Memory of this size begins at a multiple of it, so that huge pages can be used. */
#define HUGE_BYTES ((size_t)2 << 20)

struct arena {
	bool exists;
	struct tti_cuda_file file;
	struct tti_cuda_view view;
	struct tti_cuda_heap heap;
	size_t used; /* of the file or claimed; also without a file */
};

static struct arena arenas[TTI_CUDA_DEVICES_MOST];

static size_t total_of(void)
{
	return tti_cuda_device_bytes() / tti_cuda_file_page() * tti_cuda_file_page();
}

/* What is exported, a number for each page. */
static size_t table_of(size_t nbytes)
{
	const size_t page = tti_cuda_file_page();

	return tti_cuda_file_round(nbytes / page * sizeof(uint64_t));
}

static int make(struct arena *self, int device)
{
	const size_t total = total_of();
	const size_t table = table_of(total);
	int error = tti_cuda_file_create(TTI_CUDA_FILE_DEVICE, device, total, table, &self->file);

	if (error)
		return error;
	error = tti_cuda_view_map(&self->file, 0, total + table, HUGE_BYTES, &self->view);
	if (error) {
		tti_cuda_file_close(&self->file);
		return error;
	}
	error = tti_cuda_reach_add(&(struct tti_cuda_reach_range){
		.address = self->view.address,
		.nbytes = total,
		.reach = self->view.reach,
		.owner = device,
		.is_plain = true,
	});
	if (error) {
		tti_cuda_view_release(&self->view);
		tti_cuda_file_close(&self->file);
		return error;
	}
	if (!tti_cuda_heap_init(&self->heap, total)) {
		tti_cuda_reach_remove(self->view.address);
		tti_cuda_view_release(&self->view);
		tti_cuda_file_close(&self->file);
		return tti_cuda_fail(TTI_CUDA_ENOMEM, "device %d: this host is out of memory",
				     device);
	}
	self->exists = true;
	return 0;
}

static int fail_full(int device, size_t nbytes)
{
	const struct arena *const self = &arenas[device];
	const size_t total = total_of();

	return tti_cuda_fail(
		TTI_CUDA_ENOMEM,
		"%zu bytes were asked for on device %d, which has %zu, of which %zu are free (%llu "
		"in one part): free some, or set TUTTI_CUDAHOST_MEMORY to more",
		nbytes, device, total, total - self->used,
		(unsigned long long)(self->exists ? tti_cuda_heap_largest(&self->heap)
						  : total - self->used));
}

int tti_cuda_arena_take(int device, size_t nbytes, struct tti_cuda_block **out)
{
	struct arena *const self = &arenas[device];
	const size_t rounded = tti_cuda_file_round(nbytes);
	const size_t alignment = nbytes >= HUGE_BYTES ? HUGE_BYTES : tti_cuda_file_page();
	struct tti_cuda_block *block;
	int error;

	if (rounded > total_of() - self->used)
		return fail_full(device, nbytes);
	if (!self->exists) {
		error = make(self, device);
		if (error)
			return error;
	}
	block = tti_cuda_heap_take(&self->heap, rounded, alignment);
	if (!block)
		return fail_full(device, nbytes);
	self->used += rounded;
	*out = block;
	return 0;
}

void tti_cuda_arena_give(int device, struct tti_cuda_block *block)
{
	arenas[device].used -= block->nbytes;
	tti_cuda_heap_give(&arenas[device].heap, block);
}

char *tti_cuda_arena_address(int device, const struct tti_cuda_block *block)
{
	return arenas[device].view.address + block->offset;
}

void tti_cuda_arena_empty(int device, const struct tti_cuda_block *block)
{
	/* By the mapping, not by fallocate(): the fd might be the program's own by now. The pages
	 * of locked memory (mlockall) stay, which costs memory and nothing else. */
	(void)madvise(arenas[device].view.reach + block->offset, block->nbytes, MADV_REMOVE);
}

int tti_cuda_arena_claim(int device, size_t nbytes)
{
	if (nbytes > total_of() - arenas[device].used)
		return fail_full(device, nbytes);
	arenas[device].used += nbytes;
	return 0;
}

void tti_cuda_arena_unclaim(int device, size_t nbytes)
{
	arenas[device].used -= nbytes;
}

void tti_cuda_arena_info(int device, size_t *out_free, size_t *out_total)
{
	*out_total = total_of();
	*out_free = *out_total - arenas[device].used;
}

const struct tti_cuda_file *tti_cuda_arena_file(int device)
{
	return &arenas[device].file;
}

uint64_t tti_cuda_arena_published_at(const struct tti_cuda_file *file, uint64_t offset)
{
	return file->table_at + offset / tti_cuda_file_page() * sizeof(uint64_t);
}

void tti_cuda_arena_publish(int device, const struct tti_cuda_block *block, uint64_t id)
{
	struct arena *const self = &arenas[device];
	void *const at = self->view.reach + tti_cuda_arena_published_at(&self->file, block->offset);

	atomic_store((_Atomic uint64_t *)at, id);
}

bool tti_cuda_arena_has(const struct tti_cuda_file *file)
{
	for (int device = 0; device < TTI_CUDA_DEVICES_MOST; device++)
		if (arenas[device].exists && arenas[device].file.inode == file->inode &&
		    arenas[device].file.volume == file->volume)
			return true;
	return false;
}

void tti_cuda_arena_abandon(void)
{
	for (int device = 0; device < TTI_CUDA_DEVICES_MOST; device++)
		if (arenas[device].exists)
			tti_cuda_file_close(&arenas[device].file);
}
