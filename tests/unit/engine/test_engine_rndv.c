/* SPDX-License-Identifier: BSD-3-Clause */
/* What the engine does with data that goes by rendezvous are the steps of the program that is proven: groups
 * of random sends are run over the mock transport with a record of all that is done, which is held
 * against the programs that coll/algorithms/send_recv.h emits for the same lists. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coll/algorithms/send_recv.h"
#include "support/bed.h"
#include "support/layer.h"
#include "support/reference.h"
#include "support/sanitizer.h"
#include "util/error.h"

#define RANKS    5
#define MESSAGES 30
#define MOST     300
#define EVENTS   (5 * MESSAGES)

/* One transfer: its sender announces it, its receiver hears of that, copies, and tells, of which its
 * sender hears. */
enum phase { ANNOUNCE, HEAR, COPY, TELL, END, PHASES };

struct event {
	int from, to;
	enum phase phase;
	int chunk; /* of COPY, as its rank numbers them */
};

/* What ranks did or are to do, in their order. */
struct record {
	int n;
	struct event event[EVENTS];
};

struct part {
	int nsteps;
	struct tti_transfer_step step[MESSAGES];
	struct tti_extent extent[MESSAGES];
	struct tti_executable *bound;
};

/* On the port of a rank. */
struct spy {
	struct layer layer;
	struct tti_memory_ops memory;
};

struct spy_link {
	struct layer_link base;
	bool has_heard;
};

static struct {
	int n;
	struct part part[RANKS];
	uint8_t memory[2][MESSAGES][MOST];
	struct bed bed;
	struct spy spy[RANKS];
	struct record done; /* by all ranks, as it happened */
	uint64_t random;
} play;

static int draw(int n)
{
	return (int)(next_random(&play.random) % (uint64_t)n);
}

/* -- The record ------------------------------------------------------------------------------ */

static void add(struct record *record, int from, int to, enum phase phase, int chunk)
{
	if (record->n < EVENTS)
		record->event[record->n] = (struct event){ from, to, phase, chunk };
	record->n++;
}

static int rank_of(const struct tti_link *link)
{
	return layer_link_of(link)->layer->port->rank;
}

static void *reserve(struct tti_link *link, size_t nbytes, size_t whole)
{
	return layer_reserve(layer_link_of(link), nbytes, whole);
}

static void commit(struct tti_link *link, size_t nbytes, uint64_t tag)
{
	add(&play.done, rank_of(link), link->peer, ANNOUNCE, -1);
	layer_commit(layer_link_of(link), nbytes, tag);
}

static const void *peek(struct tti_link *link, size_t *nbytes, uint64_t *tag)
{
	struct spy_link *self = (struct spy_link *)layer_link_of(link);
	const void *data = layer_peek(&self->base, nbytes, tag);

	if (data && !self->has_heard) {
		self->has_heard = true;
		add(&play.done, link->peer, rank_of(link), HEAR, -1);
	}
	return data;
}

static void release(struct tti_link *link)
{
	struct spy_link *self = (struct spy_link *)layer_link_of(link);

	self->has_heard = false;
	add(&play.done, link->peer, rank_of(link), TELL, -1);
	layer_release(&self->base);
}

static bool all_released(struct tti_link *link)
{
	const bool all = layer_all_released(layer_link_of(link));

	if (all)
		add(&play.done, rank_of(link), link->peer, END, -1);
	return all;
}

static tutti_status read_memory(struct tti_port *port, int peer, void *to, uint64_t from,
				size_t nbytes)
{
	const struct spy *spy = (const struct spy *)layer_of(port);
	const struct part *part = &play.part[port->rank];
	int chunk = 0;

	while (part->extent[chunk].to != (uintptr_t)to)
		chunk++;
	assert_int_equal(part->extent[chunk].count, nbytes);
	add(&play.done, peer, port->rank, COPY, chunk);
	return spy->layer.inner->memory->read(port, peer, to, from, nbytes);
}

