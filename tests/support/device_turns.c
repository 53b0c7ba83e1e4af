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

#include "device/env.h"
#include "support/reference.h"
#include "support/sanitizer.h"

/* TSan takes each stack for a thread, a fiber in its words, and knows only what is said here of the order
 * between them: a barrier orders, and that one runs after the other does not. What takes turns is not
 * looked at (QUIET). */
#if TTI_HAS_FEATURE(thread_sanitizer)
#include <sanitizer/tsan_interface.h>
#define QUIET                __attribute__((no_sanitize("thread")))
#define fiber_create()       __tsan_create_fiber(0)
#define fiber_destroy(fiber) __tsan_destroy_fiber(fiber)
#define fiber_of_main()      __tsan_get_current_fiber()
#define fiber_switch(fiber)  __tsan_switch_to_fiber(fiber, __tsan_switch_to_fiber_no_sync)
#define fiber_releases(what) __tsan_release((void *)(uintptr_t)(what))
#define fiber_acquires(what) __tsan_acquire((void *)(uintptr_t)(what))
#else
#define QUIET
#define fiber_create()       NULL
#define fiber_destroy(fiber) ((void)(fiber))
#define fiber_of_main()      NULL
#define fiber_switch(fiber)  ((void)(fiber))
#define fiber_releases(what) ((void)(what))
#define fiber_acquires(what) ((void)(what))
#endif

/* Turns of all without any news. */
#define IDLE_ROUNDS 100
/* Turns that a thread leaves out where it would sleep. */
#define REST        6
#define STACK_BYTES ((size_t)128 << 10)

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
	void *fiber;
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
	void *fiber; /* of main */
	ucontext_t main;
};

static _Thread_local struct relay *relay;

#if TTI_SANITIZED
/* Which know of contexts, and of no other way between stacks. */
__attribute__((noinline)) QUIET static void go(struct strand *from, struct strand *to)
{
	fiber_switch(to->fiber);
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

QUIET static bool has_turn(struct strand *strand)
{
	if (strand->ended || strand->is_blocked)
		return false;
	if (strand->rests == 0)
		return true;
	strand->rests--;
	return false;
}

/* The next one that can go on; now and then any. */
QUIET static uint32_t choose(void)
{
	uint64_t drawn = relay->random;
	const uint64_t random = next_random(&drawn);
	uint32_t next = random % 8 ? relay->running + 1 : (uint32_t)(random >> 32);
	uint32_t tried = 0;

	relay->random = drawn;
	for (next %= relay->n; !has_turn(&relay->strand[next]);) {
		next = next + 1 < relay->n ? next + 1 : 0;
		if (++tried < (REST + 2) * relay->n)
			continue;
		fprintf(stderr, "all threads wait at barriers that others do not come to\n");
		abort();
	}
	return next;
}

QUIET static void turns_pass_on(void)
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

/* Whoever has looked often leaves turns out. */
QUIET static void turns_relax(uint32_t looks)
{
	if (looks >= 32)
		relay->strand[relay->running].rests = REST;
	turns_pass_on();
}

QUIET static void wait_for_others(void)
{
	relay->strand[relay->running].is_blocked = true;
	turns_pass_on();
}

QUIET static void go_on(struct strand *strand, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		strand[i].is_blocked = false;
	relay->idle = 0;
}

QUIET static void turns_barrier(pthread_barrier_t *barrier)
{
	struct strand *self = &relay->strand[relay->running];
	struct block *block = &self->line->block[self->block];
	const uint32_t nthreads = self->line->nthreads;

	fiber_releases(barrier);
	if (++block->arrived < nthreads) {
		wait_for_others();
	} else {
		block->arrived = 0;
		go_on(block->strand, nthreads);
	}
	fiber_acquires(barrier);
}

static const struct tti_dev_waits waits = { .barrier = turns_barrier, .relax = turns_relax };

/* All threads of the line's launch have ended. What blocks have kept stays in their memory, as it does
 * on a GPU. */
QUIET static void launch_next(struct line *line)
{
	const struct device_turns *turns = relay->turns;

	line->ended = 0;
	fiber_acquires(&line->ended);
	line->is_over = !turns->next(turns->self, line->index, &line->launch);
	fiber_releases(&line->launch);
	go_on(line->strand, line->nblocks * line->nthreads);
}

QUIET static void run_launch(struct strand *self)
{
	struct line *line = self->line;
	struct tti_dev_env env = { .world = self->env.world, .shared = self->env.shared };

	self->env = env;
	tti_dev_host_thread(&self->env, &line->launch, self->block);
	fiber_releases(&line->ended);
	if (++line->ended == line->nblocks * line->nthreads)
		launch_next(line);
	else
		wait_for_others();
	fiber_acquires(&line->launch);
}

QUIET static void run(void)
{
	struct strand *self = &relay->strand[relay->running];

	while (!self->line->is_over)
		run_launch(self);
	self->ended = true;
	if (--relay->left == 0) {
		fiber_releases(relay);
		fiber_switch(relay->fiber);
		setcontext(&relay->main);
		abort();
	}
	relay->running = choose();
	fiber_releases(relay);
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

	if (stacks && !TTI_HAS_LSAN && n * STACK_BYTES <= nbytes)
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
			.waits = &waits,
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
	ran.fiber = fiber_of_main();
	for (uint32_t i = 0; i < ran.n; i++)
		ran.strand[i].fiber = fiber_create();
	go(NULL, &ran.strand[0]);
	fiber_acquires(&ran);
	for (uint32_t i = 0; i < ran.n; i++)
		fiber_destroy(ran.strand[i].fiber);
	relay = NULL;
	end_all(&ran, host->traffic);
}
