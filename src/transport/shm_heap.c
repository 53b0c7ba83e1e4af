/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that peers can address: extents of the segment, and what the user had already.
 *
 * Each rank has a part of the segment from which it alone allocates. Since everyone holds the
 * segment's descriptor since join(), a peer needs nothing but numbers to map an extent:
 * nothing is opened, passed or looked up later. The file is sparse, so a heap costs nothing
 * but what is touched; a freed extent is punched out of it. What a rank that died had goes
 * with the last one that holds the segment.
 *
 * Memory that was not allocated here has an address and nothing else. Threads of the same
 * process use the address as it is, if the memory was registered (a range). Where the kernel
 * copies between all processes of the domain (shm_copy.c), any memory has a name. */
#include "transport/shm.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <string.h>
#include <sys/mman.h>

#include "util/error.h"
#include "util/mem.h"

#define GRAINS_MOST ((UINT32_C(1) << 30) - 1) /* bits of tti_memory_name */

static struct tti_shm_port *port_of(struct tti_port *port)
{
	return (struct tti_shm_port *)port;
}

void tti_shm_heap_init(struct tti_shm_heap *heap)
{
	pthread_mutex_init(&heap->lock, NULL);
}

void tti_shm_heap_release(struct tti_shm_heap *heap)
{
	for (size_t i = 0; i < heap->extents.n; i++)
		munmap(heap->extents.at[i].base, heap->extents.at[i].nbytes);
	for (size_t i = 0; i < heap->views.n; i++)
		munmap(heap->views.at[i].base, heap->views.at[i].nbytes);
	tti_vec_release(&heap->extents);
	tti_vec_release(&heap->ranges);
	tti_vec_release(&heap->views);
	pthread_mutex_destroy(&heap->lock);
}

/* -- Own memory ------------------------------------------------------------ */

static uint64_t heap_at(const struct tti_shm_layout *layout, int index)
{
	return layout->heap_at + (uint64_t)index * layout->heap_bytes;
}

/* The first gap of so many bytes: where, and in front of which extent. */
static bool find_gap(const struct tti_shm_port *port, size_t nbytes, uint64_t *at, size_t *place)
{
	const struct tti_shm_layout *layout = &port->seg.layout;
	const uint64_t end = heap_at(layout, port->self) + layout->heap_bytes;

	*at = heap_at(layout, port->self);
	for (*place = 0; *place < port->heap.extents.n; ++*place) {
		const struct tti_shm_extent *extent = &port->heap.extents.at[*place];

		if (extent->at - *at >= nbytes)
			return true;
		*at = extent->at + extent->nbytes;
	}
	return end - *at >= nbytes;
}

/* Under the lock. */
static tutti_status allocate(struct tti_shm_port *port, size_t nbytes, void **out)
{
	struct tti_shm_heap *heap = &port->heap;
	uint64_t at;
	size_t place;

	if (nbytes > port->seg.layout.heap_bytes || !find_gap(port, nbytes, &at, &place))
		return tti_fail_quiet(TUTTI_ENOMEM,
				      "%zu bytes do not fit into the %llu that a rank can share: "
				      "raise TUTTI_SHM_HEAP",
				      nbytes, (unsigned long long)port->seg.layout.heap_bytes);
	if (!tti_vec_grow(&heap->extents))
		return tti_fail_quiet(TUTTI_ENOMEM, "list of shared memory: out of memory");
	TTI_TRY(tti_shm_seg_map(&port->seg, at, nbytes, out));
	/* It holds the user's data, which a forked child may read. */
	(void)madvise(*out, nbytes, MADV_DOFORK);
	memmove(heap->extents.at + place + 1, heap->extents.at + place,
		(heap->extents.n - place) * sizeof(*heap->extents.at));
	heap->extents.at[place] =
		(struct tti_shm_extent){ .at = at, .nbytes = nbytes, .base = *out };
	heap->extents.n++;
	return TUTTI_OK;
}

static tutti_status heap_alloc(struct tti_port *base, size_t nbytes, void **out)
{
	struct tti_shm_port *const port = port_of(base);
	tutti_status st;

	if (!port->seg.base || !port->seg.layout.heap_bytes)
		return tti_fail_quiet(TUTTI_EUNSUPPORTED,
				      "this rank shares memory with nobody, or a limit on address "
				      "space or file sizes (ulimit -v, -f) or TUTTI_SHM_HEAP "
				      "forbids it");
	/* Not past the end of a size_t, and if it comes near, it will not fit. */
	if (nbytes <= SIZE_MAX - TTI_SHM_GRAIN)
		nbytes = (nbytes + TTI_SHM_GRAIN - 1) / TTI_SHM_GRAIN * TTI_SHM_GRAIN;
	pthread_mutex_lock(&port->heap.lock);
	st = allocate(port, nbytes, out);
	pthread_mutex_unlock(&port->heap.lock);
	return st;
}

