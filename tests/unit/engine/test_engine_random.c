/* SPDX-License-Identifier: BSD-3-Clause */
/* Programs that no algorithm would emit: steps are drawn, run by the engine over the mock
 * transport, and held against a run of the same steps one after the other. So operations have
 * many predecessors, chunks are written over again and again, links carry much one way and
 * nothing the other, and stages begin anywhere. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coll/program.h"
#include "support/bed.h"
#include "support/reference.h"
#include "support/sanitizer.h"
#include "util/error.h"

#define RANKS    6
#define CHUNKS   12
#define ELEMENTS 400 /* of a chunk, at most */
#define EVENTS   60
#define CALLS    3
#define EMPTY    0xeeeeeeee

/* What one or several ranks send, and others receive. */
struct event {
	bool reduces;
	int chunk, stage;
	int nfrom, nto; /* one of them is 1 */
	int from[RANKS], to[RANKS];
};

struct drawn_call {
	size_t chunk_count, count;
	size_t slice_bytes;
	uint64_t tag;
	uint32_t *input[RANKS], *output[RANKS], *want_input[RANKS], *want[RANKS];
};

struct play {
	int n, nchunks, nevents;
	struct event event[EVENTS];
	struct tti_program prog[RANKS];
	struct tti_executable *bound[RANKS];
	struct drawn_call call[CALLS];
	struct bed bed;
	uint64_t random;
	bool wrong;
};

static int draw(struct play *play, int n)
{
	return (int)(next_random(&play->random) % (uint64_t)n);
}

/* -- The steps ------------------------------------------------------------------------------- */

static void draw_ends(struct play *play)
{
	static const tutti_collective colls[] = { TUTTI_ALL_REDUCE,     TUTTI_ALL_REDUCE,
						  TUTTI_REDUCE,         TUTTI_ALL_GATHER,
						  TUTTI_REDUCE_SCATTER, TUTTI_HANDOFF };
	const tutti_collective coll = colls[draw(play, 6)];
	const int root = draw(play, play->n);

	play->nchunks = tti_collective_is_by_rank(coll) ? play->n * (1 + draw(play, 2))
							: 1 + draw(play, CHUNKS - 2);
	for (int rank = 0; rank < play->n; rank++) {
		struct tti_program *prog = &play->prog[rank];

		*prog = (struct tti_program){ .coll = coll,
					      .algorithm = "drawn",
					      .rank = rank,
					      .n = play->n,
					      .root = root,
					      .in_place = draw(play, 3) == 0,
					      .nchunks = play->nchunks };
		for (int chunk = 0; coll == TUTTI_HANDOFF && chunk < play->nchunks; chunk++)
			assert_true(tti_vec_push(&prog->ends, (uint8_t)draw(play, 4)));
	}
}

/* Some ranks that have a value, or may have none, and are not `but`; how many. */
static int draw_ranks(struct play *play, const bool *has, bool any, int but, int most, int *out)
{
	const int first = draw(play, play->n);
	int found = 0;

	for (int i = 0; i < play->n && found < most; i++) {
		const int rank = (first + i) % play->n;

		if (rank != but && (any || has[rank]) && (found == 0 || draw(play, 2)))
			out[found++] = rank;
	}
	return found;
}

/* False: nobody has what would have to be sent. */
static bool draw_event(struct play *play, bool has[CHUNKS][RANKS], struct event *event)
{
	const int most = draw(play, 2) ? 1 : play->n;
	bool *holds;

	*event = (struct event){ .chunk = draw(play, play->nchunks) };
	event->reduces = tti_collective_reduces(play->prog[0].coll) && draw(play, 3);
	holds = has[event->chunk];
	if (event->reduces) {
		event->nto = draw_ranks(play, holds, false, -1, 1, event->to);
		event->nfrom =
			event->nto ? draw_ranks(play, holds, false, event->to[0], most, event->from)
				   : 0;
	} else {
		event->nfrom = draw_ranks(play, holds, false, -1, 1, event->from);
		event->nto = event->nfrom ? draw_ranks(play, holds, true, event->from[0], most,
						       event->to)
					  : 0;
	}
	for (int i = 0; i < event->nto && event->nfrom; i++)
		holds[event->to[i]] = true;
	return event->nfrom && event->nto;
}

