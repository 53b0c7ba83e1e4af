/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/trial.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "support/reference.h"
#include "support/shapes.h"
#include "util/error.h"

static void must(tutti_status st)
{
	if (st == TUTTI_OK)
		return;
	fprintf(stderr, "%s\n", tti_error_text());
	abort();
}

static struct tti_executable *bind_one(struct trial *trial, const struct tti_algorithm *algo,
				       const struct tti_shape *shape, int rank, int *nchunks)
{
	const struct trial_config *config = &trial->config;
	const struct tti_program_spec spec = {
		.shape = shape,
		.split = config->split,
		.rank = rank,
		.n = config->n,
		.root = config->root,
		.in_place = trial->in_place[rank],
	};
	struct tti_executable *bound = NULL;
	struct tti_program prog;
	struct tti_compiled compiled;

	must(tti_program_build(algo, &spec, &prog));
	must(tti_compile(&prog, &compiled));
	*nchunks = prog.nchunks;
	tti_program_release(&prog);
	must(tti_executable_create(&trial->bed.engine[rank], &compiled, &bound));
	return bound;
}

/* One that keeps the order of ranks, too. */
static const struct tti_algorithm *other_of(const struct tti_algorithm *algo)
{
	int i = 0;

	while (tti_algorithm_at(algo->coll, i)->needs_memory ||
	       tti_algorithm_at(algo->coll, i)->order < algo->order)
		i++;
	return tti_algorithm_at(algo->coll, i);
}

static void bind_rank(struct trial *trial, const struct tti_shape *shape, int rank)
{
	const struct tti_algorithm *algo = trial->config.algo;

	trial->bound[rank] = bind_one(trial, algo, shape, rank, &trial->nchunks);
	if (algo->needs_memory)
		trial->other[rank] =
			bind_one(trial, other_of(algo), shape, rank, &trial->other_chunks);
}

void trial_init(struct trial *trial, const struct trial_config *config,
		const struct bed_config *bed)
{
	struct tti_shape *shape =
		config->shape < 0
			? NULL
			: shape_draw(config->n, (enum shape_kind)config->shape, config->seed);
	uint64_t random = config->seed;

	memset(trial, 0, sizeof(*trial));
	trial->config = *config;
	bed_init(&trial->bed, bed);
	for (int rank = 0; rank < config->n; rank++)
		trial->in_place[rank] = next_random(&random) % 3 == 0;
	for (int rank = 0; rank < config->n; rank++)
		bind_rank(trial, shape, rank);
	tti_shape_free(shape);
	for (int at = 0; at < TRIAL_CALLS; at++)
		trial_make_call(trial, &trial->call[at], &random);
}

void trial_release(struct trial *trial)
{
	for (int at = 0; at < TRIAL_CALLS; at++) {
		for (int rank = 0; rank < trial->config.n; rank++) {
			free(trial->call[at].memory[rank]);
			free(trial->call[at].before[rank]);
			free(trial->call[at].want[rank]);
		}
		free(trial->call[at].extents);
	}
	for (int rank = 0; rank < trial->config.n; rank++) {
		tti_executable_free(trial->bound[rank]);
		tti_executable_free(trial->other[rank]);
	}
	bed_release(&trial->bed);
}

/* -- Running ------------------------------------------------------------------------------------ */

struct tti_layout trial_other_layout(const struct trial *trial, int rank, int at)
{
	struct tti_layout layout = trial->call[at].layout[rank];
	const int rows = trial->nchunks / layout.parts;

	layout.parts = trial->other_chunks / rows;
	layout.chunk_count = (layout.row_count + (size_t)layout.parts - 1) / (size_t)layout.parts;
	return layout;
}

static tutti_status otherwise(void *self, struct tti_job *job)
{
	struct trial *trial = self;
	const int rank = (int)(job - trial->bed.job), at = trial->at[rank];
	const struct trial_call *call = &trial->call[at];
	const struct tti_layout layout = trial_other_layout(trial, rank, at);

	return tti_job_program(job, &trial->bed.engine[rank], trial->other[rank], &layout,
			       &call->reducer[rank], TRIAL_OTHER_SLICE, call->tag + 1);
}

static bool name_buffer(const struct trial *trial, int rank, uintptr_t begin,
			struct tti_memory_buffer *buffer)
{
	struct tti_port *port = mock_port(trial->bed.port[0].mock, rank);

	return buffer->nbytes == 0 ||
	       port->transport->memory->name(port, (const void *)(begin + buffer->before),
					     buffer->nbytes, &buffer->name);
}

/* Whether others touch memory of this rank. Uneven calls have no other program, since extents are
 * of the chunks of this one. */
static bool may_refuse(const struct trial *trial, const struct trial_call *call, int rank)
{
	const tutti_collective coll = trial->config.algo->coll;

	return trial->config.refuses && !call->is_uneven &&
	       ((coll != TUTTI_GATHER && coll != TUTTI_SCATTER) || rank == trial->config.root);
}

bool trial_refuses(const struct trial *trial, int rank, int at)
{
	const struct trial_call *call = &trial->call[at];

	return may_refuse(trial, call, rank) && (call->tag >> (8 + rank)) % 2;
}

static void start_memory(struct trial *trial, int rank, int at)
{
	const struct trial_call *call = &trial->call[at];
	const struct tti_layout *layout = &call->layout[rank];
	struct tti_memory_call memory = {
		.coll = trial->config.algo->coll,
		.send = call->send[rank],
		.recv = call->recv[rank],
		.is_large = (call->tag & 1) != 0,
		.fallback = otherwise,
		.self = trial,
	};

	memory.is_ready = name_buffer(trial, rank, (uintptr_t)layout->input, &memory.send) &&
			  name_buffer(trial, rank, (uintptr_t)layout->output, &memory.recv);
	if (trial_refuses(trial, rank, at))
		memory.is_ready = false;
	must(tti_job_memory(&trial->bed.job[rank], &trial->bed.engine[rank], trial->bound[rank],
			    layout, &call->reducer[rank], &memory, call->tag));
}

