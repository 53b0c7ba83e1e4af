/* SPDX-License-Identifier: BSD-3-Clause */
#include "tutti/insight.h"

#include "coll/check/check.h"
#include "coll/files/text.h"
#include "coll/program.h"
#include "insight/plan/program_print.h"
#include "insight/print/print_words.h"
#include "util/error.h"
#include "util/mem.h"
#include "util/strbuf.h"

const char *tutti_algorithm_name(tutti_collective coll, int index)
{
	const struct tti_algorithm *algo = tti_algorithm_at(coll, index);

	return algo ? algo->name : NULL;
}

static void release(struct tti_program *prog, int n)
{
	for (int i = 0; prog && i < n; i++)
		tti_program_release(&prog[i]);
	tti_free(prog);
}

/* Programs of ranks first .. first+n-1. */
static tutti_status print(const struct tti_program *prog, int n, int json, struct tti_strbuf *buf)
{
	if (json)
		return tti_program_print_json(prog, n, buf);
	tti_program_print_head(prog, buf);
	for (int i = 0; i < n; i++)
		tti_program_print_rank(&prog[i], buf);
	return TUTTI_OK;
}

static tutti_status find_algorithm(tutti_collective coll, const char *algorithm,
				   const struct tti_algorithm **out)
{
	const struct tti_algorithm *algo;
	struct tti_strbuf names = { 0 };
	tutti_status st;

	*out = algorithm ? tti_algorithm_find(coll, algorithm) : NULL;
	if (*out)
		return TUTTI_OK;
	for (int i = 0; (algo = tti_algorithm_at(coll, i)); i++)
		tti_strbuf_addf(&names, "%s%s", i ? ", " : "", algo->name);
	st = tti_fail(TUTTI_EINVAL, "%s has no algorithm \"%s\": it has %s",
		      tutti_collective_name(coll), algorithm ? algorithm : "",
		      names.text ? names.text : "none");
	tti_strbuf_release(&names);
	return st;
}

/* Hosts as groups; NULL: no shape. */
static tutti_status lay_over_hosts(const int *host_of, int n, struct tti_shape **out)
{
	uint32_t *group_of;
	tutti_status st;

	*out = NULL;
	if (!host_of)
		return TUTTI_OK;
	group_of = tti_calloc((size_t)n, sizeof(*group_of));
	if (!group_of)
		return tti_fail(TUTTI_ENOMEM, "hosts of %d ranks", n);
	for (int rank = 0; rank < n; rank++)
		group_of[rank] = (uint32_t)host_of[rank];
	st = tti_shape_of_groups(group_of, (uint32_t)n, out);
	tti_free(group_of);
	return st;
}

/* The programs of rank `first` and those that follow. */
static tutti_status build(const struct tti_algorithm *algo, const struct tti_shape *shape,
			  int nranks, int root, int first, int n, struct tti_program *prog)
{
	size_t nsteps = 0;

	for (int i = 0; i < n; i++) {
		TTI_TRY(tti_program_build(
			algo,
			&(struct tti_program_spec){
				.shape = shape, .rank = first + i, .n = nranks, .root = root },
			&prog[i]));
		nsteps += prog[i].steps.n;
		if (nsteps > TTI_TEXT_STEPS_MAX)
			return tti_fail(TUTTI_EINVAL,
					"%s of %d ranks has more than %d steps: choose a rank",
					algo->name, nranks, TTI_TEXT_STEPS_MAX);
	}
	return TUTTI_OK;
}

tutti_status tutti_program_print_hosts(tutti_collective coll, const char *algorithm,
				       const int *host_of, int nranks, int root, int rank, int json,
				       char **out)
{
	const int n = rank < 0 ? nranks : 1;
	const struct tti_algorithm *algo;
	struct tti_strbuf buf = { 0 };
	struct tti_shape *shape = NULL;
	struct tti_program *prog;
	tutti_status st;

	if (!out)
		return tti_fail(TUTTI_EINVAL, "tutti_program_print: out is NULL");
	TTI_TRY(find_algorithm(coll, algorithm, &algo));
	if (nranks < 1 || nranks > TTI_TEXT_RANKS_MAX)
		return tti_fail(TUTTI_EINVAL, "programs of %d ranks: 1 to %d can be printed",
				nranks, TTI_TEXT_RANKS_MAX);
	TTI_TRY(lay_over_hosts(host_of, nranks, &shape));
	prog = tti_calloc((size_t)n, sizeof(*prog));
	if (prog)
		st = build(algo, shape, nranks, root, rank < 0 ? 0 : rank, n, prog);
	else
		st = tti_fail(TUTTI_ENOMEM, "programs of %d ranks", n);
	if (st == TUTTI_OK)
		st = print(prog, n, json, &buf);
	release(prog, n);
	tti_shape_free(shape);
	return tti_print_take(st, &buf, "programs as text", out);
}

tutti_status tutti_program_print(tutti_collective coll, const char *algorithm, int nranks, int root,
				 int rank, int json, char **out)
{
	return tutti_program_print_hosts(coll, algorithm, NULL, nranks, root, rank, json, out);
}

/* More slots never hold anything up, so a proof for one slot is one for any. */
tutti_status tutti_program_verify(const char *text)
{
	struct tti_program *prog;
	tutti_status st;
	int n;

	if (!text)
		return tti_fail(TUTTI_EINVAL, "tutti_program_verify: text is NULL");
	TTI_TRY(tti_program_read(text, &prog, &n));
	st = tti_program_check(prog, n, 1, TTI_ORDER_ANY);
	release(prog, n);
	return st;
}
