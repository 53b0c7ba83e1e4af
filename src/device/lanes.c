/* SPDX-License-Identifier: BSD-3-Clause */
#include "device/lanes.h"

/* Memory for one peer, where each array begins at a multiple of LINE bytes:
 *
 *     [nblocks] of  counters   full, then on a line of its own freed
 *                   heads      [nslots]
 *                   words      [nslots], two bytes for one of data
 *                   slots      [nslots]
 *
 * Counters of different blocks are on different lines, since other multiprocessors write them. */

#define LINE 128u

/* A block's part of a message is less than 16 bytes longer than an even part (abi.h). */
#define UNEVEN LINE

struct offsets {
	uint64_t full, freed, heads, words, slots, end;
};

static uint64_t whole_lines(uint64_t nbytes)
{
	return (nbytes + LINE - 1) / LINE * LINE;
}

static uint32_t slot_room(const struct tti_lane_shape *shape)
{
	return shape->slot_bytes + UNEVEN;
}

static uint32_t word_room(const struct tti_lane_shape *shape)
{
	return shape->word_bytes ? shape->word_bytes + UNEVEN : 0;
}

static struct offsets offsets_of(const struct tti_lane_shape *shape)
{
	struct offsets at = { .full = 0, .freed = LINE, .heads = 2 * LINE };

	at.words = at.heads + whole_lines(shape->nslots * sizeof(struct tti_dev_head));
	at.slots = at.words + whole_lines((uint64_t)shape->nslots * word_room(shape) * 2);
	at.end = at.slots + whole_lines((uint64_t)shape->nslots * slot_room(shape));
	return at;
}

size_t tti_lanes_bytes(const struct tti_lane_shape *shape)
{
	return shape->nblocks * offsets_of(shape).end;
}

/* Both counters are 0, as no message was sent: the sender knows of none that is freed. */
static struct tti_dev_lane lane_of(const struct tti_lane_shape *shape, uint32_t block,
				   uint64_t receiver, uint64_t sender)
{
	const struct offsets at = offsets_of(shape);
	const uint64_t first = block * at.end;

	return (struct tti_dev_lane){
		.slots = receiver + first + at.slots,
		.heads = receiver + first + at.heads,
		.words = shape->word_bytes ? receiver + first + at.words : 0,
		.full = receiver + first + at.full,
		.freed = sender + first + at.freed,
		.nslots = shape->nslots,
		.slot_bytes = slot_room(shape),
		.word_bytes = word_room(shape),
	};
}

struct tti_dev_lane tti_lane_in(const struct tti_lane_shape *shape, uint32_t block, uint64_t own,
				uint64_t other)
{
	return lane_of(shape, block, own, other);
}

struct tti_dev_lane tti_lane_out(const struct tti_lane_shape *shape, uint32_t block, uint64_t own,
				 uint64_t other)
{
	return lane_of(shape, block, other, own);
}
