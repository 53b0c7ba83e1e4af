/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/device_turns.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>

#include "support/reference.h"
#include "support/sanitizer.h"

static void turns_pass_on(void);
static void turns_rest(void);
static int turns_barrier(void);

/* What the interpreter waits by. */
#define pthread_barrier_wait(barrier) ((void)(barrier), turns_barrier())
#define sched_yield()                 turns_pass_on()
#define nanosleep(time, left)         ((void)(time), turns_rest())
#include "device/run.h"
#undef pthread_barrier_wait
#undef sched_yield
#undef nanosleep

/* Turns of all without any news. */
#define IDLE_ROUNDS 100
/* Turns that a thread leaves out where it would sleep. */
#define REST        6
#define STACK_BYTES ((size_t)(SANITIZED ? 512 : 128) << 10)

struct strand;

/* A block, whose barrier is a count. */
struct block {
	struct tti_dev_host_block base; /* first */
	uint32_t arrived;
	struct strand *strand; /* [nthreads] */
};

struct line {
	struct tti_dev_launch launch;
	int index;
	uint32_t nblocks, nthreads; /* of all its calls, of a block */
	struct block *block;        /* [nblocks] */
	char *shared;               /* of each block, shared_bytes */
	size_t shared_bytes;
	struct strand *strand; /* [nblocks * nthreads] */
	uint32_t ended;        /* threads of the launch that have */
	bool is_over;
};

/* A thread of a block. */
struct strand {
	struct tti_dev_env env;
	struct line *line;
	uint32_t block;
	uint32_t rests;  /* turns that it leaves out */
	bool is_blocked; /* until another strand says that it is not */
	bool ended, has_begun;
	ucontext_t context;
	jmp_buf here;
};

struct relay {
	const struct device_turns *turns;
	struct line *line;
	struct strand *strand;
	uint32_t n, left, running;
	uint32_t idle; /* turns since the last news */
	uint64_t random;
	ucontext_t main;
};

static _Thread_local struct relay *relay;

#if SANITIZED
/* Which know of contexts, and of no other way between stacks. */
__attribute__((noinline)) static void go(struct strand *from, struct strand *to)
{
	if (swapcontext(from ? &from->context : &relay->main, &to->context) != 0)
		abort();
}
#else
/* Without the system calls of swapcontext(). */
__attribute__((noinline)) static void go(struct strand *from, struct strand *to)
{
	if (from && _setjmp(from->here))
		return;
	if (to->has_begun)
		_longjmp(to->here, 1);
	to->has_begun = true;
	if (from)
		setcontext(&to->context);
	else if (swapcontext(&relay->main, &to->context) == 0)
		return;
	abort();
}
#endif

static bool has_turn(struct strand *strand)
{
	if (strand->ended || strand->is_blocked)
		return false;
	if (strand->rests == 0)
		return true;
	strand->rests--;
	return false;
}

/* The next one that can go on; now and then any. */
static uint32_t choose(void)
{
	const uint64_t random = next_random(&relay->random);
	uint32_t next = random % 8 ? relay->running + 1 : (uint32_t)(random >> 32);
	uint32_t tried = 0;

	for (next %= relay->n; !has_turn(&relay->strand[next]);) {
		next = next + 1 < relay->n ? next + 1 : 0;
		if (++tried < (REST + 2) * relay->n)
			continue;
		fprintf(stderr, "all threads wait at barriers that others do not come to\n");
		abort();
	}
	return next;
}

static void turns_pass_on(void)
{
	struct strand *from = &relay->strand[relay->running];

	if (++relay->idle > IDLE_ROUNDS * relay->n) {
		relay->idle = 0;
		relay->turns->idle(relay->turns->self);
	}
	relay->running = choose();
	if (&relay->strand[relay->running] != from)
		go(from, &relay->strand[relay->running]);
}

static void turns_rest(void)
{
	relay->strand[relay->running].rests = REST;
	turns_pass_on();
}

static void wait_for_others(void)
{
	relay->strand[relay->running].is_blocked = true;
	turns_pass_on();
}

static void go_on(struct strand *strand, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		strand[i].is_blocked = false;
	relay->idle = 0;
}

static int turns_barrier(void)
{
	struct strand *self = &relay->strand[relay->running];
	struct block *block = &self->line->block[self->block];
	const uint32_t nthreads = self->line->nthreads;

	if (++block->arrived < nthreads) {
		wait_for_others();
		return 0;
	}
	block->arrived = 0;
	go_on(block->strand, nthreads);
	return 0;
}

/* All threads of the line's launch have ended. What blocks have kept stays in their memory, as it does
 * on a GPU. */
static void launch_next(struct line *line)
{
	const struct device_turns *turns = relay->turns;

	line->ended = 0;
	line->is_over = !turns->next(turns->self, line->index, &line->launch);
	go_on(line->strand, line->nblocks * line->nthreads);
}

