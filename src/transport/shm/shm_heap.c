/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that peers can address: the heap of the process (heap.h), and memory of the user.
 *
 * A name in the heap is an offset in its file, which peers map (shm_views.c). Memory outside the
 * heap has only an address. Threads of one process use addresses as they are, in the heap or in
 * registered ranges. Where the kernel copies between all processes of the domain (shm_copy.c), any
 * memory has a name. */
#include "transport/shm/shm.h"

#include <string.h>

#include "transport/shm/heap.h"
#include "util/error.h"

void tti_shm_ranges_init(struct tti_shm_ranges *ranges)
{
	pthread_mutex_init(&ranges->lock, NULL);
}

void tti_shm_ranges_release(struct tti_shm_ranges *ranges)
{
	tti_vec_release(&ranges->all);
	pthread_mutex_destroy(&ranges->lock);
}

static tutti_status heap_add(struct tti_port *base, const void *memory, size_t nbytes)
{
	struct tti_shm_ranges *ranges = &((struct tti_shm_port *)base)->ranges;
	const struct tti_shm_range range = { .first = (uintptr_t)memory, .nbytes = nbytes };
	bool good;

	pthread_mutex_lock(&ranges->lock);
	good = tti_vec_push(&ranges->all, range);
	pthread_mutex_unlock(&ranges->lock);
	return good ? TUTTI_OK
		    : tti_fail_quiet(TUTTI_ENOMEM, "list of registered memory: out of memory");
}

static tutti_status heap_drop(struct tti_port *base, const void *memory, size_t nbytes)
{
	struct tti_shm_ranges *ranges = &((struct tti_shm_port *)base)->ranges;
	bool found = false;

	pthread_mutex_lock(&ranges->lock);
	for (size_t i = 0; i < ranges->all.n && !found; i++) {
		found = ranges->all.at[i].first == (uintptr_t)memory &&
			ranges->all.at[i].nbytes == nbytes;
		if (found)
			ranges->all.at[i] = ranges->all.at[--ranges->all.n];
	}
	pthread_mutex_unlock(&ranges->lock);
	return found ? TUTTI_OK : tti_fail_quiet(TUTTI_EINVAL, "%p was not registered", memory);
}

static bool is_in_range(struct tti_shm_ranges *ranges, uintptr_t first, size_t nbytes)
{
	bool found = false;

	pthread_mutex_lock(&ranges->lock);
	for (size_t i = 0; i < ranges->all.n && !found; i++) {
		const struct tti_shm_range *range = &ranges->all.at[i];

		found = first >= range->first && first - range->first <= range->nbytes &&
			nbytes <= range->nbytes - (first - range->first);
	}
	pthread_mutex_unlock(&ranges->lock);
	return found;
}

static bool heap_name(struct tti_port *base, const void *memory, size_t nbytes,
		      struct tti_memory_name *out)
{
	struct tti_shm_port *const port = (struct tti_shm_port *)base;
	const uintptr_t first = (uintptr_t)memory;
	uint64_t at;
	const bool is_heap = tti_heap_find(memory, nbytes, &at);

	*out = (struct tti_memory_name){ .at = first, .reach = TTI_REACH_MAPPED };
	if (port->one_process && (is_heap || is_in_range(&port->ranges, first, nbytes)))
		return memory;
	if (is_heap && at + nbytes <= port->reach_bytes && tti_shm_pass(port)) {
		out->at = at;
		return true;
	}
	out->reach = TTI_REACH_COPIED;
	return base->plain == TTI_REACH_COPIED && memory;
}

static tutti_status heap_find(struct tti_port *base, int peer, const struct tti_memory_name *name,
			      size_t nbytes, struct tti_remote *out)
{
	struct tti_shm_port *const port = (struct tti_shm_port *)base;
	const int index = tti_shm_find_candidate(port, peer);

	*out = (struct tti_remote){ .address = name->at };
	if (name->reach == TTI_REACH_COPIED && base->plain != TTI_REACH_COPIED)
		return tti_fail(TUTTI_EPROTO,
				"shared memory: rank %d names memory for the kernel to copy, which "
				"the ranks of this host did not agree on",
				peer);
	if (name->reach == TTI_REACH_COPIED)
		return TUTTI_OK;
	if (port->one_process) {
		out->mapped = (void *)(uintptr_t)name->at;
		return TUTTI_OK;
	}
	if (index < 0 || nbytes > port->reach_bytes || name->at > port->reach_bytes - nbytes)
		return tti_fail(
			TUTTI_EPROTO,
			"shared memory: rank %d names memory outside its heap (%zu bytes at "
			"%llu)",
			peer, nbytes, (unsigned long long)name->at);
	return tti_shm_view_find(port, index, name->at, nbytes, &out->mapped);
}

const struct tti_memory_ops tti_shm_memory_ops = {
	.add = heap_add,
	.drop = heap_drop,
	.name = heap_name,
	.find = heap_find,
	.read = tti_shm_copy_from,
	.write = tti_shm_copy_to,
};
