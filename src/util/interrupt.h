/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_UTIL_INTERRUPT_H
#define TTI_UTIL_INTERRUPT_H

/* What a thread asks while it waits: whether it shall go on (tutti_set_interrupt() in tutti.h).
 *
 * Threads: each has a function of its own; most have none, and are never interrupted. No lock is to
 * be held that the function might wait for. */

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* Whether this thread shall wait no longer. Asks its function, if it was not asked in the last 20
 * ms; so a wait should come here every 50 ms. */
bool tti_interrupted(void);

/* Wait on `cond`, of tti_cond_init(), by its lock, which is not held while the function is asked.
 * False: look again. True: this thread shall wait no longer. *until_ns is this function's, when it
 * asks next, however often it is woken; 0 before the first of these waits. */
bool tti_interrupt_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock, int64_t *until_ns);

#endif