static void put_on(struct spy *spy, struct tti_port *port)
{
	static const struct tti_link_ops ops = { .reserve = reserve,
						 .commit = commit,
						 .peek = peek,
						 .release = release,
						 .all_released = all_released };

	memset(spy, 0, sizeof(*spy));
	layer_put_on(&spy->layer, port, &ops, NULL, sizeof(struct spy_link));
	spy->memory = *port->transport->memory;
	spy->memory.read = read_memory;
	spy->layer.transport.memory = &spy->memory;
}

/* -- What is to be done ---------------------------------------------------------------------- */

/* The next step with the same peer; NULL: none. */
static const struct tti_step *next_with(const struct tti_program *prog, size_t at)
{
	for (size_t i = at + 1; i < prog->steps.n; i++)
		if (prog->steps.at[i].peer == prog->steps.at[at].peer)
			return &prog->steps.at[i];
	return NULL;
}

/* The steps of a rank as what they mean. */
static void list_steps(const struct tti_program *prog, struct record *out)
{
	const int rank = prog->rank;

	out->n = 0;
	for (size_t i = 0; i < prog->steps.n; i++) {
		const struct tti_step *step = &prog->steps.at[i], *next = next_with(prog, i);
		const int peer = step->peer;

		if (step->kind == TTI_GET)
			add(out, peer, rank, COPY, step->chunk);
		else if (step->kind == TTI_NOTIFY && i > 0 && step[-1].kind == TTI_GET)
			add(out, peer, rank, TELL, -1);
		else if (step->kind == TTI_NOTIFY)
			add(out, rank, peer, ANNOUNCE, -1);
		else if (next && next->kind == TTI_GET)
			add(out, peer, rank, HEAR, -1);
		else
			add(out, rank, peer, END, -1);
	}
}

/* Of what one of two ranks has to do with transfers from one to the other, the k-th; NULL: past it. */
static const struct event *find(const struct record *record, int from, int to, bool is_sender,
				int k)
{
	for (int i = 0; i < record->n; i++) {
		const struct event *event = &record->event[i];
		const bool by_sender = event->phase == ANNOUNCE || event->phase == END;

		if (event->from == from && event->to == to && by_sender == is_sender && k-- == 0)
			return event;
	}
	return NULL;
}

static void must_be_same(const struct record *steps, int from, int to, bool is_sender)
{
	const struct event *must, *is;

	for (int k = 0;; k++) {
		must = find(steps, from, to, is_sender, k);
		is = find(&play.done, from, to, is_sender, k);
		if (!must || !is)
			break;
		assert_int_equal(must->phase, is->phase);
		assert_int_equal(must->chunk, is->chunk);
	}
	assert_null(must);
	assert_null(is);
}

/* What both ranks of a transfer do is in the order that notifies and waits make. */
static void must_be_in_order(void)
{
	int next[RANKS][RANKS] = { { 0 } };

	for (int i = 0; i < play.done.n; i++) {
		const struct event *event = &play.done.event[i];

		assert_int_equal(event->phase, next[event->from][event->to]++ % PHASES);
	}
}

/* -- A group --------------------------------------------------------------------------------- */

static void add_step(int rank, int peer, enum tti_transfer_kind kind, int message, size_t nbytes)
{
	struct part *part = &play.part[rank];
	const int chunk = part->nsteps++;
	struct tti_port *port = bed_port(&play.bed, rank, peer);
	uint8_t *memory = play.memory[kind == TTI_TRANSFER_RECV][message];

	part->step[chunk] =
		(struct tti_transfer_step){ .kind = kind, .peer = peer, .chunk = chunk };
	part->extent[chunk] = (struct tti_extent){
		.first = (uintptr_t)memory,
		.to = (uintptr_t)memory,
		.count = nbytes,
		.slice = MOST,
		.tag = (uint64_t)message + 1,
	};
	if (kind == TTI_TRANSFER_SEND)
		assert_true(port->transport->memory->name(port, memory, nbytes,
							  &part->extent[chunk].rndv));
}

