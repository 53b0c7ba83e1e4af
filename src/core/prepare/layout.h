/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_CORE_PREPARE_LAYOUT_H
#define TTI_CORE_PREPARE_LAYOUT_H

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

/* Room for n extents, which the caller fills in. */
TUTTI_CHECKED tutti_status tti_extents_need(struct tti_extents *extents, size_t n);
/* Cut each chunk into as many blocks as the longest chunk has with `slice` elements a block. */
void tti_extents_slice(struct tti_extent *at, size_t nchunks, size_t longest, size_t slice,
		       size_t type_size);

/* Bytes of the whole vector, by which an algorithm is chosen. */
size_t tti_vector_bytes(const struct tti_comm *comm, const struct tti_args *args);

/* The layout of a call that is no handoff, over a program of `nchunks` chunks in steps of
 * slice_bytes. */
TUTTI_CHECKED tutti_status tti_layout_of(struct tti_comm *comm, const struct tti_args *args,
					 int nchunks, size_t slice_bytes, struct tti_layout *out);

#endif
