/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/device_turns.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>

#include "support/reference.h"
#include "support/sanitizer.h"

static void turns_pass_on(void);
static int turns_barrier(pthread_barrier_t *barrier);

/* What the interpreter waits by. */
#define pthread_barrier_wait(barrier) turns_barrier(barrier)
#define sched_yield()                 turns_pass_on()
#define nanosleep(time, left)         ((void)(time), turns_pass_on())
#include "device/run.h"
#undef pthread_barrier_wait
#undef sched_yield
#undef nanosleep

/* Turns of all without any news. */
#define IDLE_ROUNDS 100
#define STACK_BYTES ((size_t)(SANITIZED ? 512 : 128) << 10)

/* A block, whose barrier is a count. */
struct block {
	struct tti_dev_host_block base; /* first */
	uint32_t arrived, passed;
};

struct line {
	struct tti_dev_launch launch;
	int index;
	uint32_t nblocks, nthreads; /* of all its calls, of a block */
	struct block *block;        /* [nblocks] */
	char *shared;               /* of each block, shared_bytes */
	size_t shared_bytes;
	uint32_t ended;    /* threads of the launch that have */
	uint32_t launched; /* launches */
	bool is_over;
};

/* A thread of a block. */
struct strand {
	struct tti_dev_env env;
	struct line *line;
	uint32_t block;
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

/* The next one that has not ended; now and then any. */
static uint32_t choose(void)
{
	const uint64_t random = next_random(&relay->random);
	uint32_t next = random % 8 ? relay->running + 1 : (uint32_t)(random >> 32);

	for (next %= relay->n; relay->strand[next].ended;)
		next = (next + 1) % relay->n;
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

static int turns_barrier(pthread_barrier_t *barrier)
{
	struct block *block =
		(struct block *)(void *)((char *)barrier -
					 offsetof(struct tti_dev_host_block, barrier));
	const uint32_t passed = block->passed;

	if (++block->arrived == relay->strand[relay->running].env.world.nthreads) {
		block->arrived = 0;
		block->passed++;
		relay->idle = 0;
		return 0;
	}
	while (block->passed == passed)
		turns_pass_on();
	return 0;
}

/* All threads of the line's launch have ended. */
static void launch_next(struct line *line)
{
	const struct device_turns *turns = relay->turns;

	line->ended = 0;
	line->is_over = !turns->next(turns->self, line->index, &line->launch);
	line->launched++;
	relay->idle = 0;
	memset(line->shared, 0, line->nblocks * line->shared_bytes);
}

static void run_launch(struct strand *self)
{
	struct line *line = self->line;
	const uint32_t launched = line->launched;
	struct tti_dev_env env = { .world = self->env.world, .shared = self->env.shared };

	self->env = env;
	tti_dev_run(&self->env, &line->launch, self->block);
	if (++line->ended == line->nblocks * line->nthreads)
		launch_next(line);
	while (line->launched == launched)
		turns_pass_on();
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
	for (uint32_t i = 0; i < line->nblocks * line->nthreads; i++) {
		const uint32_t block = i / line->nthreads;

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
	size_t nbytes;
	char *stacks;

	relay = &ran;
	ran.line = calloc((size_t)turns->nlines, sizeof(*ran.line));
	for (int i = 0; i < turns->nlines; i++) {
		begin_line(&ran.line[i], i, host);
		ran.n += ran.line[i].nblocks * host->nthreads;
	}
	nbytes = ran.n * STACK_BYTES;
	stacks = mmap(NULL, nbytes, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	ran.strand = calloc(ran.n, sizeof(*ran.strand));
	if (!ran.line || !ran.strand || stacks == MAP_FAILED)
		abort();
	for (uint32_t i = 0, at = 0; i < (uint32_t)turns->nlines; i++) {
		begin_strands(&ran.strand[at], &ran.line[i], host, stacks + at * STACK_BYTES);
		at += ran.line[i].nblocks * host->nthreads;
	}
	ran.left = ran.n;
	ran.random = ran.line[0].launch.call[0].done_value;
	go(NULL, &ran.strand[0]);
	relay = NULL;
	munmap(stacks, nbytes);
	end_all(&ran, host->traffic);
}
