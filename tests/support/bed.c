/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/bed.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "support/lossy.h"
#include "support/reference.h"

/* Polls without any news after which all that is under way is delivered. */
#define IDLE_ROUNDS 40
/* Rounds of polls, all having been delivered, after which nothing will happen any more. An
 * operation needs a message or a slot of each peer, and a lossy port may refuse each for some time. */
#define LAST_ROUNDS ((LOSSY_IN_A_ROW + 1) * 2 * BED_RANKS)

static uint64_t draw(uint64_t *random, uint64_t n)
{
	return next_random(random) % n;
}

void bed_draw(struct bed_config *out, int n, uint64_t seed)
{
	static const size_t slots[] = { 64, 256, 1000, 4096 };
	uint64_t random = seed * 31 + 7;
	struct mock_config *mock = &out->mock;

	*out = (struct bed_config){ .n = n, .seed = seed };
	mock->slot_bytes = slots[draw(&random, 4)];
	mock->inline_bytes = draw(&random, 3) ? draw(&random, mock->slot_bytes) : 0;
	mock->slots = 1 + (int)draw(&random, 4);
	mock->pace = (enum mock_pace)draw(&random, MOCK_PACES);
	mock->fans = draw(&random, 2);
	mock->fans_short = draw(&random, 2);
	mock->sends = draw(&random, 2);
	mock->shares_slots = draw(&random, 2);
	mock->has_progress = draw(&random, 2);
	mock->has_lanes = draw(&random, 3) == 0;
	mock->piece_bytes = draw(&random, 2) ? 64 : 0;
	mock->memory = (enum tti_reach)draw(&random, 3);
	mock->one_copy = draw(&random, 3) == 0;
	out->order = (enum bed_order)draw(&random, BED_ORDERS);
	out->is_split = n > 2 && draw(&random, 3) == 0;
	out->lossy_percent = draw(&random, 2) ? (int)draw(&random, 90) : 0;
	out->oversubscribed = draw(&random, 2);
	out->cuts = draw(&random, 2);
	out->cache_bytes = draw(&random, 2) ? (size_t)1 << 30 : 64;
}

/* -- Ports and engines ------------------------------------------------------------------------ */

static void open_port(struct bed *bed, int at)
{
	struct bed_port *port = &bed->port[at];
	struct mock_config config = bed->config.mock;

	config.n = bed->config.n;
	config.seed = bed->config.seed + (uint64_t)at;
	if (at > 0) {
		config.has_progress = true;
		config.has_lanes = true;
		config.fans = false;
		config.shares_slots = false;
		config.memory = TTI_REACH_SLOTS;
	}
	port->mock = mock_create(&config);
	for (int rank = 0; rank < bed->config.n; rank++) {
		const uint64_t seed = next_random(&bed->random);

		if (bed->config.lossy_percent)
			port->lossy[rank] =
				lossy_create(mock_port(port->mock, rank), bed->config.lossy_percent,
					     seed % 4 == 0, seed);
		port->trace[rank] = trace_create(mock_port(port->mock, rank));
	}
}

void bed_init(struct bed *bed, const struct bed_config *config)
{
	*bed = (struct bed){ .config = *config, .random = config->seed };
	atomic_init(&bed->stop, 0);
	bed->nports = config->is_split ? 2 : 1;
	for (int at = 0; at < bed->nports; at++)
		open_port(bed, at);
	for (int rank = 0; rank < config->n; rank++) {
		struct tti_engine_config engine = {
			.rank = rank,
			.n = config->n,
			.nports = bed->nports,
			.port_of = bed->port_of[rank],
			.oversubscribed = config->oversubscribed,
			.cuts = config->cuts,
			.cache_bytes = config->cache_bytes,
			.stop = &bed->stop,
		};

		for (int at = 0; at < bed->nports; at++)
			engine.ports[at] = mock_port(bed->port[at].mock, rank);
		for (int peer = 0; peer < config->n; peer++)
			bed->port_of[rank][peer] = config->is_split && peer / 3 != rank / 3;
		if (tti_engine_init(&bed->engine[rank], &engine) != TUTTI_OK)
			abort();
	}
}

void bed_release(struct bed *bed)
{
	for (int rank = 0; rank < bed->config.n; rank++)
		tti_engine_release(&bed->engine[rank]);
	for (int at = 0; at < bed->nports; at++) {
		for (int rank = 0; rank < bed->config.n; rank++) {
			trace_free(bed->port[at].trace[rank]);
			if (bed->port[at].lossy[rank])
				lossy_free(bed->port[at].lossy[rank]);
		}
		mock_free(bed->port[at].mock);
	}
}

static bool tick(struct bed *bed)
{
	bool moved = false;

	for (int at = 0; at < bed->nports; at++)
		moved |= mock_tick(bed->port[at].mock);
	return moved;
}