static void draw_events(struct play *play)
{
	bool has[CHUNKS][RANKS];
	int stage = 0;

	for (int chunk = 0; chunk < play->nchunks; chunk++)
		for (int rank = 0; rank < play->n; rank++)
			has[chunk][rank] = tti_chunk_is_input(&play->prog[rank], chunk);
	for (int left = draw(play, EVENTS); left > 0; left--) {
		struct event *event = &play->event[play->nevents];

		if (!draw_event(play, has, event))
			continue;
		stage += stage < 2 && draw(play, 40) == 0;
		event->stage = stage;
		play->nevents++;
	}
}

static void emit(struct play *play)
{
	for (int i = 0; i < play->nevents; i++) {
		const struct event *event = &play->event[i];

		for (int rank = 0; rank < play->n; rank++)
			play->prog[rank].stage = event->stage;
		for (int from = 0; from < event->nfrom; from++)
			for (int to = 0; to < event->nto; to++)
				tti_send(&play->prog[event->from[from]], event->chunk,
					 event->to[to]);
		for (int to = 0; to < event->nto; to++)
			for (int from = 0; from < event->nfrom; from++) {
				struct tti_program *prog = &play->prog[event->to[to]];

				if (event->reduces)
					tti_recv_reduce(prog, event->chunk, event->from[from],
							false);
				else
					tti_recv(prog, event->chunk, event->from[from]);
			}
	}
}

/* -- What comes out ---------------------------------------------------------------------------- */

/* The elements of a chunk: first, and one past the last. */
static size_t begin_of(const struct drawn_call *call, int chunk)
{
	const size_t first = (size_t)chunk * call->chunk_count;

	return first < call->count ? first : call->count;
}

/* The events one after the other, on values of all ranks. */
static void simulate(const struct play *play, const struct drawn_call *call, uint32_t *value[RANKS])
{
	for (int i = 0; i < play->nevents; i++) {
		const struct event *event = &play->event[i];

		for (size_t at = begin_of(call, event->chunk);
		     at < begin_of(call, event->chunk + 1); at++) {
			uint32_t sum = 0;

			for (int from = 0; from < event->nfrom; from++)
				sum += value[event->from[from]][at];
			for (int to = 0; to < event->nto; to++)
				value[event->to[to]][at] =
					sum + (event->reduces ? value[event->to[to]][at] : 0);
		}
	}
}

/* Whether a chunk has a value in the end. */
static bool is_set(const struct play *play, int rank, int chunk)
{
	bool set = tti_chunk_is_input(&play->prog[rank], chunk);

	for (int i = 0; i < play->nevents; i++)
		for (int to = 0; to < play->event[i].nto; to++)
			set |= play->event[i].chunk == chunk && play->event[i].to[to] == rank;
	return set;
}

static void make_call(struct play *play, struct drawn_call *call)
{
	uint32_t *value[RANKS];

	call->slice_bytes = 4 * (size_t)(1 + draw(play, 16));
	call->chunk_count = (size_t)draw(play, draw(play, 3) ? 60 : ELEMENTS);
	call->count = call->chunk_count * (size_t)play->nchunks;
	call->count -= call->count ? (size_t)draw(play, (int)call->chunk_count) : 0;
	call->tag = next_random(&play->random);
	for (int rank = 0; rank < play->n; rank++) {
		const size_t nbytes = (call->count + 1) * sizeof(uint32_t);

		call->input[rank] = malloc(nbytes);
		call->output[rank] = play->prog[rank].in_place ? call->input[rank] : malloc(nbytes);
		call->want_input[rank] = malloc(nbytes);
		call->want[rank] = malloc(nbytes);
		value[rank] = malloc(nbytes);
		for (size_t i = 0; i <= call->count; i++) {
			call->output[rank][i] = EMPTY;
			call->input[rank][i] = (uint32_t)next_random(&play->random);
		}
		memcpy(call->want_input[rank], call->input[rank], nbytes);
		memcpy(call->want[rank], call->output[rank], nbytes);
		memcpy(value[rank], call->input[rank], nbytes);
	}
	simulate(play, call, value);
	for (int rank = 0; rank < play->n; rank++) {
		for (int chunk = 0; chunk < play->nchunks; chunk++) {
			const size_t first = begin_of(call, chunk);

			if (tti_chunk_is_output(&play->prog[rank], chunk) &&
			    is_set(play, rank, chunk))
				memcpy(call->want[rank] + first, value[rank] + first,
				       (begin_of(call, chunk + 1) - first) * sizeof(uint32_t));
		}
		free(value[rank]);
	}
}

