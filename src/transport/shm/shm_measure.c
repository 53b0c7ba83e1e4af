/* SPDX-License-Identifier: BSD-3-Clause */
/* How fast the kernel copies from one process to another beside slots of shared memory.
 *
 * Two ranks do the same at the same time, as in a collective. In each round both write their
 * source anew, as a program does between calls: a source that has not changed since the last
 * copy lies in the cache of who reads it and is copied much faster. Then they meet, and each
 * copies the other's source to itself; of several rounds the fastest counts, which neither a
 * page that is touched for the first time nor another process on the core has slowed down.
 *
 * Through slots both put their source into their own slots piece by piece and take the other's
 * pieces out of the other's. The slots are a part of the broadcasts, as nothing was sent yet.
 *
 * Both ranks give up after TTI_SHM_MEASURE_MS: nobody waits for one that is gone or gets no
 * core. */
#include <sched.h>
#include <string.h>
#include <sys/mman.h>

#include "transport/shm/shm.h"
#include "util/clock.h"
#include "util/thread.h"

#define LARGE_BYTES ((size_t)512 << 10)
#define SMALL_BYTES ((size_t)64 << 10)
#define PIECE_BYTES ((size_t)16 << 10)
#define PIECES_MOST 8
#define LOOKS       64 /* between two looks at the clock */
#define CALLS       8
/* The first round touches the pages of slots, and does not count. */
#define ROUNDS      5
/* Who waits keeps its core for so long: a process that gets it meanwhile leaves other data in its
 * caches. It yields at once to a rank on the same core. */
#define SPIN_NS     100000

struct measure {
	struct tti_shm_port *port;
	const struct tti_shm_process *peer;
	struct tti_shm_agreement *agreement;
	struct tti_shm_trial *mine, *theirs;
	uint8_t *source, *target;
	uint8_t *out;      /* the own slots             */
	const uint8_t *in; /* the other's               */
	size_t piece;      /* bytes of a slot           */
	uint32_t npieces;  /* slots                     */
	uint32_t met, put, taken;
	uint8_t fill; /* what both write into their sources in this round */
	int64_t deadline_ns;
};

struct wait {
	uint32_t looks;
	int64_t began_ns; /* 0: not yet */
};

/* Whether the other one can do nothing before this one lets it. */
static bool shares_cpu(const struct measure *measure)
{
	return atomic_load_explicit(&measure->theirs->cpu, memory_order_relaxed) == sched_getcpu();
}

/* One look of a wait; false: both give up. */
static bool go_on(struct measure *measure, struct wait *wait)
{
	int64_t now_ns;

	tti_cpu_relax();
	if (++wait->looks % LOOKS)
		return true;
	now_ns = tti_now_ns();
	if (!wait->began_ns)
		wait->began_ns = now_ns;
	if (now_ns - wait->began_ns > SPIN_NS || shares_cpu(measure))
		sched_yield();
	if (now_ns < measure->deadline_ns && !atomic_load(&measure->theirs->gave_up))
		return true;
	atomic_store(&measure->mine->gave_up, 1);
	return false;
}

/* Both have done what they did before. */
static bool meet(struct measure *measure)
{
	struct wait wait = { 0 };

	atomic_store_explicit(&measure->mine->cpu, sched_getcpu(), memory_order_relaxed);
	atomic_store_explicit(&measure->mine->met, ++measure->met, memory_order_release);
	while (atomic_load_explicit(&measure->theirs->met, memory_order_acquire) < measure->met)
		if (!go_on(measure, &wait))
			return false;
	return true;
}

static bool copy_by_kernel(struct measure *measure, size_t nbytes)
{
	return tti_shm_copy_quietly(measure->peer, measure->target, measure->theirs->source,
				    nbytes) == 0;
}

static bool copy_through_slots(struct measure *measure, size_t nbytes)
{
	const size_t piece = measure->piece, npieces = measure->npieces;
	size_t sent = 0, got = 0;
	struct wait wait = { 0 };

	while (sent < nbytes || got < nbytes) {
		const size_t before = sent + got;

		if (sent < nbytes && measure->put - atomic_load_explicit(&measure->theirs->taken,
									 memory_order_acquire) <
					     npieces) {
			memcpy(measure->out + measure->put % npieces * piece,
			       measure->source + sent, piece);
			atomic_store_explicit(&measure->mine->put, ++measure->put,
					      memory_order_release);
			sent += piece;
		}
		if (got < nbytes && atomic_load_explicit(&measure->theirs->put,
							 memory_order_acquire) != measure->taken) {
			memcpy(measure->target + got,
			       measure->in + measure->taken % npieces * piece, piece);
			atomic_store_explicit(&measure->mine->taken, ++measure->taken,
					      memory_order_release);
			got += piece;
		}
		if (sent + got != before)
			wait = (struct wait){ 0 };
		else if (!go_on(measure, &wait))
			return false;
	}
	return true;
}

