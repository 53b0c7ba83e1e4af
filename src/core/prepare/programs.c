/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/prepare/programs.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "coll/choose/forced.h"
#include "core/comm.h"
#include "core/comm_error.h"
#include "core/device/device.h"
#include "core/handle.h"
#include "core/handoff/handoff.h"
#include "core/init/tuning.h"
#include "plan/tune/tune.h"
#include "util/error.h"
#include "util/hash.h"
#include "util/log.h"
#include "util/mem.h"
#include "util/params.h"

_Static_assert(sizeof(struct tti_program_key) ==
		       sizeof(void *) + sizeof(struct tti_split) + 2 * sizeof(int32_t),
	       "a key has no padding");

/* -- What is kept ------------------------------------------------------------------- */

static void forget(struct tti_comm *comm, struct tti_program_kept *kept)
{
	if (comm->device)
		tti_device_forget(comm->device, kept->executable);
	tti_executable_free(kept->executable);
	tti_free(kept->key);
}

void tti_programs_release(struct tti_comm *comm)
{
	struct tti_programs *programs = &comm->programs;

	for (size_t i = 0; i < programs->kept.n; i++)
		forget(comm, &programs->kept.at[i]);
	tti_vec_release(&programs->kept);
	tti_vec_release(&programs->choices);
	for (size_t i = 0; i < comm->algos.n; i++)
		tti_free(comm->algos.at[i]);
	tti_vec_release(&comm->algos);
}

struct tti_executable *tti_programs_find(struct tti_comm *comm, tutti_collective coll,
					 const void *key, size_t key_bytes)
{
	struct tti_programs *programs = &comm->programs;

	for (size_t i = 0; i < programs->kept.n; i++) {
		struct tti_program_kept *kept = &programs->kept.at[i];

		if (kept->coll != coll || kept->key_bytes != key_bytes ||
		    memcmp(kept->key, key, key_bytes) != 0)
			continue;
		kept->used = ++programs->uses;
		return kept->executable;
	}
	return NULL;
}

/* False: out of memory. */
static bool keep(struct tti_comm *comm, const struct tti_program_kept *fresh)
{
	const int lists = comm->device ? TTI_LISTS_KEPT_ON_DEVICE : TTI_LISTS_KEPT;
	struct tti_programs *programs = &comm->programs;
	struct tti_program_kept *oldest = NULL;
	int n = 0;

	for (size_t i = 0; i < programs->kept.n; i++) {
		struct tti_program_kept *kept = &programs->kept.at[i];

		if (kept->coll != fresh->coll)
			continue;
		n++;
		if (!oldest || kept->used < oldest->used)
			oldest = kept;
	}
	if (n < (fresh->coll == TUTTI_SEND_RECV ? lists
		 : fresh->coll == TUTTI_HANDOFF ? TTI_HANDOFF_PROGRAMS_KEPT
						: INT_MAX))
		return tti_vec_push(&programs->kept, *fresh);
	forget(comm, oldest);
	*oldest = *fresh;
	return true;
}

tutti_status tti_programs_bind(struct tti_comm *comm, struct tti_program *prog,
			       struct tti_executable **out)
{
	struct tti_compiled compiled;
	const tutti_status st = tti_compile(prog, &compiled);

	tti_program_release(prog);
	return st == TUTTI_OK ? tti_executable_create(&comm->engine, &compiled, out) : st;
}

tutti_status tti_programs_add(struct tti_comm *comm, const void *key, size_t key_bytes,
			      struct tti_program *prog, struct tti_executable **out)
{
	struct tti_program_kept fresh = { .coll = prog->coll,
					  .key = tti_alloc(key_bytes),
					  .key_bytes = key_bytes,
					  .used = ++comm->programs.uses };
	tutti_status st = tti_programs_bind(comm, prog, &fresh.executable);

	if (fresh.key)
		memcpy(fresh.key, key, key_bytes);
	if (st == TUTTI_OK && (!fresh.key || !keep(comm, &fresh)))
		st = tti_fail(TUTTI_ENOMEM, "programs of %s: out of memory",
			      tutti_collective_name(fresh.coll));
	if (st == TUTTI_OK)
		*out = fresh.executable;
	else
		forget(comm, &fresh);
	return st;
}

