/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "core/comm.h"
#include "util/error.h"
#include "util/hash.h"
#include "util/log.h"
#include "util/mem.h"
#include "util/params.h"

/* Programs are chosen once per size class (a power of two), built once per algorithm,
 * cut and root, and kept for the life of the communicator. */

static int size_class(size_t nbytes)
{
	return nbytes <= 1 ? 0 : 64 - __builtin_clzll(nbytes - 1);
}

static tutti_status find_set(struct tti_comm *comm, const struct tti_algorithm *algo,
			     struct tti_cut cut, struct tti_program_set **out)
{
	const size_t nroots = tti_collective_is_rooted(algo->coll) ? (size_t)comm->n : 1;
	struct tti_programs *programs = comm->programs;
	struct tti_program_set *set;

	for (int i = 0; i < programs->nsets; i++) {
		set = &programs->sets[i];
		if (set->algo == algo && set->cut.parts == cut.parts &&
		    set->cut.stripes == cut.stripes) {
			*out = set;
			return TUTTI_OK;
		}
	}
	if (programs->nsets == TTI_MOST_SETS)
		return tti_fail(TUTTI_EINTERNAL, "more than %d algorithms in use", TTI_MOST_SETS);
	set = &programs->sets[programs->nsets];
	set->by_root = tti_calloc(2 * nroots, sizeof(*set->by_root));
	if (!set->by_root)
		return tti_fail(TUTTI_ENOMEM, "programs of %s: out of memory", algo->name);
	set->algo = algo;
	set->cut = cut;
	programs->nsets++;
	*out = set;
	return TUTTI_OK;
}

static tutti_status choose(struct tti_comm *comm, const struct tti_program_need *need, int class,
			   int file, struct tti_choice_entry *entry)
{
	const struct tti_params *params = tti_params();
	const struct tti_choice_input input = {
		.coll = need->coll,
		.n = comm->n,
		.nbytes = class >= 63 ? SIZE_MAX / 2 : (size_t)1 << class,
		.nhosts = comm->nhosts,
		.crowded = comm->crowded_somewhere,
		.order = need->order,
		.reaches_memory = need->memory,
		.slot_bytes = comm->slot_bytes,
		.shape = comm->shape,
		.machine = comm->tuning.machine,
		.tune = comm->tuning.table,
		.files = comm->tuning.files,
		.file = file,
	};
	struct tti_choice choice;
	struct tti_program_set *set = NULL;

	TTI_TRY(tti_choose(&input, comm->algo, params->slice, &choice));
	/* A row may be all there is, so each rank does a part of every row. */
	if (choice.algo->needs_memory && need->uneven)
		choice.cut.parts = 2;
	TTI_TRY(find_set(comm, choice.algo, choice.cut, &set));
	entry->slice_bytes = choice.slice_bytes;
	entry->is_pinned = choice.by == TTI_CHOICE_BY_PIN;
	entry->set = set;
	entry->hash = tti_hash_combine(
		tti_hash_bytes(choice.algo->name, strlen(choice.algo->name)),
		tti_program_cut(choice.slice_bytes, choice.cut, TTI_BY_SLOTS) | entry->is_pinned);
	tti_log(TTI_LOG_INFO, TTI_COLL,
		"%s up to %zu bytes%s: %s (%s), %zu bytes a step, parts %d, stripes %d",
		tutti_collective_name(need->coll), input.nbytes,
		need->order == TTI_ORDER_ANY     ? ""
		: need->order == TTI_ORDER_RANKS ? " in the order of ranks"
						 : " in the order of ranks in one pass",
		choice.algo->name, tti_choice_by_text(choice.by), choice.slice_bytes,
		choice.cut.parts, choice.cut.stripes);
	return TUTTI_OK;
}

static tutti_status build(struct tti_comm *comm, const struct tti_program_set *set, int root,
			  bool in_place, struct tti_bound **out)
{
	const struct tti_program_spec how = { .shape = comm->shape,
					      .cut = set->cut,
					      .rank = comm->rank,
					      .n = comm->n,
					      .root = root,
					      .in_place = in_place };
	struct tti_program prog;
	struct tti_compiled compiled;
	tutti_status st;

	TTI_TRY(tti_program_build_for(set->algo, &how, &prog));
	st = tti_compile(&prog, &compiled);
	tti_program_release(&prog);
	if (st != TUTTI_OK)
		return st;
	return tti_bound_create(&comm->engine, &compiled, out);
}

/* Where the choice for such calls is kept; NULL: out of memory. Sizes that a file is for
 * are exact, so where one is (file >= 0), it has choices of its own. Uneven calls stand at their own
 * collective. */
static struct tti_choice_entry *choice_at(struct tti_comm *comm,
					  const struct tti_program_need *need, int class, int file)
{
	const tutti_collective coll =
		need->uneven ? (tutti_collective)TUTTI_REDUCE_SCATTER_V : need->coll;
	struct tti_programs *programs = comm->programs;
	struct tti_choices **choices;

	if (!programs)
		programs = comm->programs = tti_zalloc(sizeof(*programs));
	if (!programs)
		return NULL;
	if (file >= 0) {
		if (!programs->of_file)
			programs->of_file =
				tti_calloc(comm->tuning.files->files.n, sizeof(*programs->of_file));
		return programs->of_file ? &programs->of_file[file][class] : NULL;
	}
	choices = &programs->choices[need->order][need->memory];
	if (!*choices)
		*choices = tti_zalloc(sizeof(**choices));
	return *choices ? &(*choices)->at[coll][class] : NULL;
}

tutti_status tti_programs_get(struct tti_comm *comm, const struct tti_program_need *need,
			      struct tti_program_found *out)
{
	const int class = size_class(need->nbytes);
	const int root = tti_collective_is_rooted(need->coll) ? need->root : 0;
	const int file = need->order == TTI_ORDER_ANY
				 ? tti_algo_files_find(comm->tuning.files, need->coll, comm->n,
						       need->root, need->nbytes)
				 : -1;
	struct tti_choice_entry *entry = choice_at(comm, need, class, file);
	struct tti_bound **bound;

	if (!entry)
		return tti_fail(TUTTI_ENOMEM, "choice of algorithms: out of memory");
	if (!entry->set)
		TTI_TRY(choose(comm, need, class, file, entry));
	bound = &entry->set->by_root[2 * root + need->in_place];
	if (!*bound)
		TTI_TRY(build(comm, entry->set, root, need->in_place, bound));
	*out = (struct tti_program_found){ .bound = *bound,
					   .algo = entry->set->algo,
					   .cut = entry->set->cut,
					   .slice_bytes = entry->slice_bytes,
					   .is_pinned = entry->is_pinned,
					   .choice = entry->hash };
	return TUTTI_OK;
}

void tti_programs_release(struct tti_comm *comm)
{
	struct tti_programs *programs = comm->programs;

	if (!programs)
		return;
	comm->programs = NULL;
	for (int i = 0; i < programs->nsets; i++) {
		const struct tti_program_set *set = &programs->sets[i];
		const int nroots = tti_collective_is_rooted(set->algo->coll) ? comm->n : 1;

		for (int at = 0; at < 2 * nroots; at++)
			tti_bound_free(set->by_root[at]);
		tti_free(set->by_root);
	}
	for (int order = 0; order <= TTI_ORDER_ONE_PASS; order++)
		for (int memory = 0; memory < 2; memory++)
			tti_free(programs->choices[order][memory]);
	tti_free(programs->of_file);
	tti_free(programs);
}