static void start(void *self, struct bed *bed, int rank, int at)
{
	struct play *play = self;
	const struct drawn_call *call = &play->call[at];
	const struct tti_layout layout = {
		.input = call->input[rank],
		.output = call->output[rank],
		.type_size = sizeof(uint32_t),
		.parts = play->nchunks,
		.chunk_count = call->chunk_count,
		.row_count = call->count,
	};
	const struct tti_reducer reducer = tti_reducer_of(TUTTI_UINT32, TUTTI_SUM, play->n);

	assert_int_equal(tti_job_program(&bed->job[rank], &bed->engine[rank], play->bound[rank],
					 &layout, &reducer, call->slice_bytes, call->tag),
			 TUTTI_OK);
}

static void done(void *self, struct bed *bed, int rank, int at)
{
	struct play *play = self;
	const struct drawn_call *call = &play->call[at];
	const size_t nbytes = (call->count + 1) * sizeof(uint32_t);

	(void)bed;
	play->wrong |= memcmp(call->output[rank], call->want[rank], nbytes) != 0;
	if (call->input[rank] != call->output[rank])
		play->wrong |= memcmp(call->input[rank], call->want_input[rank], nbytes) != 0;
}

/* -- One play ----------------------------------------------------------------------------------- */

static void set_up(struct play *play, uint64_t seed)
{
	struct bed_config config;

	*play = (struct play){ .random = seed };
	play->n = 2 + draw(play, RANKS - 1);
	bed_draw(&config, play->n, seed);
	if (seed % 2) /* where a wrong order shows first */
		config.mock.slots = 1;
	bed_init(&play->bed, &config);
	draw_ends(play);
	draw_events(play);
	emit(play);
	for (int at = 0; at < CALLS; at++)
		make_call(play, &play->call[at]);
	for (int rank = 0; rank < play->n; rank++) {
		struct tti_compiled compiled;

		if (tti_compile(&play->prog[rank], &compiled) != TUTTI_OK)
			fail_msg("seed %llu: %s", (unsigned long long)seed, tti_error_text());
		assert_int_equal(tti_executable_create(&play->bed.engine[rank], &compiled,
						       &play->bound[rank]),
				 TUTTI_OK);
	}
}

static void tear_down(struct play *play)
{
	for (int rank = 0; rank < play->n; rank++) {
		tti_executable_free(play->bound[rank]);
		for (int at = 0; at < CALLS; at++) {
			const struct drawn_call *call = &play->call[at];

			if (call->output[rank] != call->input[rank])
				free(call->output[rank]);
			free(call->input[rank]);
			free(call->want_input[rank]);
			free(call->want[rank]);
		}
		tti_program_release(&play->prog[rank]);
	}
	bed_release(&play->bed);
}

static void drawn_programs_come_out_right(void **state)
{
	static struct play play;
	const int plays = SANITIZED ? 150 : 1000;
	int events = 0;

	(void)state;
	for (int seed = 1; seed <= plays; seed++) {
		const struct bed_work work = { CALLS, start, done, &play };
		enum bed_end end;

		set_up(&play, (uint64_t)seed);
		end = bed_run(&play.bed, &work);
		if (end != BED_DONE || play.wrong || !bed_is_clean(&play.bed)) {
			bed_print(&play.bed, stderr);
			fail_msg("seed %d: %s%s", seed,
				 end != BED_DONE ? "stuck"
				 : play.wrong    ? "wrong"
						 : "",
				 play.bed.breach);
		}
		events += play.nevents;
		tear_down(&play);
	}
	assert_true(events > 10 * plays);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(drawn_programs_come_out_right),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