/* -- Choice -------------------------------------------------------------------------- */

/* Programs are chosen once per size class (a power of two). */
static int size_class(size_t nbytes)
{
	return nbytes <= 1 ? 0 : 64 - __builtin_clzll(nbytes - 1);
}

/* The key of a choice. A file of the user is for exact sizes, so it has choices of its own (file >=
 * 0). */
static uint64_t choice_key(const struct tti_program_need *need, int class, int file)
{
	const uint64_t key =
		(uint64_t) class | (uint64_t)need->reach << 8 | (uint64_t)need->uneven << 28;

	if (file >= 0)
		return key | (uint64_t)(file + 1) << 32;
	return key | (uint64_t)need->coll << 16 | (uint64_t)need->order << 24;
}

static struct tti_choice_input input_of(const struct tti_comm *comm,
					const struct tti_program_need *need, int class, int file)
{
	return (struct tti_choice_input){
		.coll = need->coll,
		.n = comm->n,
		.nbytes = class >= 63 ? SIZE_MAX / 2 : (size_t)1 << class,
		.nhosts = comm->nhosts,
		.oversubscribed = comm->oversubscribed_somewhere,
		.in_order = comm->devices != NULL,
		.order = need->order,
		.reach = need->reach,
		.figures = comm->memory.port ? &comm->memory.port->figures : NULL,
		.slot_bytes = comm->slot_bytes,
		.shape = comm->shape,
		.machine = comm->tuning.machine,
		.tune = comm->tuning.table,
		.files = comm->tuning.files,
		.file = file,
	};
}

static tutti_status choose(struct tti_comm *comm, const struct tti_program_need *need, int class,
			   int file, uint64_t key)
{
	static const char *const wheres[] = {
		[TTI_REACH_SLOTS] = "",
		[TTI_REACH_MAPPED] = " of mapped memory",
		[TTI_REACH_COPIED] = " of memory that the kernel copies",
	};
	const struct tti_choice_input input = input_of(comm, need, class, file);
	struct tti_choice_kept kept = { .key = key, .algo = need->algo };
	struct tti_choice *choice = &kept.choice;

	TTI_TRY(tti_choose(&input, need->algo, tti_params()->slice, choice));
	/* One row may have all the data, so each rank does a part of every row. */
	if (choice->algo->needs_memory && need->uneven)
		choice->split.parts = 2;
	kept.hash = tti_hash_combine(
		tti_hash_bytes(choice->algo->name, strlen(choice->algo->name)),
		tti_program_split(choice->slice_bytes, choice->split, TTI_BY_SLOTS) |
			(choice->by == TTI_CHOICE_FORCED));
	if (!tti_vec_push(&comm->programs.choices, kept))
		return tti_fail(TUTTI_ENOMEM, "choice of algorithms: out of memory");
	tti_log(TTI_LOG_INFO, TTI_COLL,
		"%s up to %zu bytes%s%s: %s (%s), %zu bytes a step, parts %d, stripes %d",
		tutti_collective_name(need->coll), input.nbytes,
		need->order == TTI_ORDER_ANY     ? ""
		: need->order == TTI_ORDER_RANKS ? " in the order of ranks"
						 : " in the order of ranks in one pass",
		wheres[need->reach], choice->algo->name, tti_choice_by_text(choice->by),
		choice->slice_bytes, choice->split.parts, choice->split.stripes);
	return TUTTI_OK;
}

static tutti_status build(struct tti_comm *comm, const struct tti_program_key *key,
			  struct tti_executable **out)
{
	const struct tti_program_spec how = { .shape = comm->shape,
					      .split = key->split,
					      .rank = comm->rank,
					      .n = comm->n,
					      .root = key->root,
					      .in_place = key->in_place };
	struct tti_program prog;

	TTI_TRY(tti_program_build(key->algo, &how, &prog));
	return tti_programs_add(comm, key, sizeof(*key), &prog, out);
}

/* The user's algorithm for such a call; -1: there is none. */
static int find_file(const struct tti_comm *comm, const struct tti_program_need *need)
{
	return need->order == TTI_ORDER_ANY ? tti_algo_files_find(comm->tuning.files, need->coll,
								  comm->n, need->root, need->nbytes)
					    : -1;
}