/* Bytes per us of one copy, if it is the fastest so far; false: both give up. The time is that
 * of both ranks, from when the first one began: on one core they copy one after the other. */
static bool run_round(struct measure *measure, bool (*copy)(struct measure *, size_t),
		      size_t nbytes, uint32_t *best)
{
	const struct tti_shm_trial *mine = measure->mine, *theirs = measure->theirs;
	int64_t took_ns;
	uint64_t rate;

	memset(measure->source, ++measure->fill, nbytes);
	if (!meet(measure))
		return false;
	measure->mine->began_ns = tti_now_ns();
	if (!copy(measure, nbytes) || !meet(measure))
		return false;
	took_ns = tti_now_ns() -
		  (mine->began_ns < theirs->began_ns ? mine->began_ns : theirs->began_ns);
	rate = nbytes * UINT64_C(1000) / (uint64_t)(took_ns > 0 ? took_ns : 1);
	if (rate > *best)
		*best = rate < UINT32_MAX ? (uint32_t)rate : UINT32_MAX;
	/* It is the other's memory of this round, and no other. */
	return measure->target[0] == measure->fill && measure->target[nbytes - 1] == measure->fill;
}

static bool run_all(struct measure *measure, struct tti_reach_figures *figures)
{
	return run_round(measure, copy_by_kernel, LARGE_BYTES, &figures->copied_512k) &&
	       run_round(measure, copy_through_slots, LARGE_BYTES, &figures->slots_512k) &&
	       run_round(measure, copy_by_kernel, SMALL_BYTES, &figures->copied_64k) &&
	       run_round(measure, copy_through_slots, SMALL_BYTES, &figures->slots_64k);
}

static uint32_t time_call(const struct measure *measure)
{
	int64_t best = INT64_MAX;

	for (int k = 0; k < CALLS; k++) {
		const int64_t began_ns = tti_now_ns();
		int64_t took_ns;

		if (tti_shm_copy_quietly(measure->peer, measure->target, measure->theirs->source,
					 8) != 0)
			return 0;
		took_ns = tti_now_ns() - began_ns;
		best = took_ns < best ? took_ns : best;
	}
	return best > 0 && best < UINT32_MAX ? (uint32_t)best : 1;
}

/* Whether all rounds were run. */
static bool run(struct measure *measure, struct tti_reach_figures *figures)
{
	measure->deadline_ns = tti_now_ns() + TTI_SHM_MEASURE_MS * TTI_NS_PER_MS;
	for (int round = 0; round < ROUNDS; round++) {
		if (!run_all(measure, figures)) {
			atomic_store(&measure->mine->gave_up, 1);
			return false;
		}
		if (round == 0)
			memset(figures, 0, sizeof(*figures));
	}
	return true;
}

void tti_shm_measure(struct tti_shm_port *port, int index, bool leads)
{
	const size_t buffer = port->seg.layout.bounce_bytes;
	struct measure measure = { .port = port,
				   .peer = &port->process[index],
				   .agreement = tti_shm_seg_agreement(&port->seg),
				   .mine = tti_shm_seg_trial(&port->seg, port->self),
				   .theirs = tti_shm_seg_trial(&port->seg, index),
				   .out = tti_shm_seg_broadcast(&port->seg, port->self),
				   .in = tti_shm_seg_broadcast(&port->seg, index),
				   .piece = buffer < PIECE_BYTES ? 4096 : PIECE_BYTES };
	struct tti_reach_figures figures = { 0 };
	void *memory = mmap(NULL, 2 * LARGE_BYTES, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (memory == MAP_FAILED) {
		atomic_store(&measure.mine->gave_up, 1);
		return;
	}
	measure.npieces = (uint32_t)(buffer / measure.piece);
	if (measure.npieces > PIECES_MOST)
		measure.npieces = PIECES_MOST;
	measure.source = memory;
	measure.target = (uint8_t *)memory + LARGE_BYTES;
	measure.mine->source = (uint64_t)(uintptr_t)memory;
	if (run(&measure, &figures)) {
		figures.call_ns = time_call(&measure);
		/* The other one is through, too, or gives up: what it copies from may go. */
		(void)meet(&measure);
		if (leads)
			measure.agreement->figures = figures;
	}
	munmap(memory, 2 * LARGE_BYTES);
}