/* Under the lock. The extent that has all of the range; NULL: none. */
static struct tti_shm_extent *find_extent(struct tti_shm_heap *heap, uintptr_t first, size_t nbytes)
{
	for (size_t i = 0; i < heap->extents.n; i++) {
		struct tti_shm_extent *extent = &heap->extents.at[i];
		const uintptr_t base = (uintptr_t)extent->base;

		if (first >= base && first - base < extent->nbytes &&
		    nbytes <= extent->nbytes - (first - base))
			return extent;
	}
	return NULL;
}

static tutti_status heap_free(struct tti_port *base, void *memory)
{
	struct tti_shm_port *const port = port_of(base);
	struct tti_shm_heap *heap = &port->heap;
	struct tti_shm_extent extent = { 0 }, *found;

	pthread_mutex_lock(&heap->lock);
	found = find_extent(heap, (uintptr_t)memory, 1);
	if (found && found->base == memory) {
		const size_t place = (size_t)(found - heap->extents.at);

		extent = *found;
		/* What is given out again must be zero, and nobody else's view of it counts. */
		if (fallocate(port->seg.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			      (off_t)extent.at, (off_t)extent.nbytes))
			memset(extent.base, 0, extent.nbytes);
		munmap(extent.base, extent.nbytes);
		memmove(found, found + 1, (--heap->extents.n - place) * sizeof(*heap->extents.at));
	}
	pthread_mutex_unlock(&heap->lock);
	if (!extent.base)
		return tti_fail_quiet(TUTTI_EINVAL, "%p was not allocated here", memory);
	return TUTTI_OK;
}

static tutti_status heap_add(struct tti_port *base, const void *memory, size_t nbytes)
{
	struct tti_shm_heap *heap = &port_of(base)->heap;
	const struct tti_shm_range range = { .first = (uintptr_t)memory, .nbytes = nbytes };
	bool good;

	pthread_mutex_lock(&heap->lock);
	good = tti_vec_push(&heap->ranges, range);
	pthread_mutex_unlock(&heap->lock);
	return good ? TUTTI_OK
		    : tti_fail_quiet(TUTTI_ENOMEM, "list of registered memory: out of memory");
}

static tutti_status heap_drop(struct tti_port *base, const void *memory, size_t nbytes)
{
	struct tti_shm_heap *heap = &port_of(base)->heap;
	bool found = false;

	pthread_mutex_lock(&heap->lock);
	for (size_t i = 0; i < heap->ranges.n && !found; i++) {
		found = heap->ranges.at[i].first == (uintptr_t)memory &&
			heap->ranges.at[i].nbytes == nbytes;
		if (found)
			heap->ranges.at[i] = heap->ranges.at[--heap->ranges.n];
	}
	pthread_mutex_unlock(&heap->lock);
	return found ? TUTTI_OK : tti_fail_quiet(TUTTI_EINVAL, "%p was not registered", memory);
}

static bool is_in_range(const struct tti_shm_heap *heap, uintptr_t first, size_t nbytes)
{
	for (size_t i = 0; i < heap->ranges.n; i++) {
		const struct tti_shm_range *range = &heap->ranges.at[i];

		if (first >= range->first && first - range->first <= range->nbytes &&
		    nbytes <= range->nbytes - (first - range->first))
			return true;
	}
	return false;
}

static bool heap_name(struct tti_port *base, const void *memory, size_t nbytes,
		      struct tti_memory_name *out)
{
	struct tti_shm_port *const port = port_of(base);
	struct tti_shm_heap *heap = &port->heap;
	const uintptr_t first = (uintptr_t)memory;
	const struct tti_shm_extent *extent;
	bool named = true;

	*out = (struct tti_memory_name){ .at = first, .reach = TTI_REACH_MAPPED };
	pthread_mutex_lock(&heap->lock);
	extent = find_extent(heap, first, nbytes);
	if (extent) {
		out->extent = (uint32_t)((extent->at - port->seg.layout.heap_at) / TTI_SHM_GRAIN);
		out->grains = (uint32_t)(extent->nbytes / TTI_SHM_GRAIN) & GRAINS_MOST;
		out->at = extent->at + (first - (uintptr_t)extent->base);
	} else if (!port->one_process || !is_in_range(heap, first, nbytes)) {
		out->reach = TTI_REACH_COPIED;
		named = base->plain == TTI_REACH_COPIED;
	}
	pthread_mutex_unlock(&heap->lock);
	return named && memory;
}

/* -- Memory of peers ------------------------------------------------------- */

/* A name comes from another process: it must lie where that rank may allocate. */
static tutti_status check_name(const struct tti_shm_port *port, int peer,
			       const struct tti_memory_name *name, size_t nbytes,
			       struct tti_shm_extent *out)
{
	const struct tti_shm_layout *layout = &port->seg.layout;
	const int index = tti_shm_find_candidate(port, peer);
	const uint64_t first = index < 0 ? 0 : heap_at(layout, index);

