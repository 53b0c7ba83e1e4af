/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_TRANSPORT_SHM_SEG_H
#define TTI_TRANSPORT_SHM_SEG_H

/* The segment: one sparse memfd that the ranks of a host share.
 *
 *     header | bells, trials | table[lo][hi] | rings for all | outboxes | pair | ...
 *     '---------------- control, of each rank: mapped whole ----------'  by links
 *
 * A bell is what a sleeping rank waits on. table[lo][hi] says which pair region
 * the ranks lo < hi use: 0 until one of them takes the next free one. An outbox
 * is a box, room for `slots` of the longest messages, that its rank writes and all others
 * may read; so is a ring for all (shm_fan.c).
 *
 *     pair: done of 0 | done of 1 | ring 0 | ring 1 | box 0 | box 1
 *
 * Where in a box a message lies is its writer's choice (shm_room.h).
 *
 * Direction 0 is written by lo, direction 1 by hi. Nothing of it costs memory
 * before it is touched: first touch (and so the NUMA node) is the writer's, but
 * for `done`, which the reader writes.
 *
 * Ranks are meant here by their place among the candidates of the host (0 .. n-1),
 * which all of them compute alike from the cards.
 *
 * Errors are quiet: the callers know which ranks it is about.
 *
 * Owner: tti_shm_seg_release(). Nothing has a name: the last one who closes or
 * dies frees it. Threads: the struct is one thread's; the memory is everybody's. */

#include <stdatomic.h>
#include <stdint.h>

#include "transport/shm/shm_trial.h"
#include "transport/transport.h"

#define TTI_SHM_RING    64     /* lines of a ring, a power of two                */
#define TTI_SHM_INLINE  48     /* bytes of a message that travel within the line */
#define TTI_SHM_SLOTS   64     /* at most: lines of a ring                       */
#define TTI_SHM_GRAIN   65536u /* of what is mapped: no machine has larger pages */
#define TTI_SHM_LONGEST ((UINT32_C(1) << 30) - 1) /* message: bits of meta */

enum tti_shm_kind {
	TTI_SHM_IN_LINE,
	TTI_SHM_IN_BOX,    /* the sender's of the pair: the cell where it begins is in data */
	TTI_SHM_IN_OUTBOX, /* the sender's outbox: the same                                 */
};

/* A message, or all of it if it is short: one cache line to move. seq is written
 * last: the message's number + 1. */
struct tti_shm_line {
	_Alignas(64) _Atomic uint32_t seq;
	uint32_t meta; /* kind << 30 | nbytes */
	uint64_t tag;
	uint8_t data[TTI_SHM_INLINE];
};

/* What the reader is done with: lines | messages in its box << 32, counted from 0; and of the
 * writer's ring for all. On its own pair of lines, since processors fetch lines in twos. */
struct tti_shm_done {
	_Alignas(128) _Atomic uint64_t count;
	_Atomic uint32_t of_all;
};

struct tti_shm_pair {
	struct tti_shm_done done[2];
	_Alignas(4096) struct tti_shm_line ring[2][TTI_SHM_RING];
	/* Boxes follow, the struct's size is a multiple of 4096. */
};

/* word: how often it was rung << 14 | a field << 2 | whether that counts << 1 | whether it is armed.
 * The field is who is to ring it, that is place + 1, or 0, anybody; where it counts, how many messages
 * are to come. The rank itself arms it; who rings disarms it, or takes one off what is to come.
 * probe and answer prove at join that the memory is really shared. */
struct tti_shm_bell {
	_Alignas(128) _Atomic uint32_t word;
	_Atomic uint64_t probe, answer;
};

struct tti_shm_layout {
	int n, slots;
	size_t slot_bytes; /* longest message                   */
	size_t box_bytes;  /* a multiple of 4096                */
	size_t bells_at, trials_at, table_at, rings_at, outbox_at, control_bytes;
	size_t pair_bytes;
	uint32_t most_pairs;
	uint64_t total_bytes;
};

struct tti_shm_seg {
	struct tti_shm_layout layout;
	int fd;        /* -1: none          */
	uint8_t *base; /* control; NULL: not mapped */
};

/* TUTTI_EINVAL: out of range, or it does not fit into any file. */
TUTTI_CHECKED tutti_status tti_shm_layout_init(struct tti_shm_layout *out, int n, size_t slot_bytes,
					       int slots);

/* Map a part of the segment, at a multiple of TTI_SHM_GRAIN; children that are forked do not have it
 * (MADV_DONTFORK). */
TUTTI_CHECKED tutti_status tti_shm_seg_map(const struct tti_shm_seg *seg, uint64_t at,
					   size_t nbytes, void **out);

/* seg->layout is set, the rest is zero. Create the file; or map what another rank
 * created: takes fd, also when it fails. */
TUTTI_CHECKED tutti_status tti_shm_seg_create(struct tti_shm_seg *seg);
TUTTI_CHECKED tutti_status tti_shm_seg_adopt(struct tti_shm_seg *seg, int fd);

/* NULL members are fine. Mapped pairs stay. */
void tti_shm_seg_release(struct tti_shm_seg *seg);

struct tti_shm_bell *tti_shm_seg_bell(const struct tti_shm_seg *seg, int index);
struct tti_shm_agreement *tti_shm_seg_agreement(const struct tti_shm_seg *seg);
struct tti_shm_trial *tti_shm_seg_trial(const struct tti_shm_seg *seg, int index);
struct tti_shm_line *tti_shm_seg_ring(const struct tti_shm_seg *seg, int index);
uint8_t *tti_shm_seg_outbox(const struct tti_shm_seg *seg, int index);

/* The pair of two ranks (a != b), made if it is not there yet; munmap'ed by
 * tti_shm_pair_unmap(). */
TUTTI_CHECKED tutti_status tti_shm_pair_map(const struct tti_shm_seg *seg, int a, int b,
					    struct tti_shm_pair **out);
void tti_shm_pair_unmap(const struct tti_shm_seg *seg, struct tti_shm_pair *pair);

#endif
