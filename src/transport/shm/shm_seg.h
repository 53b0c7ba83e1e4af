/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_TRANSPORT_SHM_SEG_H
#define TTI_TRANSPORT_SHM_SEG_H

/* The segment: one sparse memfd that the ranks of a host share.
 *
 *     header | doorbells, trials | table[lo][hi] | broadcast rings, buffers | pair | ...
 *     '------------------- control: each rank maps all of it ------------'  by links
 *
 * A sleeping rank waits on its doorbell. table[lo][hi] says which pair region the ranks lo < hi
 * use: 0 until one of them takes the next free region. Each rank writes one broadcast buffer, with
 * room for `slots` of the longest messages, and one broadcast ring; all others may read them
 * (shm_fanout.c).
 *
 *     pair: done of 0 | done of 1 | ring 0 | ring 1 | bounce buffer 0 | bounce buffer 1
 *
 * The writer of a buffer chooses where in it a message lies (shm_room.h). lo writes direction 0, hi
 * direction 1, but for `done`, which the reader writes. Memory that is not touched costs nothing;
 * the one who writes touches first, and so chooses the NUMA node.
 *
 * A rank is named here by its place among the candidates of the host (0 .. n-1), which all compute
 * alike from the cards. Errors are quiet: the callers know which ranks are concerned.
 *
 * Owner: tti_shm_seg_release(). The file has no name: it ends with the last process that has it
 * open.
 * Threads: the struct belongs to one thread, the memory to all. */

#include <stdatomic.h>
#include <stdint.h>

#include "transport/shm/shm_trial.h"
#include "transport/transport.h"

#define TTI_SHM_RING    64     /* entries of a ring, a power of two                */
#define TTI_SHM_INLINE  48     /* bytes of a message that travel within the entry */
#define TTI_SHM_SLOTS   64     /* at most, as many as entries of a ring          */
#define TTI_SHM_GRAIN   65536u /* of mappings: no machine has larger pages       */
#define TTI_SHM_LONGEST ((UINT32_C(1) << 30) - 1) /* message: its bits in meta */

enum tti_shm_kind {
	TTI_SHM_IN_ENTRY,
	TTI_SHM_IN_BOUNCE,    /* the sender's bounce buffer: data has its first cache line there */
	TTI_SHM_IN_BROADCAST, /* the sender's broadcast buffer: the same                         */
};

/* One message of a ring, all of it if it is short: one cache line to move. seq, the number of the
 * message counted from 1, is written last. */
struct tti_shm_entry {
	_Alignas(64) _Atomic uint32_t seq;
	uint32_t meta; /* kind << 30 | nbytes */
	uint64_t tag;
	uint8_t data[TTI_SHM_INLINE];
};

/* What the reader is done with, counted from 0: entries | messages in the bounce buffer << 32, and
 * entries of the writer's broadcast ring. Two cache lines for itself, as processors fetch pairs. */
struct tti_shm_done {
	_Alignas(128) _Atomic uint64_t count;
	_Atomic uint32_t of_all;
};

struct tti_shm_pair {
	struct tti_shm_done done[2];
	_Alignas(4096) struct tti_shm_entry ring[2][TTI_SHM_RING];
	/* The bounce buffers follow, the struct's size is a multiple of 4096. */
};

/* word: how often it was rung << 14 | a field << 2 | whether the field counts << 1 | whether armed.
 * A field that counts is the number of messages to come; else it is the place + 1 of the rank that
 * is to ring, or 0 for any. The sleeping rank arms its doorbell; a peer that rings disarms it, or
 * takes one off the messages to come. probe and answer prove at join that the memory is really
 * shared. */
struct tti_shm_doorbell {
	_Alignas(128) _Atomic uint32_t word;
	_Atomic uint64_t probe, answer;
};

struct tti_shm_layout {
	int n, slots;
	size_t slot_bytes;   /* longest message                   */
	size_t bounce_bytes; /* a multiple of 4096                */
	size_t doorbells_at, trials_at, table_at, rings_at, broadcast_at, control_bytes;
	size_t pair_bytes;
	uint32_t most_pairs;
	uint64_t total_bytes;
};

struct tti_shm_seg {
	struct tti_shm_layout layout;
	int fd;        /* -1: none          */
	uint8_t *base; /* control; NULL: not mapped */
};

/* TUTTI_EINVAL: out of range, or larger than any file. */
TUTTI_CHECKED tutti_status tti_shm_layout_init(struct tti_shm_layout *out, int n, size_t slot_bytes,
					       int slots);

/* Map a part of the segment, at a multiple of TTI_SHM_GRAIN, not for children (MADV_DONTFORK). */
TUTTI_CHECKED tutti_status tti_shm_seg_map(const struct tti_shm_seg *seg, uint64_t at,
					   size_t nbytes, void **out);

/* seg->layout is set, the rest is zero. Create the file; or map the file of another rank, whose fd
 * is taken, also on failure. */
TUTTI_CHECKED tutti_status tti_shm_seg_create(struct tti_shm_seg *seg);
TUTTI_CHECKED tutti_status tti_shm_seg_adopt(struct tti_shm_seg *seg, int fd);

/* NULL members are fine. Pairs stay mapped. */
void tti_shm_seg_release(struct tti_shm_seg *seg);

struct tti_shm_doorbell *tti_shm_seg_doorbell(const struct tti_shm_seg *seg, int index);
struct tti_shm_agreement *tti_shm_seg_agreement(const struct tti_shm_seg *seg);
struct tti_shm_trial *tti_shm_seg_trial(const struct tti_shm_seg *seg, int index);
struct tti_shm_entry *tti_shm_seg_ring(const struct tti_shm_seg *seg, int index);
uint8_t *tti_shm_seg_broadcast(const struct tti_shm_seg *seg, int index);

/* The pair region of two ranks (a != b), taken if they have none yet; tti_shm_pair_unmap(). */
TUTTI_CHECKED tutti_status tti_shm_pair_map(const struct tti_shm_seg *seg, int a, int b,
					    struct tti_shm_pair **out);
void tti_shm_pair_unmap(const struct tti_shm_seg *seg, struct tti_shm_pair *pair);

#endif