	out->at = layout->heap_at + (uint64_t)name->extent * TTI_SHM_GRAIN;
	out->nbytes = (size_t)name->grains * TTI_SHM_GRAIN;
	if (index < 0 || out->at < first || out->at - first >= layout->heap_bytes ||
	    out->nbytes > layout->heap_bytes - (out->at - first) || name->at < out->at ||
	    name->at - out->at >= out->nbytes || nbytes > out->nbytes - (name->at - out->at))
		return tti_fail(TUTTI_EPROTO,
				"shared memory: rank %d names memory of its own that cannot be "
				"(extent %u of %u grains, %zu bytes at %llu)",
				peer, name->extent, name->grains, nbytes,
				(unsigned long long)name->at);
	return TUTTI_OK;
}

static tutti_status map_extent(struct tti_shm_port *port, int peer, struct tti_shm_extent *extent)
{
	void *base = NULL;
	const tutti_status st = tti_shm_seg_map(&port->seg, extent->at, extent->nbytes, &base);

	extent->base = base;
	return st == TUTTI_OK ? st : tti_shm_fail(port, st, peer, "reaching the memory of");
}

static bool overlaps(const struct tti_shm_extent *a, const struct tti_shm_extent *b)
{
	return a->at < b->at + b->nbytes && b->at < a->at + a->nbytes;
}

/* The view of an extent; it takes the place of those of extents that are no more. */
static tutti_status find_view(struct tti_shm_port *port, int peer, struct tti_shm_extent *extent)
{
	struct tti_shm_heap *heap = &port->heap;

	for (size_t i = 0; i < heap->views.n;) {
		struct tti_shm_extent *view = &heap->views.at[i];

		if (view->at == extent->at && view->nbytes == extent->nbytes) {
			*extent = *view;
			return TUTTI_OK;
		}
		if (overlaps(view, extent)) {
			munmap(view->base, view->nbytes);
			*view = heap->views.at[--heap->views.n];
			continue;
		}
		i++;
	}
	if (!tti_vec_grow(&heap->views))
		return tti_fail(TUTTI_ENOMEM, "views of shared memory: out of memory");
	TTI_TRY(map_extent(port, peer, extent));
	heap->views.at[heap->views.n++] = *extent;
	return TUTTI_OK;
}

/* The address of what is named, in a mapping of its extent that `get` makes or knows. */
static tutti_status
look_up(struct tti_shm_port *port, int peer, const struct tti_memory_name *name, size_t nbytes,
	tutti_status (*get)(struct tti_shm_port *, int, struct tti_shm_extent *), void **out)
{
	struct tti_shm_extent extent;

	if (!name->grains && port->one_process) {
		*out = (void *)(uintptr_t)name->at;
		return TUTTI_OK;
	}
	TTI_TRY(check_name(port, peer, name, nbytes, &extent));
	TTI_TRY(get(port, peer, &extent));
	*out = extent.base + (name->at - extent.at);
	return TUTTI_OK;
}

static tutti_status heap_find(struct tti_port *base, int peer, const struct tti_memory_name *name,
			      size_t nbytes, struct tti_remote *out)
{
	*out = (struct tti_remote){ .address = name->at };
	if (name->reach != TTI_REACH_COPIED)
		return look_up(port_of(base), peer, name, nbytes, find_view, &out->mapped);
	if (base->plain != TTI_REACH_COPIED)
		return tti_fail(TUTTI_EPROTO,
				"shared memory: rank %d names memory for the kernel to copy, which "
				"the ranks of this host did not agree on",
				peer);
	return TUTTI_OK;
}

static tutti_status heap_map(struct tti_port *base, int peer, const struct tti_memory_name *name,
			     size_t nbytes, void **out)
{
	return look_up(port_of(base), peer, name, nbytes, map_extent, out);
}

static void heap_unmap(struct tti_port *base, const struct tti_memory_name *name, void *memory)
{
	const struct tti_shm_layout *layout = &port_of(base)->seg.layout;
	const uint64_t at = layout->heap_at + (uint64_t)name->extent * TTI_SHM_GRAIN;

	if (name->grains)
		munmap((uint8_t *)memory - (name->at - at), (size_t)name->grains * TTI_SHM_GRAIN);
}

const struct tti_memory_ops tti_shm_memory_ops = {
	.alloc = heap_alloc,
	.free = heap_free,
	.add = heap_add,
	.drop = heap_drop,
	.name = heap_name,
	.find = heap_find,
	.read = tti_shm_copy_from,
	.write = tti_shm_copy_to,
	.map = heap_map,
	.unmap = heap_unmap,
};
