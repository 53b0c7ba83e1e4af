/* SPDX-License-Identifier: BSD-3-Clause */
/* The output of `tutti tune`: for each collective and size the predicted time of each algorithm,
 * and the algorithm that is chosen: by tti_choose() in host memory, as in communicators, and by
 * the model on GPUs. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "coll/choose/choose.h"
#include "coll/shape.h"
#include "insight/plan/inspect.h"
#include "insight/print/print_words.h"
#include "insight/tune/tune_any.h"
#include "insight/tune/tune_write.h"
#include "plan/tune/tune.h"
#include "plan/tune/tune_path.h"
#include "util/error.h"
#include "util/json.h"
#include "util/params.h"
#include "util/strbuf.h"

#define LEAST_BYTES 8
#define MOST_BYTES  ((size_t)1 << 30)
#define NAME_WIDTH  11

struct view {
	const struct tti_tune_table *tune;
	const struct tti_algo_files *files; /* NULL: none */
	const struct tti_shape *shape;
	struct tti_tune_any machine;
	struct tti_strbuf *out;
};

/* -- What is shown ---------------------------------------------------------------- */

/* Such a call, as a communicator would choose for it. */
static struct tti_choice_input input_of(const struct view *v, tutti_collective coll, size_t nbytes)
{
	const struct tti_tune_machine *machine = &v->machine.host;

	return (struct tti_choice_input){
		.coll = coll,
		.n = (int)machine->n,
		.nbytes = nbytes,
		.nhosts = (int)machine->nnodes,
		.oversubscribed = machine->cores > 0 && machine->cores < machine->most,
		.slot_bytes = (size_t)v->tune->constants.slot_bytes,
		.shape = v->shape,
		.machine = machine,
		.tune = v->tune,
		.files = v->files,
		.file = tti_algo_files_find(v->files, coll, (int)machine->n, 0, nbytes),
	};
}

/* Between hosts in as many stripes as it would go in: that is what the choice compares. */
static bool predicted(const struct view *v, tutti_collective coll, int algo, size_t nbytes,
		      struct tti_tune_time *out)
{
	const char *name = tti_tune_algo_name((enum tti_tune_algo)algo);
	const struct tti_choice_input input = input_of(v, coll, nbytes);
	const struct tti_algorithm *algorithm = tti_algorithm_find(coll, name);

	if (!v->machine.gpu && v->machine.host.nnodes > 1)
		return algorithm && tti_choice_predict(&input, algorithm, out);
	return tti_tune_any_predict(&v->tune->constants, &v->machine, coll,
				    (enum tti_tune_algo)algo, nbytes, out);
}

/* The algorithm that is chosen, and what decided. */
struct taken {
	const char *name, *by;
};

/* The choice of a communicator. */
static tutti_status choose_on_hosts(const struct view *v, tutti_collective coll, size_t nbytes,
				    struct taken *out)
{
	const struct tti_choice_input input = input_of(v, coll, nbytes);
	struct tti_choice choice;

	TTI_TRY(tti_choose(&input, tti_params()->algo, tti_params()->slice, &choice));
	*out = (struct taken){ choice.algo->name, tti_choice_by_text(choice.by) };
	return TUTTI_OK;
}

static tutti_status choose(const struct view *v, tutti_collective coll, size_t nbytes,
			   struct taken *out)
{
	enum tti_tune_algo algo;

	if (!v->machine.gpu)
		return choose_on_hosts(v, coll, nbytes, out);
	if (!tti_tune_choose(v->tune, &v->machine, coll, nbytes, &algo))
		return tti_fail(TUTTI_EPLAN, "no channels for %s", tutti_collective_name(coll));
	*out = (struct taken){ tti_tune_algo_name(algo), tti_choice_by_text(TTI_CHOICE_BY_MODEL) };
	return TUTTI_OK;
}

static bool has_any(const struct view *v, tutti_collective coll)
{
	struct tti_tune_time time;

	for (int algo = 0; algo < TTI_TUNE_ALGO_COUNT; algo++)
		if (predicted(v, coll, algo, 0, &time))
			return true;
	return false;
}

/* 0 for a barrier, else from 8 bytes to 1 GiB; SIZE_MAX: the end. */
static size_t first_size(tutti_collective coll)
{
	return coll == TUTTI_BARRIER ? 0 : LEAST_BYTES;
}

static size_t next_size(size_t nbytes)
{
	return nbytes == 0 || nbytes >= MOST_BYTES ? SIZE_MAX : nbytes * 8;
}

