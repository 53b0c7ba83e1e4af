/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_DEVICE_LANES_H
#define TTI_DEVICE_LANES_H

/* How the lanes between two ranks lie in memory (abi.h). Each of the two has one piece of memory
 * for the other:
 *
 *     of each block, for what it receives: slots, heads, words, full; for what it sends: freed
 *
 * It is zeroed before the first message. Where it lies (of this GPU, of another one, pinned) makes
 * no difference here: the lanes of a rank are worked out from the two addresses.
 *
 * Owner: values. Threads: any. */

#include <stddef.h>
#include <stdint.h>

#include "device/abi.h"
#include "tutti/status.h"

/* The same for all lanes of a communicator. A message of all blocks together has at most nblocks *
 * slot_bytes, or by words nblocks * word_bytes. Slots are a little larger, as the parts of blocks
 * are rounded to 16 bytes. */
struct tti_lane_shape {
	uint32_t nblocks, nslots;
	uint32_t slot_bytes, word_bytes; /* multiples of 16; word_bytes 0: no words */
};

/* Bytes of the memory that a rank has for one peer. */
size_t tti_lanes_bytes(const struct tti_lane_shape *shape);

/* The lane of a block from a peer: `own` is the memory that this rank has for the peer, `other` the
 * memory that the peer has for this rank, both as the one who uses the lane reaches them. */
struct tti_dev_lane tti_lane_in(const struct tti_lane_shape *shape, uint32_t block, uint64_t own,
				uint64_t other);
/* The lane of a block to a peer. */
struct tti_dev_lane tti_lane_out(const struct tti_lane_shape *shape, uint32_t block, uint64_t own,
				 uint64_t other);

#endif