static void run_launch(struct strand *self)
{
	struct line *line = self->line;
	struct tti_dev_env env = { .world = self->env.world, .shared = self->env.shared };

	self->env = env;
	tti_dev_run(&self->env, &line->launch, self->block);
	if (++line->ended == line->nblocks * line->nthreads)
		launch_next(line);
	else
		wait_for_others();
}

static void run(void)
{
	struct strand *self = &relay->strand[relay->running];

	while (!self->line->is_over)
		run_launch(self);
	self->ended = true;
	if (--relay->left == 0) {
		setcontext(&relay->main);
		abort();
	}
	relay->running = choose();
	go(self, &relay->strand[relay->running]);
	abort();
}

/* By itself, as getcontext() may return twice. */
__attribute__((noinline)) static void give_stack(struct strand *strand, char *stack)
{
	if (getcontext(&strand->context) != 0)
		abort();
	strand->context.uc_stack.ss_sp = stack;
	strand->context.uc_stack.ss_size = STACK_BYTES;
	makecontext(&strand->context, run, 0);
}

/* Stacks of so many threads, which are kept for the next run: fresh memory for each costs more than what
 * most programs do. ASan remembers what lay where, so there they are fresh. */
static char *take_stacks(uint32_t n)
{
	static _Thread_local char *stacks;
	static _Thread_local size_t nbytes;

	if (stacks && !SANITIZED && n * STACK_BYTES <= nbytes)
		return stacks;
	if (stacks)
		munmap(stacks, nbytes);
	nbytes = n * STACK_BYTES;
	stacks = mmap(NULL, nbytes, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (stacks == MAP_FAILED)
		abort();
	return stacks;
}

static void begin_line(struct line *line, int index, const struct tti_dev_host *host)
{
	const struct device_turns *turns = relay->turns;

	line->index = index;
	line->is_over = !turns->next(turns->self, index, &line->launch);
	line->nblocks = line->is_over ? 0 : line->launch.ncalls * line->launch.nblocks;
	line->nthreads = host->nthreads;
	line->shared_bytes = tti_dev_shared_bytes(line->launch.noperands);
	line->block = calloc(line->nblocks + 1, sizeof(*line->block));
	line->shared = calloc(line->nblocks + 1, line->shared_bytes);
	if (!line->block || !line->shared)
		abort();
}

static void begin_strands(struct strand *strand, struct line *line, const struct tti_dev_host *host,
			  char *stacks)
{
	line->strand = strand;
	for (uint32_t i = 0; i < line->nblocks * line->nthreads; i++) {
		const uint32_t block = i / line->nthreads;

		line->block[block].strand = &strand[block * line->nthreads];
		strand[i].line = line;
		strand[i].block = block;
		strand[i].env.world = (struct tti_dev_world){
			.block = &line->block[block].base,
			.tid = i % line->nthreads,
			.nthreads = line->nthreads,
			.view = host->view,
		};
		strand[i].env.shared =
			(struct tti_dev_shared *)(void *)(line->shared +
							  block * line->shared_bytes);
		give_stack(&strand[i], stacks + i * STACK_BYTES);
	}
}

static void end_all(struct relay *ran, struct tti_dev_traffic *traffic)
{
	for (uint32_t i = 0; i < ran->n && traffic; i++) {
		traffic->read += ran->strand[i].env.world.read;
		traffic->written += ran->strand[i].env.world.written;
	}
	for (int i = 0; i < ran->turns->nlines; i++) {
		free(ran->line[i].block);
		free(ran->line[i].shared);
	}
	free(ran->line);
	free(ran->strand);
}

void device_turns_run(const struct device_turns *turns, const struct tti_dev_host *host)
{
	struct relay ran = { .turns = turns };
	char *stacks;

	relay = &ran;
	ran.line = calloc((size_t)turns->nlines, sizeof(*ran.line));
	for (int i = 0; i < turns->nlines; i++) {
		begin_line(&ran.line[i], i, host);
		ran.n += ran.line[i].nblocks * host->nthreads;
	}
	stacks = take_stacks(ran.n);
	ran.strand = calloc(ran.n, sizeof(*ran.strand));
	if (!ran.line || !ran.strand)
		abort();
	for (uint32_t i = 0, at = 0; i < (uint32_t)turns->nlines; i++) {
		begin_strands(&ran.strand[at], &ran.line[i], host, stacks + at * STACK_BYTES);
		at += ran.line[i].nblocks * host->nthreads;
	}
	ran.left = ran.n;
	ran.random = ran.line[0].launch.call[0].done_value;
	go(NULL, &ran.strand[0]);
	relay = NULL;
	end_all(&ran, host->traffic);
}
