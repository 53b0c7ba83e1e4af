/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "core/comm.h"
#include "util/error.h"
#include "util/log.h"
#include "util/mem.h"
#include "util/params.h"

/* Programs are chosen once per size class (a power of two), built once per algorithm
 * and root, and kept for the life of the communicator. */

static int size_class(size_t nbytes)
{
	return nbytes <= 1 ? 0 : 64 - __builtin_clzll(nbytes - 1);
}

static bool is_rooted(tutti_collective coll)
{
	return coll == TUTTI_BROADCAST || coll == TUTTI_REDUCE;
}

static tutti_status find_set(struct tti_comm *comm, const struct tti_algorithm *algo,
			     struct tti_program_set **out)
{
	const size_t nroots = is_rooted(algo->coll) ? (size_t)comm->n : 1;
	struct tti_program_set *set;

	for (int i = 0; i < comm->nsets; i++)
		if (comm->sets[i].algo == algo) {
			*out = &comm->sets[i];
			return TUTTI_OK;
		}
	if (comm->nsets == TTI_MOST_SETS)
		return tti_fail(TUTTI_EINTERNAL, "more than %d algorithms in use", TTI_MOST_SETS);
	set = &comm->sets[comm->nsets];
	set->by_root = tti_calloc(nroots, sizeof(*set->by_root));
	if (!set->by_root)
		return tti_fail(TUTTI_ENOMEM, "programs of %s: out of memory", algo->name);
	set->algo = algo;
	comm->nsets++;
	*out = set;
	return TUTTI_OK;
}

static tutti_status choose(struct tti_comm *comm, tutti_collective coll, int class,
			   struct tti_choice_entry *entry)
{
	const struct tti_params *params = tti_params();
	const struct tti_choice_input input = {
		.coll = coll,
		.n = comm->n,
		.nbytes = class >= 63 ? SIZE_MAX / 2 : (size_t)1 << class,
		.nhosts = comm->nhosts,
		.crowded = comm->crowded_somewhere,
		.slot_bytes = comm->slot_bytes,
		.inline_bytes = comm->inline_bytes,
		.shape = comm->shape,
		.machine = comm->tuning.machine,
		.tune = comm->tuning.table,
	};
	struct tti_choice choice;
	struct tti_program_set *set = NULL;

	TTI_TRY(tti_choose(&input, comm->algo, params->slice, &choice));
	TTI_TRY(find_set(comm, choice.algo, &set));
	entry->slice_bytes = choice.slice_bytes;
	entry->set = set;
	tti_log(TTI_LOG_INFO, TTI_COLL, "%s up to %zu bytes: %s, %zu bytes a step",
		tutti_collective_name(coll), input.nbytes, choice.algo->name, choice.slice_bytes);
	return TUTTI_OK;
}

static tutti_status build(struct tti_comm *comm, const struct tti_algorithm *algo, int root,
			  struct tti_bound **out)
{
	struct tti_program prog;
	struct tti_compiled compiled;
	tutti_status st;

	TTI_TRY(tti_program_build(algo, comm->shape, comm->rank, comm->n, root, &prog));
	st = tti_compile(&prog, &compiled);
	tti_program_release(&prog);
	if (st != TUTTI_OK)
		return st;
	return tti_bound_create(&comm->engine, &compiled, out);
}

tutti_status tti_programs_get(struct tti_comm *comm, tutti_collective coll, int root, size_t nbytes,
			      struct tti_bound **out, size_t *slice_bytes)
{
	const int class = size_class(nbytes);
	struct tti_choice_entry *entry = &comm->choice[coll][class];
	struct tti_bound **bound;

	if (!entry->set)
		TTI_TRY(choose(comm, coll, class, entry));
	bound = &entry->set->by_root[is_rooted(coll) ? root : 0];
	if (!*bound)
		TTI_TRY(build(comm, entry->set->algo, root, bound));
	*out = *bound;
	*slice_bytes = entry->slice_bytes;
	atomic_store_explicit(&comm->last_algorithm, entry->set->algo->name, memory_order_relaxed);
	return TUTTI_OK;
}

void tti_programs_release(struct tti_comm *comm)
{
	for (int i = 0; i < comm->nsets; i++) {
		const struct tti_program_set *set = &comm->sets[i];
		const int nroots = is_rooted(set->algo->coll) ? comm->n : 1;

		for (int root = 0; root < nroots; root++)
			tti_bound_free(set->by_root[root]);
		tti_free(set->by_root);
	}
	comm->nsets = 0;
}