tutti_status tti_programs_predict(const struct tti_comm *comm, const struct tti_program_need *need,
				  struct tti_tune_time *out)
{
	const struct tti_tune_machine machine =
		tti_tuning_machine(&comm->tuning, comm->n, comm->nhosts);
	struct tti_choice_input input =
		input_of(comm, need, size_class(need->nbytes), find_file(comm, need));
	struct tti_choice choice;

	TTI_TRY(tti_choose(&input, need->algo, tti_params()->slice, &choice));
	input.nbytes = need->nbytes;
	input.machine = &machine;
	if (tti_choice_predict(&input, choice.algo, out))
		return TUTTI_OK;
	return tti_fail(TUTTI_EUNSUPPORTED,
			"%s by algorithm %s: there is no model of the time that it takes",
			tutti_collective_name(need->coll), choice.algo->name);
}

tutti_status tti_programs_get(struct tti_comm *comm, const struct tti_program_need *need,
			      const struct tti_choice_kept **choice_out,
			      struct tti_executable **out)
{
	const int class = size_class(need->nbytes);
	const int file = find_file(comm, need);
	const uint64_t what = choice_key(need, class, file);
	struct tti_programs *programs = &comm->programs;
	const struct tti_choice *choice;
	struct tti_program_key key;
	size_t i = 0;

	while (i < programs->choices.n &&
	       (programs->choices.at[i].key != what || programs->choices.at[i].algo != need->algo))
		i++;
	if (i == programs->choices.n)
		TTI_TRY(choose(comm, need, class, file, what));
	*choice_out = &programs->choices.at[i];
	choice = &programs->choices.at[i].choice;
	key = (struct tti_program_key){
		.algo = choice->algo,
		.split = choice->split,
		.root = tti_collective_is_rooted(need->coll) ? need->root : 0,
		.in_place = need->in_place,
	};
	*out = tti_programs_find(comm, key.algo->coll, &key, sizeof(key));
	return *out ? TUTTI_OK : build(comm, &key, out);
}

/* -- Algorithms for some calls -------------------------------------------------------- */

/* The one copy of equal texts, which lives as long as the communicator; NULL: out of memory. Under
 * the lock. */
static const char *text_of(struct tti_comm *comm, const char *algo)
{
	char *text;

	if (comm->algo && strcmp(comm->algo, algo) == 0)
		return comm->algo;
	for (size_t i = 0; i < comm->algos.n; i++)
		if (strcmp(comm->algos.at[i], algo) == 0)
			return comm->algos.at[i];
	text = tti_strdup(algo);
	if (text && !tti_vec_push(&comm->algos, text)) {
		tti_free(text);
		text = NULL;
	}
	return text;
}

static tutti_status set_algorithm(struct tti_comm *comm, const char *algo)
{
	const char *text = comm->algo;
	struct tti_forced forced;

	TTI_TRY(tti_comm_usable(comm));
	/* This checks the whole text, for any collective. */
	if (algo &&
	    tti_forced_read(algo, TUTTI_BARRIER, 0, comm->tuning.files, &forced) != TUTTI_OK) {
		char why[TTI_ERROR_TEXT];

		(void)snprintf(why, sizeof(why), "%s", tti_error_text());
		return tti_fail_quiet(TUTTI_EINVAL,
				      "tutti_comm_set_algorithm(), by the rules of %s", why);
	}
	if (algo && *algo) {
		pthread_mutex_lock(&comm->lock);
		text = text_of(comm, algo);
		pthread_mutex_unlock(&comm->lock);
		if (!text)
			return tti_fail(TUTTI_ENOMEM, "tutti_comm_set_algorithm(): out of memory");
	} else if (algo) {
		text = NULL;
	}
	atomic_store(&comm->call_algo, text);
	return TUTTI_OK;
}

tutti_status tutti_comm_set_algorithm(tutti_comm_t handle, const char *algo)
{
	struct tti_comm *comm;

	TTI_TRY(tti_handle_enter(handle, &comm));
	return tti_handle_end(handle, comm, set_algorithm(comm, algo));
}
