/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_UTIL_INTERRUPT_H
#define TTI_UTIL_INTERRUPT_H

/* Whether a thread that waits is to go on waiting (tutti_set_interrupt() in tutti.h).
 *
 * Threads: each has a function of its own; most have none, and are never interrupted. The caller
 * holds no lock that the function might wait for. */

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* Whether this thread is to stop waiting. Calls its function, unless it was called in the last 20
 * ms; a wait should call this every 50 ms. */
bool tti_interrupted(void);

/* Wait on `cond` (tti_cond_init()) with its lock, which is released while the function is called.
 * False: look again. True: this thread is to stop waiting. *until_ns keeps the time of the next
 * call of the function, however often the wait is woken; 0 before the first wait. */
bool tti_interrupt_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock, int64_t *until_ns);

#endif