static void set_up(uint64_t seed)
{
	struct bed_config config;

	memset(&play, 0, sizeof(play));
	play.random = seed;
	play.n = 2 + draw(RANKS - 1);
	bed_draw(&config, play.n, seed);
	config.is_split = false;
	config.lossy_percent = 0;
	config.mock.fans = false;
	config.mock.sends = false;
	config.mock.memory = TTI_REACH_COPIED;
	config.mock.slot_bytes = MOST;
	config.mock.inline_bytes = 32;
	bed_init(&play.bed, &config);
	for (int rank = 0; rank < play.n; rank++)
		put_on(&play.spy[rank], mock_port(play.bed.port[0].mock, rank));
	for (int message = 1 + draw(MESSAGES); message-- > 0;) {
		const size_t nbytes = 1 + (size_t)draw(MOST);
		const int from = draw(play.n), to = (from + 1 + draw(play.n - 1)) % play.n;

		for (size_t i = 0; i < nbytes; i++)
			play.memory[0][message][i] = (uint8_t)next_random(&play.random);
		add_step(from, to, TTI_TRANSFER_SEND, message, nbytes);
		add_step(to, from, TTI_TRANSFER_RECV, message, nbytes);
	}
}

static void start(void *self, struct bed *bed, int rank, int at)
{
	struct part *part = &play.part[rank];
	const struct tti_reducer reducer = { 0 };
	const struct tti_layout layout = { .by_chunk = true,
					   .extents = part->extent,
					   .has_rndv = true,
					   .chunk_count = MOST,
					   .type_size = 1,
					   .parts = 1 };
	struct tti_program prog;
	struct tti_compiled compiled;

	(void)self;
	(void)at;
	assert_int_equal(tti_send_recv_program(part->step, part->nsteps,
					       part->nsteps ? part->nsteps : 1, rank, play.n,
					       &prog),
			 TUTTI_OK);
	assert_int_equal(tti_compile(&prog, &compiled), TUTTI_OK);
	tti_program_release(&prog);
	assert_int_equal(tti_executable_create(&bed->engine[rank], &compiled, &part->bound),
			 TUTTI_OK);
	assert_int_equal(tti_job_program(&bed->job[rank], &bed->engine[rank], part->bound, &layout,
					 &reducer, 1, 0),
			 TUTTI_OK);
}

static void check(void)
{
	static struct record steps;

	must_be_in_order();
	for (int rank = 0; rank < play.n; rank++) {
		const struct part *part = &play.part[rank];
		struct tti_program prog;

		assert_int_equal(tti_send_recv_in_memory(part->step, part->nsteps,
							 part->nsteps ? part->nsteps : 1, rank,
							 play.n, &prog),
				 TUTTI_OK);
		list_steps(&prog, &steps);
		tti_program_release(&prog);
		for (int peer = 0; peer < play.n; peer++) {
			must_be_same(&steps, rank, peer, true);
			must_be_same(&steps, peer, rank, false);
		}
	}
	assert_memory_equal(play.memory[0], play.memory[1], sizeof(play.memory[0]));
}

static void rendezvous_goes_by_the_proven_steps(void **state)
{
	const int plays = SANITIZED ? 100 : 500;
	const struct bed_work work = { .n = 1, .start = start };
	int events = 0;

	(void)state;
	for (int seed = 1; seed <= plays; seed++) {
		set_up((uint64_t)seed);
		assert_int_equal(bed_run(&play.bed, &work), BED_DONE);
		assert_true(bed_is_clean(&play.bed));
		check();
		events += play.done.n;
		for (int rank = 0; rank < play.n; rank++) {
			tti_executable_free(play.part[rank].bound);
			tti_engine_release(&play.bed.engine[rank]);
			layer_take_off(&play.spy[rank].layer);
		}
		bed_release(&play.bed);
	}
	assert_true(events > plays * PHASES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rendezvous_goes_by_the_proven_steps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