void trial_start(struct trial *trial, int rank, int at)
{
	const struct trial_call *call = &trial->call[at];

	trial->at[rank] = at;
	if (trial->config.algo->needs_memory)
		start_memory(trial, rank, at);
	else
		must(tti_job_program(&trial->bed.job[rank], &trial->bed.engine[rank],
				     trial->bound[rank], &call->layout[rank], &call->reducer[rank],
				     call->slice_bytes, call->tag));
}

bool trial_check(struct trial *trial, int rank, int at)
{
	const struct trial_call *call = &trial->call[at];
	const char *got = call->memory[rank];
	char *want = call->want[rank];

	memcpy(want + call->unknown_at[rank], got + call->unknown_at[rank], call->unknown[rank]);
	if (memcmp(got, want, call->nbytes[rank]) == 0)
		return true;
	for (size_t i = 0; !trial->wrong[0]; i++)
		if (got[i] != want[i])
			snprintf(trial->wrong, sizeof(trial->wrong),
				 "call %d, rank %d, byte %zu of %zu is %02x, must be %02x", at,
				 rank, i, call->nbytes[rank], (unsigned char)got[i],
				 (unsigned char)want[i]);
	return false;
}

void trial_print(const struct trial *trial)
{
	const struct trial_config *config = &trial->config;

	fprintf(stderr,
		"%s %s, %d ranks, root %d, shape %d, %d parts, %d stripes, seed %" PRIu64
		", %d chunks\n",
		tutti_collective_name(config->algo->coll), config->algo->name, config->n,
		config->root, config->shape, config->split.parts, config->split.stripes,
		config->seed, trial->nchunks);
	for (int at = 0; at < TRIAL_CALLS; at++) {
		const struct trial_call *call = &trial->call[at];

		fprintf(stderr, "call %d: %zu x %s, %s, slices of %zu bytes, chunks of %zu%s\n", at,
			call->count, tutti_type_name(call->type), numbers_op_name(call->op),
			call->slice_bytes, call->chunk_count, call->is_uneven ? ", uneven" : "");
	}
	bed_print(&trial->bed, stderr);
}

static bool is_right(struct trial *trial, enum bed_end end)
{
	const bool clean = end == BED_DONE && bed_is_clean(&trial->bed);

	if (clean && !trial->wrong[0])
		return true;
	fprintf(stderr, "%s%s%s\n",
		end == BED_STUCK   ? "stuck "
		: end == BED_ENDED ? "failed "
				   : "",
		trial->wrong, trial->bed.breach);
	trial_print(trial);
	return false;
}

static void start(void *self, struct bed *bed, int rank, int at)
{
	(void)bed;
	trial_start(self, rank, at);
}

static void done(void *self, struct bed *bed, int rank, int at)
{
	struct trial *trial = self;

	trial->taken += bed->job[rank].program.is_memory;
	trial_check(trial, rank, at);
}

bool trial_run(struct trial *trial)
{
	const struct bed_work work = {
		.n = TRIAL_CALLS, .start = start, .done = done, .self = trial
	};

	return is_right(trial, bed_run(&trial->bed, &work));
}

/* -- The short way ---------------------------------------------------------------------------- */

/* Twice with one preparation, which has not seen the buffers. */
static tutti_status run_kept(struct trial *trial, struct tti_short *call, int rank, int at)
{
	const struct trial_call *what = &trial->call[at];
	const struct tti_layout *buffers = &what->layout[rank];
	struct tti_layout layout = *buffers;

	layout.input = layout.output = NULL;
	TTI_TRY(tti_short_prepare(call, &trial->bed.engine[rank], trial->bound[rank], &layout,
				  &what->reducer[rank], what->slice_bytes));
	TTI_TRY(tti_short_run(call, buffers->input, buffers->output, what->tag));
	trial_check(trial, rank, at);
	memcpy(what->memory[rank], what->before[rank], what->nbytes[rank]);
	return tti_short_run(call, buffers->input, buffers->output, what->tag + 1);
}

static tutti_status run_one(struct trial *trial, struct tti_short *call, int rank, int at)
{
	struct tti_job *job = &trial->bed.job[rank];

	if (tti_short_fits(&trial->call[at].layout[rank], trial->call[at].slice_bytes))
		return run_kept(trial, call, rank, at);
	trial_start(trial, rank, at);
	return tti_job_wait(&job, 1);
}

static void run_rank(void *self, struct bed *bed, int rank)
{
	struct trial *trial = self;
	struct tti_short call = { 0 };
	tutti_status st = TUTTI_OK;

	for (int at = 0; at < TRIAL_CALLS && st == TUTTI_OK; at++) {
		st = run_one(trial, &call, rank, at);
		if (st == TUTTI_OK && mock_port(bed->port[0].mock, rank)->unsent > 0)
			snprintf(trial->wrong, sizeof(trial->wrong),
				 "call %d, rank %d has ended with messages that are not sent", at,
				 rank);
		if (st == TUTTI_OK)
			trial_check(trial, rank, at);
		else if (!trial->wrong[0])
			snprintf(trial->wrong, sizeof(trial->wrong), "call %d, rank %d: status %d",
				 at, rank, (int)st);
	}
	tti_short_release(&call);
}

bool trial_run_short(struct trial *trial)
{
	return is_right(trial, bed_run_in_turns(&trial->bed, run_rank, trial));
}
