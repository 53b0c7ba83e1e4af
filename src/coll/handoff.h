/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_COLL_HANDOFF_H
#define TTI_COLL_HANDOFF_H

/* tutti_handoff(): one vector from the ranks of one side to those of another.
 *
 * A whole vector goes to a host once, in stripes: stripe i from the first rank of pair i to
 * its second, of that host, which gives it to all of the side on its host while the next
 * slice comes in. Where a pair's first rank is no source, it is of a host that is served
 * itself: so hosts stand in a chain, or in a tree.
 *
 *     sources        host 1               host 2
 *     0 ──────────▶  4 ─▶ 5, 6, 7 ─┬───▶  8 ─▶ 9          stripe 0
 *     1 ──────────▶  5 ─▶ 4, 6, 7 ─┼───▶  9 ─▶ 8          stripe 1
 *
 * Hosts that hold what they shall get serve themselves. A part of the vector that one rank
 * alone shall have goes straight to it; one that one rank alone has goes from that rank to a
 * host, from there to the next one, and inside as stripes do.
 *
 * Pure. Owner: who called. Threads: any. */

#include <stddef.h>
#include <stdint.h>

#include "coll/program.h"
#include "tutti/tutti.h"
#include "util/vec.h"

/* One stripe of what a host gets: `share` of the sum of the shares of its pairs. */
struct tti_handoff_pair {
	int32_t from;   /* a source; or a rank of side `to` whose host stands before */
	int32_t to;     /* of side `to`, on another host                       */
	uint32_t share; /* 1 or more                                           */
};

/* The pairs of all receiving hosts that hold no source, host after host; those of one host
 * in the order of their stripes. They matter where the vector is whole on both sides; else
 * only who receives does: the ranks that let in what comes to their host. */
struct tti_handoff_pairs {
	TTI_VEC(struct tti_handoff_pair) list;
};

void tti_handoff_pairs_release(struct tti_handoff_pairs *pairs);

/* The most pairs of one host, and the most that its shares add up to. */
#define TTI_HANDOFF_PAIRS_MOST  16
#define TTI_HANDOFF_SHARES_MOST 64

/* Which NIC of its host a rank would use first, by a number that those on one network have in
 * common, and how far it is: the nearest have the least level. */
struct tti_handoff_door {
	uint8_t nic, level;
};

/* A handoff among n ranks; borrows all. */
struct tti_handoff {
	int n;
	const int *host_of;  /* [n]: any numbers below n */
	tutti_side from, to; /* checked: in range, no rank twice on a side, n >= 1 */
	const struct tti_handoff_door *doors; /* [n]; NULL: not known, ranks go by number */
};

/* Pairs of those ranks of a side that sit beside NICs of their host, as near as any of them:
 * as many as there are on the smaller side, one to one, with equal shares. NICs take turns,
 * so that the first of one host meets the first of the other; so do hosts of sources.
 * Hosts stand in as many chains as hosts have sources.
 * `is_short`: one pair a host and hosts in a binomial tree, for what is over before all
 * stripes have begun. */
TUTTI_CHECKED tutti_status tti_handoff_pair_up(const struct tti_handoff *handoff, bool is_short,
					       struct tti_handoff_pairs *out);

/* TUTTI_EINVAL (quiet) names the first pair that is not as said above, or the host that has
 * none and needs one. */
TUTTI_CHECKED tutti_status tti_handoff_pairs_check(const struct tti_handoff *handoff,
						   const struct tti_handoff_pairs *pairs);

/* -- Chunks ----------------------------------------------------------------------- */

/* Neighbouring elements that go the same way. */
struct tti_handoff_chunk {
	size_t first, count;
	int32_t source, dest; /* which part of a sharded side it is of, -1: of a whole one */
	uint32_t num, den;    /* a stripe begins at num / den of the vector            */
};

struct tti_handoff_chunks {
	TTI_VEC(struct tti_handoff_chunk) list;
};

void tti_handoff_chunks_release(struct tti_handoff_chunks *chunks);

/* Cut a vector of `count` elements, stripes where lines of `line` elements begin: at least
 * one chunk. Two counts that give chunks of the same sources and dests have the same
 * program. */
TUTTI_CHECKED tutti_status tti_handoff_cut(const struct tti_handoff *handoff,
					   const struct tti_handoff_pairs *pairs, size_t count,
					   size_t line, struct tti_handoff_chunks *out);

/* The program of one rank over these chunks. */
TUTTI_CHECKED tutti_status tti_handoff_program(const struct tti_handoff *handoff,
					       const struct tti_handoff_pairs *pairs,
					       const struct tti_handoff_chunks *chunks, int rank,
					       struct tti_program *out);

/* The longest way of a chunk, in messages: how deep the pipeline is. */
TUTTI_CHECKED tutti_status tti_handoff_depth(const struct tti_handoff *handoff,
					     const struct tti_handoff_pairs *pairs, int *out);

#endif
