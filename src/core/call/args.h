/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_CORE_CALL_ARGS_H
#define TTI_CORE_CALL_ARGS_H

/* The arguments of a call, and what can be wrong with them.
 *
 * Owner: the caller; what a call holds on to is counted, tti_args_take(). Threads: pure, but any
 * may take and drop. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "coll/collective.h"
#include "core/call/counts.h"
#include "core/prepare/operators.h"
#include "tutti/tutti.h"

struct tti_comm;
struct tti_sides;

/* What a rank does in a call of the user's. Some calls begin with calls of the library's own, which
 * have the number of the user's. */
enum tti_stage {
	TTI_STAGE_CALL,     /* the call itself                      */
	TTI_STAGE_ROOTS,    /* of a rooted one, with TUTTI_CHECK=1  */
	TTI_STAGE_SOURCES,  /* of a handoff, with TUTTI_CHECK=1     */
	TTI_STAGE_DECISION, /* of a handoff that is planned         */
	TTI_STAGE_SHAPE,
	TTI_STAGE_PROOFS,
	TTI_STAGE_LANES, /* lanes between GPUs are made */
	TTI_STAGES
};

/* One call as the user made it. */
struct tti_args {
	tutti_collective coll;
	const void *send;
	void *recv;
	size_t count;
	tutti_type type;
	tutti_op op;                 /* reproducible, if the communicator is, too */
	struct tti_operator *custom; /* of op; NULL: it is one of TUTTI_OP_MAP    */
	int root; /* or the peer of a send or receive; in a handoff a hash of its sides */
	bool is_send;
	/* The sides of a handoff, as the user passed them; counted once the call is kept. */
	const tutti_side *from, *to;
	struct tti_sides *sides;
	/* Of calls with a count for each rank: in elements, the user's until the call is kept;
	 * NULL where this rank has none. Where all ranks have the same, `count` is their sum and
	 * `root` a hash of them. */
	const size_t *send_counts, *send_displs, *recv_counts, *recv_displs;
	struct tti_counts *counts;
	/* As TUTTI_ALGO, of the communicator or of tutti_comm_set_algorithm() when the call was
	 * made; NULL: none is forced. Equal texts of a communicator are one text. */
	const char *algo;
	/* What the library tells itself, the same on all ranks: it lies in memory of the host, and the
	 * host moves it where calls are kernels. */
	bool on_host;
	/* The user's call that this one is a part of; ranks compare and report that one. NULL: this
	 * is the user's. */
	const struct tti_args *part_of;
	enum tti_stage stage;
};

/* The operator of a call that reduces, which is reproducible if the communicator is; no other
 * argument is looked at. */
TUTTI_CHECKED tutti_status tti_args_find_operator(const struct tti_comm *comm,
						  struct tti_args *args);
TUTTI_CHECKED tutti_status tti_args_check(const struct tti_comm *comm, const struct tti_args *args);

/* Whether send and receive buffer are one. */
bool tti_args_in_place(const struct tti_comm *comm, const struct tti_args *args);

/* Which elements this rank reads at send, or writes at recv: all from the first to the last. */
void tti_args_range(const struct tti_comm *comm, const struct tti_args *args, bool is_send,
		    struct tti_range *out);

/* What a call that is kept for later holds on to. */
struct tti_args tti_args_take(const struct tti_args *args);
void tti_args_drop(const struct tti_args *args);

/* A call for people: "all_reduce(1024 x float32, sum)". `sides`: of a handoff. */
void tti_args_format(const struct tti_args *args, const char *sides, char *buf, size_t size);

/* What ranks compare of the count: 0 where each has its own. */
static inline size_t tti_args_common_count(const struct tti_args *args)
{
	return tti_is_by_pairs(args->coll) ? 0 : args->count;
}

/* All of a call but buffers and count in one number, and back. */
static inline uint64_t tti_args_pack(const struct tti_args *args)
{
	return (uint64_t)args->coll | (uint64_t)args->type << 8 | (uint64_t)args->op << 16 |
	       (uint64_t)args->is_send << 31 | (uint64_t)(uint32_t)args->root << 32;
}

static inline struct tti_args tti_args_unpack(uint64_t packed, size_t count)
{
	return (struct tti_args){ .coll = (tutti_collective)(packed & 0xff),
				  .count = count,
				  .type = (tutti_type)(packed >> 8 & 0xff),
				  .op = (tutti_op)(packed >> 16 & ((1 << TTI_OP_BITS) - 1)),
				  .root = (int)(uint32_t)(packed >> 32),
				  .is_send = packed >> 31 & 1 };
}

/* A ping of `peer` in place of a call, packed. */
#define TTI_PING_COLL 0xff
static inline uint64_t tti_args_pack_ping(int peer)
{
	return TTI_PING_COLL | (uint64_t)(uint32_t)peer << 32;
}

#endif