static bool flush(struct bed *bed)
{
	bool moved = false;

	for (int at = 0; at < bed->nports; at++)
		moved |= mock_flush(bed->port[at].mock);
	return moved;
}

/* -- One thread ------------------------------------------------------------------------------ */

struct progress {
	const struct bed_work *work;
	int at[BED_RANKS]; /* the job that a rank is at             */
	bool ended[BED_RANKS];
	int running;
	bool failed;
};

static void note_breach(struct bed *bed, const char *text, int rank)
{
	if (!bed->breach[0])
		snprintf(bed->breach, sizeof(bed->breach), "rank %d: %s", rank, text);
}

/* The job has ended: on to the next one, if it succeeded. */
static void step_on(struct bed *bed, struct progress *progress, int rank)
{
	const struct bed_work *work = progress->work;

	if (bed->job[rank].status != TUTTI_OK) {
		progress->failed = true;
		progress->ended[rank] = true;
		progress->running--;
		return;
	}
	for (int at = 0; at < bed->nports; at++)
		if (mock_port(bed->port[at].mock, rank)->unsent > 0)
			note_breach(bed, "a job has ended whose messages are not all sent", rank);
	if (work->done)
		work->done(work->self, bed, rank, progress->at[rank]);
	if (++progress->at[rank] < work->n) {
		work->start(work->self, bed, rank, progress->at[rank]);
		return;
	}
	progress->ended[rank] = true;
	progress->running--;
}

/* Whether anything happened. */
static bool poll_rank(struct bed *bed, struct progress *progress, int rank)
{
	bool moved;

	if (progress->ended[rank])
		return false;
	if (bed->job[rank].status != TUTTI_AGAIN) { /* it had nothing to do */
		step_on(bed, progress, rank);
		return true;
	}
	moved = tti_job_poll(&bed->job[rank]);
	if (bed->job[rank].status == TUTTI_AGAIN)
		return moved;
	step_on(bed, progress, rank);
	return true;
}

static bool poll_next(struct bed *bed, struct progress *progress)
{
	const int n = bed->config.n;
	bool moved = false;

	switch (bed->config.order) {
	case BED_RANDOM:
		return poll_rank(bed, progress, (int)draw(&bed->random, (uint64_t)n));
	case BED_IN_TURN:
		return poll_rank(bed, progress, bed->turn++ % n);
	case BED_BACKWARDS:
		return poll_rank(bed, progress, n - 1 - bed->turn++ % n);
	case BED_STICKY:
		moved = poll_rank(bed, progress, bed->turn);
		if (!moved)
			bed->turn = (int)draw(&bed->random, (uint64_t)n);
		return moved;
	case BED_ONE_SLOW:
		for (int rank = 1; rank < n; rank++)
			moved |= poll_rank(bed, progress, rank);
		return moved || poll_rank(bed, progress, 0);
	}
	return false;
}

/* Whether anything happens at all once everything has arrived. */
static bool can_move(struct bed *bed, struct progress *progress)
{
	bool moved = flush(bed);

	for (int round = 0; round < LAST_ROUNDS && !moved; round++) {
		for (int rank = 0; rank < bed->config.n; rank++)
			moved |= poll_rank(bed, progress, rank);
		moved |= flush(bed);
	}
	return moved;
}

enum bed_end bed_run(struct bed *bed, const struct bed_work *work)
{
	struct progress progress = { .work = work, .running = bed->config.n };
	int idle = 0;

	for (int rank = 0; rank < bed->config.n; rank++)
		work->start(work->self, bed, rank, 0);
	bed->turn = 0;
	while (progress.running > 0) {
		const bool moved = poll_next(bed, &progress);

		idle = tick(bed) || moved ? 0 : idle + 1;
		if (idle < IDLE_ROUNDS)
			continue;
		if (!can_move(bed, &progress))
			return progress.failed ? BED_ENDED : BED_STUCK;
		idle = 0;
	}
	return progress.failed ? BED_ENDED : BED_DONE;
}

/* -- Ranks that take turns in the middle of a call -------------------------------------------------- */

#define STACK_BYTES ((size_t)256 << 10)

/* Contexts of one thread, since to wake a thread for each turn takes a busy machine milliseconds. */
struct relay {
	struct bed *bed;
	void (*body)(void *self, struct bed *bed, int rank);
	void *self;
	ucontext_t main, context[BED_RANKS];
	uint8_t *stacks;
	int holder; /* the rank that runs, -1: all have ended */
	int idle;   /* turns in which nothing moved           */
	bool ended[BED_RANKS];
	bool is_stuck;
};

/* For a context that begins, which can be given no pointer. */
static _Thread_local struct relay *running;

