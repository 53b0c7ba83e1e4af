/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/detect/measure.h"

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#ifdef __x86_64__
#include <emmintrin.h>
#endif

#include "util/clock.h"
#include "util/error.h"
#include "util/mem.h"
#include "util/thread.h"

/* Bandwidth: every thread copies between two buffers of its own, to and fro. Its stores go past
 * the caches and drop the line that was there. So the data that is read next is in no cache,
 * however large, and a few megabytes are enough. The time is cut into windows and the best one
 * counts, so that another process costs a window and not the result. A thread that gets no core
 * in that time still copies its memory once; then all bytes moved since the beginning count.
 *
 * Latency: one thread follows a chain through lines in random order. It visits each line once,
 * after all were flushed. */

#define THREADS_MAX  32
#define COPY_BYTES   ((size_t)4 << 20)
#define COPY_CHUNK   ((size_t)256 << 10)
#define WINDOWS      8
#define CHAIN_STRIDE 256 /* too far apart for a prefetcher of pairs of lines */
#define CHAIN_BYTES  ((size_t)32 << 20)
#define CHAIN_NODES  (CHAIN_BYTES / CHAIN_STRIDE)
#define CHAIN_CHUNK  2048
#define HUGE_BYTES   ((size_t)2 << 20)

/* -- Memory ------------------------------------------------------------------------- */

/* Map memory that is not yet touched, aligned to huge pages, and ask for these. NULL: no
 * memory. */