/* -- As text ---------------------------------------------------------------------- */

static void print_size(struct tti_strbuf *out, size_t nbytes)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB" };
	int unit = 0;

	for (; unit < 3 && nbytes >= 1024; unit++)
		nbytes /= 1024;
	tti_strbuf_addf(out, "%5zu %-3s", nbytes, units[unit]);
}

static int width_of(enum tti_tune_algo algo)
{
	const int len = (int)strlen(tti_tune_algo_name(algo));

	return len > NAME_WIDTH ? len : NAME_WIDTH;
}

static bool is_taken(const struct taken *taken, int algo)
{
	return strcmp(taken->name, tti_tune_algo_name((enum tti_tune_algo)algo)) == 0;
}

static tutti_status print_row(const struct view *v, tutti_collective coll, size_t nbytes)
{
	struct taken taken;
	struct tti_tune_time time;

	TTI_TRY(choose(v, coll, nbytes, &taken));
	print_size(v->out, nbytes);
	for (int algo = 0; algo < TTI_TUNE_ALGO_COUNT; algo++)
		if (predicted(v, coll, algo, nbytes, &time))
			tti_strbuf_addf(v->out, " %*.*f%s", width_of((enum tti_tune_algo)algo),
					time.us < 1000 ? 2 : 0, time.us,
					is_taken(&taken, algo) ? "*" : " ");
	/* An algorithm without a prediction has no column. */
	tti_strbuf_addf(v->out, " %s, %s\n", taken.name, taken.by);
	return TUTTI_OK;
}

static tutti_status print_collective(const struct view *v, tutti_collective coll)
{
	struct tti_tune_time time;

	tti_strbuf_addf(v->out, "\n%s\n%9s", tutti_collective_name(coll), "");
	for (int algo = 0; algo < TTI_TUNE_ALGO_COUNT; algo++)
		if (predicted(v, coll, algo, 0, &time))
			tti_strbuf_addf(v->out, " %*s ", width_of((enum tti_tune_algo)algo),
					tti_tune_algo_name((enum tti_tune_algo)algo));
	tti_strbuf_add(v->out, "\n");
	for (size_t nbytes = first_size(coll); nbytes != SIZE_MAX; nbytes = next_size(nbytes))
		TTI_TRY(print_row(v, coll, nbytes));
	return TUTTI_OK;
}

static void print_head(const struct view *v)
{
	const struct tti_tune_machine *m = &v->machine.host;

	tti_strbuf_addf(v->out,
			"%u node%s, %u rank%s %s; predicted microseconds, * marks the choice, "
			"whose name and maker stand at the end of the row\n",
			m->nnodes, m->nnodes == 1 ? "" : "s", m->n, m->n == 1 ? "" : "s",
			v->machine.gpu
				? "on GPUs (by NCCL's model; Tutti's kernels choose by other rules)"
				: "in host memory");
}

/* -- As JSON ---------------------------------------------------------------------- */

static tutti_status json_row(const struct view *v, tutti_collective coll, size_t nbytes)
{
	struct tti_json json = { .out = v->out };
	struct taken taken;
	struct tti_tune_time time;

	TTI_TRY(choose(v, coll, nbytes, &taken));
	tti_json_open(&json, NULL, "{");
	tti_json_text(&json, "collective", tutti_collective_name(coll));
	tti_json_addf(&json, "bytes", "%zu", nbytes);
	tti_json_text(&json, "algorithm", taken.name);
	tti_json_addf(&json, "nodes", "%u", v->machine.host.nnodes);
	tti_json_addf(&json, "ranks", "%u", v->machine.host.n);
	tti_json_text(&json, "memory", v->machine.gpu ? "gpu" : "host");
	tti_json_text(&json, "by", taken.by);
	tti_json_open(&json, "predicted", "{");
	for (int algo = 0; algo < TTI_TUNE_ALGO_COUNT; algo++) {
		if (!predicted(v, coll, algo, nbytes, &time))
			continue;
		tti_json_open(&json, tti_tune_algo_name((enum tti_tune_algo)algo), "{");
		tti_json_addf(&json, "latency_us", "%.6g", time.latency_us);
		tti_json_addf(&json, "bw_gbps", "%.6g", time.bw_gbps);
		tti_json_addf(&json, "us", "%.6g", time.us);
		tti_json_close(&json);
	}
	tti_json_close(&json);
	tti_json_close(&json);
	tti_strbuf_add(v->out, "\n");
	return TUTTI_OK;
}

