/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_CORE_PREPARE_PROGRAMS_H
#define TTI_CORE_PREPARE_PROGRAMS_H

/* Which program runs a call, and the programs that the communicator keeps.
 *
 * Owner: the communicator. Threads: the executing one's, but for tti_programs_predict(). */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "coll/choose/choose.h"
#include "util/vec.h"

/* Programs of sends and receives; on a device also single ones are lists, and each is copied there. */
#define TTI_LISTS_KEPT           8
#define TTI_LISTS_KEPT_ON_DEVICE 64

struct tti_executable;
struct tti_comm;
struct tti_tune_time;

/* A program, found by what it was made of: a struct tti_program_key, the steps of a list of sends
 * and receives, or the parts of a handoff (handoff.h). */
struct tti_program_kept {
	tutti_collective coll;
	void *key;
	size_t key_bytes;
	uint64_t used; /* when last */
	struct tti_executable *executable;
};

/* No padding: keys are compared byte by byte. */
struct tti_program_key {
	const struct tti_algorithm *algo;
	struct tti_split split;
	int32_t root, in_place;
};

/* What was chosen for calls of some kind and size class. */
struct tti_choice_kept {
	uint64_t key;
	const char *algo; /* of the calls */
	struct tti_choice choice;
	uint64_t hash; /* of the choice: ranks that run together have the same */
};

struct tti_programs {
	TTI_VEC(struct tti_choice_kept) choices;
	TTI_VEC(struct tti_program_kept) kept;
	uint64_t uses;
};

/* Which program a call needs. */
struct tti_program_need {
	tutti_collective coll; /* one that has programs (coll/collective.h)               */
	int root;
	bool in_place;        /* of this rank, where it makes a difference                 */
	bool uneven;          /* rows have lengths of their own                            */
	enum tti_reach reach; /* how all ranks reach each other's buffers           */
	size_t nbytes;        /* of the whole vector                                */
	enum tti_order order;
	const char *algo; /* of its arguments */
};

/* How a program goes through the data: bytes of a step, parts, stripes, and how other ranks'
 * buffers are reached. */
enum tti_program_reach { TTI_BY_SLOTS, TTI_BY_MEMORY, TTI_BY_MEMORY_FORCED, TTI_BY_COPIES };
static inline uint64_t tti_program_split(size_t slice_bytes, struct tti_split split,
					 enum tti_program_reach reach)
{
	return (uint64_t)slice_bytes << 26 | (uint64_t)(split.parts & 0xfff) << 14 |
	       (uint64_t)(split.stripes & 0xfff) << 2 | reach;
}

/* The program, and what it was chosen by: until the next choice. */
TUTTI_CHECKED tutti_status tti_programs_get(struct tti_comm *comm,
					    const struct tti_program_need *need,
					    const struct tti_choice_kept **choice_out,
					    struct tti_executable **out);
/* How long such a call should take by messages. It looks at nothing that calls change.
 * TUTTI_EUNSUPPORTED: there is no model of its algorithm. */
TUTTI_CHECKED tutti_status tti_programs_predict(const struct tti_comm *comm,
						const struct tti_program_need *need,
						struct tti_tune_time *out);
void tti_programs_release(struct tti_comm *comm);

/* The program that is kept by such a key; NULL: there is none. */
struct tti_executable *tti_programs_find(struct tti_comm *comm, tutti_collective coll,
					 const void *key, size_t key_bytes);
/* Bind a program, and keep it as long as the communicator lives. Programs of sends and receives,
 * and of handoffs, only until TTI_LISTS_KEPT, or TTI_HANDOFF_PROGRAMS_KEPT, others were used
 * since. Takes *prog over. */
TUTTI_CHECKED tutti_status tti_programs_add(struct tti_comm *comm, const void *key,
					    size_t key_bytes, struct tti_program *prog,
					    struct tti_executable **out);
/* Compile a program, which it takes over, and bind it to links. */
TUTTI_CHECKED tutti_status tti_programs_bind(struct tti_comm *comm, struct tti_program *prog,
					     struct tti_executable **out);

#endif