static void *map_fresh(size_t nbytes, void **base_out)
{
	void *const base = mmap(NULL, nbytes + HUGE_BYTES, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	char *aligned;

	if (base == MAP_FAILED)
		return NULL;
	*base_out = base;
	aligned = (char *)(((uintptr_t)base + HUGE_BYTES - 1) & ~(uintptr_t)(HUGE_BYTES - 1));
	(void)madvise(aligned, nbytes, MADV_HUGEPAGE); /* slower without, not wrong */
	return aligned;
}

static void flush_line(const void *line)
{
#if defined(__x86_64__)
	_mm_clflush(line);
#elif defined(__aarch64__)
	__asm__ __volatile__("dc civac, %0" ::"r"(line) : "memory");
#elif defined(__powerpc64__)
	__asm__ __volatile__("dcbf 0, %0" ::"r"(line) : "memory");
#else
	(void)line; /* a cache of 32 MiB would be measured */
#endif
}

static void copy_past_caches(char *to, const char *from, size_t nbytes)
{
#if defined(__x86_64__)
	for (size_t i = 0; i < nbytes; i += 64) {
		const __m128i a = _mm_load_si128((const __m128i *)(from + i));
		const __m128i b = _mm_load_si128((const __m128i *)(from + i + 16));
		const __m128i c = _mm_load_si128((const __m128i *)(from + i + 32));
		const __m128i d = _mm_load_si128((const __m128i *)(from + i + 48));

		_mm_stream_si128((__m128i *)(to + i), a);
		_mm_stream_si128((__m128i *)(to + i + 16), b);
		_mm_stream_si128((__m128i *)(to + i + 32), c);
		_mm_stream_si128((__m128i *)(to + i + 48), d);
	}
	_mm_sfence();
#else
	memcpy(to, from, nbytes);
	for (size_t i = 0; i < nbytes; i += 64) {
		flush_line(to + i);
		flush_line(from + i);
	}
#endif
}

/* -- Bandwidth ---------------------------------------------------------------------- */

struct crew;

struct worker {
	struct crew *crew;
	pthread_t thread;
	uint32_t cpu;
	uint64_t nbytes[WINDOWS]; /* moved in each window        */
	uint64_t moved;           /* in all windows and later     */
	int64_t took_ns;          /* from the beginning to its end */
	int error;
};

struct crew {
	struct worker *workers;
	size_t n;
	int64_t window_ns;
	_Atomic size_t nready;
	_Atomic int64_t begin_ns; /* 0: not yet, NEVER: a thread could not be started */
};
#define NEVER INT64_C(-1)

static int pin(uint32_t cpu)
{
	const size_t nbytes = CPU_ALLOC_SIZE(cpu + 1);
	cpu_set_t *const set = CPU_ALLOC(cpu + 1);
	int error = ENOMEM;

	if (!set)
		return error;
	CPU_ZERO_S(nbytes, set);
	CPU_SET_S(cpu, nbytes, set);
	error = sched_setaffinity(0, nbytes, set) == 0 ? 0 : errno;
	CPU_FREE(set);
	return error;
}

/* All threads begin together, once the last one has touched its memory. */
static int64_t wait_for_all(struct crew *crew)
{
	int64_t begin;

	if (atomic_fetch_add(&crew->nready, 1) + 1 == crew->n)
		atomic_store(&crew->begin_ns, tti_now_ns() + 100 * 1000);
	while ((begin = atomic_load(&crew->begin_ns)) == 0)
		sched_yield();
	return begin;
}

static void copy_until_end(struct worker *self, char *a, char *b, int64_t begin)
{
	const int64_t window_ns = self->crew->window_ns;

	while (tti_now_ns() < begin)
		tti_cpu_relax();
	for (;;) {
		char *const from = a;

		for (size_t at = 0; at < COPY_BYTES; at += COPY_CHUNK) {
			int64_t window;

			copy_past_caches(b + at, a + at, COPY_CHUNK);
			self->took_ns = tti_now_ns() - begin;
			self->moved += 2 * COPY_CHUNK;
			window = self->took_ns / window_ns;
			if (window < WINDOWS)
				self->nbytes[window] += 2 * COPY_CHUNK;
			else if (self->moved >= 2 * COPY_BYTES)
				return;
		}
		a = b;
		b = from;
	}
}

static void *run_worker(void *arg)
{
	struct worker *const self = arg;
	void *base = NULL;
	char *memory = NULL;
	int64_t begin;

	self->error = pin(self->cpu);
	if (!self->error) {
		memory = map_fresh(2 * COPY_BYTES, &base);
		self->error = memory ? 0 : ENOMEM;
	}
	if (memory)
		memset(memory, 1, 2 * COPY_BYTES);
	begin = wait_for_all(self->crew);
	if (memory && begin != NEVER)
		copy_until_end(self, memory, memory + COPY_BYTES, begin);
	if (memory)
		munmap(base, 2 * COPY_BYTES + HUGE_BYTES);
	return NULL;
}

/* The first and the last window do not count: threads come late or leave there. */
static double best_window_gbps(const struct crew *crew)
{
	uint64_t most = 0;

	for (size_t window = 1; window + 1 < WINDOWS; window++) {
		uint64_t nbytes = 0;

		for (size_t i = 0; i < crew->n; i++)
			nbytes += crew->workers[i].nbytes[window];
		most = nbytes > most ? nbytes : most;
	}
	return (double)most / (double)crew->window_ns;
}

/* All bytes over the time until the last thread was done. */
static double mean_gbps(const struct crew *crew)
{
	uint64_t nbytes = 0;
	int64_t took_ns = 1;

	for (size_t i = 0; i < crew->n; i++) {
		const struct worker *worker = &crew->workers[i];

		nbytes += worker->moved;
		took_ns = worker->took_ns > took_ns ? worker->took_ns : took_ns;
	}
	return (double)nbytes / (double)took_ns;
}

static tutti_status measure_bandwidth(const uint32_t *cpus, size_t ncpus, int64_t budget_ns,
				      struct tti_memory_speed *out)
{
	const size_t quota = (size_t)tti_cpu_count();
	struct crew crew = { .window_ns = budget_ns > WINDOWS ? budget_ns / WINDOWS : 1 };
	tutti_status status = TUTTI_OK;
	size_t nstarted = 0;

	crew.n = ncpus < THREADS_MAX ? ncpus : THREADS_MAX;
	crew.n = crew.n < quota ? crew.n : quota;
	crew.workers = tti_calloc(crew.n, sizeof(*crew.workers));
	if (!crew.workers)
		return tti_fail(TUTTI_ENOMEM, "no memory for %zu threads that measure", crew.n);
	for (; status == TUTTI_OK && nstarted < crew.n; nstarted++) {
		struct worker *const worker = &crew.workers[nstarted];

		worker->crew = &crew;
		worker->cpu = cpus[nstarted * ncpus / crew.n]; /* spread over the node */
		status = tti_thread_start(&worker->thread, "tti-measure", run_worker, worker);
		if (status != TUTTI_OK)
			break;
	}
	if (status != TUTTI_OK)
		atomic_store(&crew.begin_ns, NEVER);
	for (size_t i = 0; i < nstarted; i++) {
		pthread_join(crew.workers[i].thread, NULL);
		errno = crew.workers[i].error;
		if (status == TUTTI_OK && errno)
			status = tti_fail(TUTTI_ESYS, "memory cannot be measured from CPU %u: %m",
					  crew.workers[i].cpu);
	}
	out->gbps = fmax(best_window_gbps(&crew), mean_gbps(&crew));
	out->nthreads = crew.n;
	tti_free(crew.workers);
	return status;
}

/* -- Latency ------------------------------------------------------------------------ */

struct chase {
	uint32_t cpu;
	int64_t budget_ns;
	int error;
	double ns;
};

/* Link all nodes in one circle, in random order (S. Sattolo, Information Processing Letters,
 * 1986). */
static void link_chain(char *memory, uint32_t *order)
{
	uint64_t random = 88172645463325252u;

	for (uint32_t i = 0; i < CHAIN_NODES; i++)
		order[i] = i;
	for (uint32_t i = CHAIN_NODES - 1; i > 0; i--) {
		uint32_t other, kept;

		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		other = (uint32_t)(random % i);
		kept = order[i];
		order[i] = order[other];
		order[other] = kept;
	}
	for (uint32_t i = 0; i < CHAIN_NODES; i++)
		*(void **)(memory + (size_t)i * CHAIN_STRIDE) =
			memory + (size_t)order[i] * CHAIN_STRIDE;
	for (size_t at = 0; at < CHAIN_BYTES; at += CHAIN_STRIDE)
		flush_line(memory + at);
	atomic_thread_fence(memory_order_seq_cst);
}

static int by_value(const void *a, const void *b)
{
	const int64_t x = *(const int64_t *)a;
	const int64_t y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* The ns of one access: the median over short stretches, few of which others disturb. */
static double follow_chain(const char *memory, int64_t give_up_ns)
{
	int64_t took[CHAIN_NODES / CHAIN_CHUNK];
	const void *volatile end; /* so that the chain is followed */
	const void *at = memory;
	int64_t now = tti_now_ns();
	size_t n = 0;

	while (n < CHAIN_NODES / CHAIN_CHUNK && (n == 0 || now < give_up_ns)) {
		const int64_t begun = now;

		for (int i = 0; i < CHAIN_CHUNK; i++)
			at = *(const void *const *)at;
		end = at;
		now = tti_now_ns();
		took[n++] = now - begun;
	}
	(void)end;
	qsort(took, n, sizeof(took[0]), by_value);
	return (double)took[n / 2] / CHAIN_CHUNK;
}

static void *run_chase(void *arg)
{
	struct chase *const self = arg;
	uint32_t *const order = tti_alloc(CHAIN_NODES * sizeof(*order));
	const int64_t give_up_ns = tti_now_ns() + self->budget_ns;
	void *base = NULL;
	char *memory = NULL;

	self->error = pin(self->cpu);
	if (!self->error && order)
		memory = map_fresh(CHAIN_BYTES, &base);
	if (memory) {
		link_chain(memory, order);
		self->ns = follow_chain(memory, give_up_ns);
		munmap(base, CHAIN_BYTES + HUGE_BYTES);
	} else if (!self->error) {
		self->error = ENOMEM;
	}
	tti_free(order);
	return NULL;
}

static tutti_status measure_latency(uint32_t cpu, int64_t budget_ns, struct tti_memory_speed *out)
{
	struct chase chase = { .cpu = cpu, .budget_ns = budget_ns };
	pthread_t thread;

	TTI_TRY(tti_thread_start(&thread, "tti-measure", run_chase, &chase));
	pthread_join(thread, NULL);
	errno = chase.error;
	if (errno)
		return tti_fail(TUTTI_ESYS, "memory cannot be measured from CPU %u: %m", cpu);
	out->ns = chase.ns;
	return TUTTI_OK;
}

tutti_status tti_measure_node(const uint32_t *cpus, size_t ncpus, int64_t budget_ns,
			      struct tti_memory_speed *out)
{
	memset(out, 0, sizeof(*out));
	/* The CPU in the middle, since the first one of a machine serves interrupts. */
	TTI_TRY(measure_latency(cpus[ncpus / 2], budget_ns / 2, out));
	return measure_bandwidth(cpus, ncpus, budget_ns / 2, out);
}
