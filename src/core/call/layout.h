/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_CORE_LAYOUT_H
#define TTI_CORE_LAYOUT_H

/* Where the chunks of a call's program lie in its buffers.
 *
 * Owner: the communicator, of the extents. Threads: the executing one's. */

#include "engine/engine.h"

struct tti_args;
struct tti_comm;

/* Where chunks of uneven calls, handoffs and transfers lie, until the next one. */
struct tti_extents {
	struct tti_extent *at;
	size_t room;
};

/* Room for n, to be filled. */
TUTTI_CHECKED tutti_status tti_extents_need(struct tti_extents *extents, size_t n);
/* All chunks take as many blocks as the longest, each its part of itself in each: elements, with
 * `slice` of them in a block of the longest. */
void tti_extents_slice(struct tti_extent *at, size_t nchunks, size_t longest, size_t slice,
		       size_t type_size);

/* Bytes of the whole vector: what the choice of an algorithm goes by. */
size_t tti_vector_bytes(const struct tti_comm *comm, const struct tti_args *args);

/* Of a call that has a program of `nchunks` chunks, in steps of slice_bytes, and is no
 * handoff. */
TUTTI_CHECKED tutti_status tti_layout_of(struct tti_comm *comm, const struct tti_args *args,
					 int nchunks, size_t slice_bytes, struct tti_layout *out);

#endif