/* Any rank that has not ended, -1 if there is none. */
static int choose_next(struct relay *relay)
{
	const int n = relay->bed->config.n;
	const int first = (int)draw(&relay->bed->random, (uint64_t)n);

	for (int i = 0; i < n; i++)
		if (!relay->ended[(first + i) % n])
			return (first + i) % n;
	return -1;
}

/* The next rank's turn, or the end of all. */
static void hand_over(struct relay *relay, ucontext_t *from)
{
	ucontext_t *to = &relay->main;

	relay->holder = choose_next(relay);
	if (relay->holder >= 0)
		to = &relay->context[relay->holder];
	if (to != from && swapcontext(from, to) != 0)
		abort();
}

/* A rank was refused something: another one's turn. Two ranks may take turns for long before a
 * third is drawn, so many turns without news are not yet the end. */
static void pass_on(void *self, int rank)
{
	struct relay *relay = self;

	relay->idle = tick(relay->bed) ? 0 : relay->idle + 1;
	if (relay->idle > 0 && relay->idle % IDLE_ROUNDS == 0 && flush(relay->bed))
		relay->idle = 0;
	if (relay->idle > 100 * IDLE_ROUNDS * BED_RANKS) {
		relay->is_stuck = true;
		atomic_store(&relay->bed->stop, 1);
	}
	hand_over(relay, &relay->context[rank]);
}

static void run(void)
{
	struct relay *relay = running;
	const int rank = relay->holder;

	relay->body(relay->self, relay->bed, rank);
	relay->ended[rank] = true;
	relay->idle = 0;
	hand_over(relay, &relay->context[rank]);
}

enum bed_end bed_run_in_turns(struct bed *bed, void (*body)(void *self, struct bed *bed, int rank),
			      void *self)
{
	const size_t nbytes = (size_t)bed->config.n * STACK_BYTES;
	struct relay *relay = calloc(1, sizeof(*relay));
	bool is_stuck;

	if (!relay)
		abort();
	*relay = (struct relay){ .bed = bed, .body = body, .self = self };
	relay->stacks =
		mmap(NULL, nbytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (relay->stacks == MAP_FAILED)
		abort();
	for (int at = 0; at < bed->nports; at++)
		mock_on_idle(bed->port[at].mock, pass_on, relay);
	for (int rank = 0; rank < bed->config.n; rank++) {
		ucontext_t *const context = &relay->context[rank];

		if (getcontext(context) != 0)
			abort();
		context->uc_stack.ss_sp = relay->stacks + (size_t)rank * STACK_BYTES;
		context->uc_stack.ss_size = STACK_BYTES;
		makecontext(context, run, 0);
	}
	running = relay;
	hand_over(relay, &relay->main);
	for (int at = 0; at < bed->nports; at++)
		mock_on_idle(bed->port[at].mock, NULL, NULL);
	is_stuck = relay->is_stuck;
	munmap(relay->stacks, nbytes);
	free(relay);
	return is_stuck ? BED_STUCK : BED_DONE;
}

/* -- What is left ------------------------------------------------------------------------------ */

bool bed_is_clean(struct bed *bed)
{
	for (int at = 0; at < bed->nports; at++) {
		const struct bed_port *port = &bed->port[at];

		for (int rank = 0; rank < bed->config.n; rank++)
			if (trace_breach(port->trace[rank]))
				note_breach(bed, trace_breach(port->trace[rank]), rank);
		if (mock_breaches(port->mock) > 0)
			note_breach(bed, "a slot was written past its end", -1);
		if (!mock_is_quiet(port->mock))
			note_breach(bed, "a message was sent and never received", -1);
	}
	return !bed->breach[0];
}

struct tti_port *bed_port(const struct bed *bed, int rank, int peer)
{
	return mock_port(bed->port[bed->port_of[rank][peer]].mock, rank);
}

uint64_t bed_sent(const struct bed *bed, int from, int to)
{
	return mock_sent(bed->port[bed->port_of[from][to]].mock, from, to);
}

void bed_print(const struct bed *bed, FILE *out)
{
	const struct bed_config *config = &bed->config;
	const struct mock_config *mock = &config->mock;

	fprintf(out,
		"bed of %d ranks, seed %" PRIu64
		": pace %d, order %d, %d slots of %zu bytes, inline %zu, fans %d (short %d), "
		"sends %d, shared %d, progress %d, lanes %d, split %d, lossy %d %%\n",
		config->n, config->seed, (int)mock->pace, (int)config->order, mock->slots,
		mock->slot_bytes, mock->inline_bytes, mock->fans, mock->fans_short, mock->sends,
		mock->shares_slots, mock->has_progress, mock->has_lanes, config->is_split,
		config->lossy_percent);
	for (int rank = 0; rank < config->n; rank++) {
		fprintf(out, "rank %d: status %d\n", rank, (int)bed->job[rank].status);
		for (int at = 0; at < bed->nports; at++)
			trace_print(bed->port[at].trace[rank], out);
	}
}