static tutti_status json_collective(const struct view *v, tutti_collective coll)
{
	for (size_t nbytes = first_size(coll); nbytes != SIZE_MAX; nbytes = next_size(nbytes))
		TTI_TRY(json_row(v, coll, nbytes));
	return TUTTI_OK;
}

/* -- All of it ---------------------------------------------------------------------- */

static tutti_status print(const struct view *v, const struct tutti_tune_config *config)
{
	if (!config->json)
		print_head(v);
	for (int i = 0; i < TUTTI_COLLECTIVE_COUNT; i++) {
		const tutti_collective coll = (tutti_collective)i;

		if ((config->collective >= 0 && config->collective != i) || !has_any(v, coll))
			continue;
		TTI_TRY(config->json ? json_collective(v, coll) : print_collective(v, coll));
	}
	return TUTTI_OK;
}

/* The machine of a plan, with the nodes if they are known. */
static struct tti_tune_any machine_of(tutti_plan_t plan, bool host_memory)
{
	struct tti_tune_any machine = tti_tune_any_of_plan(tti_inspect_plan(plan));
	const struct tti_plan_job *job = tti_inspect_job(plan);

	for (uint32_t i = 0; job && i < job->nnodes; i++)
		if (i == 0 || job->nodes[i].routes != job->nodes[i - 1].routes)
			tti_tune_any_add_node(&machine, job->nodes[i].routes->paths->graph);
	machine.gpu &= !host_memory;
	return machine;
}

static tutti_status read_tune(const char *path, struct tti_tune_table **out)
{
	static const char nothing[] = "";
	struct tti_tune_used used = { NULL, NULL };

	if (path && strcmp(path, "none") != 0)
		return tti_tune_read_file(path, out);
	if (!path)
		TTI_TRY(tti_tune_read_used(&used));
	*out = used.named ? used.named : used.measured;
	return *out ? TUTTI_OK : tti_tune_read(nothing, 0, "defaults", out);
}

static tutti_status check_config(const struct tutti_tune_config *config)
{
	if (config->size < sizeof(*config))
		return tti_fail(TUTTI_EINVAL,
				"config.size is %zu: begin with TUTTI_TUNE_CONFIG_INIT",
				config->size);
	if (config->collective >= TUTTI_COLLECTIVE_COUNT)
		return tti_fail(TUTTI_EINVAL, "there is no collective %d", config->collective);
	return TUTTI_OK;
}

/* As communicators make it of their plan. */
static tutti_status shape_of(const struct tti_plan *plan, struct tti_shape **out)
{
	TTI_TRY(tti_shape_of_plan(plan, out));
	return plan->nnodes > 1 ? TUTTI_OK : tti_shape_group_by_name(*out, plan);
}

tutti_status tutti_tune_print(tutti_plan_t plan, const struct tutti_tune_config *given, char **out)
{
	static const struct tutti_tune_config defaults = TUTTI_TUNE_CONFIG_INIT;
	const struct tutti_tune_config *config = given ? given : &defaults;
	const char *list = tti_params()->algo_file;
	struct tti_tune_table *tune = NULL;
	struct tti_algo_files *files = NULL;
	struct tti_shape *shape = NULL;
	struct tti_strbuf text = { 0 };
	tutti_status st;

	if (!plan || !out)
		return tti_fail(TUTTI_EINVAL, "tutti_tune_print: plan or out is NULL");
	*out = NULL;
	TTI_TRY(check_config(config));
	TTI_TRY(read_tune(config->tune_file, &tune));
	st = shape_of(tti_inspect_plan(plan), &shape);
	if (st == TUTTI_OK && list)
		st = tti_algo_files_read(list, &files);
	if (st == TUTTI_OK)
		st = print(&(struct view){ tune, files, shape,
					   machine_of(plan, config->host_memory), &text },
			   config);
	tti_shape_free(shape);
	tti_tune_table_free(tune);
	tti_algo_files_free(files);
	return tti_print_take(st, &text, "table of times", out);
}

tutti_status tutti_tune_print_file(const char *path, char **out)
{
	struct tti_tune_table *tune = NULL;
	struct tti_strbuf text = { 0 };

	if (!out)
		return tti_fail(TUTTI_EINVAL, "tutti_tune_print_file: out is NULL");
	*out = NULL;
	TTI_TRY(read_tune(path, &tune));
	tti_tune_write(tune, &text);
	tti_tune_table_free(tune);
	return tti_print_take(TUTTI_OK, &text, "table of constants", out);
}
