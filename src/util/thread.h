/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_UTIL_THREAD_H
#define TTI_UTIL_THREAD_H

/* Threads and waiting. */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "tutti/status.h"

/* Start a thread with all signals blocked (but those of a fault, as SIGSEGV),
 * a small stack (256 KiB) and a name
 * (15 characters). It must be joined. */
TUTTI_CHECKED tutti_status tti_thread_start(pthread_t *out, const char *name, void *(*run)(void *),
					    void *self);

/* Ask that this thread, which sleeps most of the time and does little when it is woken, gets a core
 * at once then, for turns that are short: from Linux 6.12 on. Elsewhere nothing changes. */
void tti_thread_low_latency(void);

/* Waits on it have deadlines of CLOCK_MONOTONIC. */
void tti_cond_init(pthread_cond_t *cond);
/* Wait on such a one until it is signalled, or until_ns; may return early. */
void tti_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, int64_t until_ns);

/* CPUs this thread may run on (sched_getaffinity and the cgroup's quota), >= 1. */
int tti_cpu_count(void);

/* CPUs of the host, whoever may run on them, >= 1. */
int tti_cpu_online(void);

/* The core that a CPU is a thread of, as the number of its first CPU; `cpu` where /sys does not
 * tell. */
int tti_cpu_core(int cpu);

/* CPUs the control groups allow, rounded up, read below `root` ("": the
 * system); 0: no limit. */
int tti_cpu_quota(const char *root);

static inline void tti_cpu_relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ __volatile__("isb" ::: "memory");
#endif
}

/* Sleep while *word == seen, at most timeout_ns (0: do not sleep). May return
 * early. The word may lie in memory shared between processes. */
void tti_futex_wait(_Atomic uint32_t *word, uint32_t seen, int64_t timeout_ns);
void tti_futex_wake(_Atomic uint32_t *word, int howmany);

#endif
