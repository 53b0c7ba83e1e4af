/* SPDX-License-Identifier: BSD-3-Clause */
#include "util/interrupt.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>

#include "tutti/tutti.h"
#include "util/clock.h"

#define LEAST_NS (20 * TTI_NS_PER_MS)
#define MOST_MS  50

static _Thread_local struct {
	tutti_interrupt_fn fn; /* NULL: none */
	void *arg;
	int64_t asked_ns;
} self;

void tutti_set_interrupt(tutti_interrupt_fn fn, void *arg)
{
	self.fn = fn;
	self.arg = arg;
}

bool tti_interrupted(void)
{
	int64_t now;

	if (!self.fn)
		return false;
	now = tti_now_ns();
	if (now - self.asked_ns < LEAST_NS)
		return false;
	self.asked_ns = now;
	return self.fn(self.arg) != 0;
}

bool tti_interrupt_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock, int64_t *until_ns)
{
	struct timespec until;
	bool stop;

	if (!self.fn) {
		pthread_cond_wait(cond, lock);
		return false;
	}
	if (!*until_ns)
		*until_ns = tti_deadline(MOST_MS);
	until = (struct timespec){ .tv_sec = *until_ns / 1000000000,
				   .tv_nsec = *until_ns % 1000000000 };
	if (pthread_cond_timedwait(cond, lock, &until) != ETIMEDOUT && tti_now_ns() < *until_ns)
		return false;
	*until_ns = 0;
	pthread_mutex_unlock(lock);
	stop = tti_interrupted();
	pthread_mutex_lock(lock);
	return stop;
}
