/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/window/window_signals.h"

#include <sodium.h>
#include <stdint.h>
#include <unistd.h>

#include "transport/shm/heap.h"
#include "util/error.h"
#include "util/fork.h"
#include "util/mem.h"
#include "util/thread.h"

/* Counters of this process. Made and freed outside of the lock, which may be held while malloc()
 * waits. */
struct counters {
	struct counters *next;
	struct tti_window_signals *signals;
	uint64_t key;
	int users;
};

/* Under tti_fork_lock(). process: the random number of this process, as long as it has that pid. */
static struct {
	struct counters *first;
	uint64_t process;
	int pid;
} all;

/* -- Counting --------------------------------------------------------------------- */

bool tti_signals_count(struct tti_window_signals *signals, size_t at, uint64_t key)
{
	struct tti_window_signal *signal = &signals->from[at];
	const uint64_t none = tti_signals_none(key);
	uint64_t word = atomic_load(&signal->word);

	do {
		if ((word & ~TTI_SIGNALS_MOST) != none)
			return false;
	} while (!atomic_compare_exchange_weak(&signal->word, &word,
					       none | ((word + 1) & TTI_SIGNALS_MOST)));
	if (atomic_load(&signal->waiters))
		tti_futex_wake(tti_signal_doorbell(signal), INT32_MAX);
	return true;
}

/* -- Beginning and end ------------------------------------------------------------ */

uint64_t tti_signals_process(void)
{
	const int pid = getpid();
	uint64_t process;

	tti_fork_lock();
	if (all.pid != pid)
		randombytes_buf(&all.process, sizeof(all.process));
	all.pid = pid;
	process = all.process;
	tti_fork_unlock();
	return process;
}

static void free_memory(struct tti_window_signals *signals)
{
	if (tti_heap_free(signals) != TUTTI_OK)
		tti_free(signals);
}

tutti_status tti_signals_create(size_t n, bool for_peers, uint64_t key,
				struct tti_window_signals **out)
{
	struct counters *mine = tti_alloc(sizeof(*mine));
	void *memory = NULL;

	if (mine && (!for_peers || tti_heap_alloc(tti_signals_bytes(n), &memory) != TUTTI_OK))
		memory = tti_aligned_zalloc(64, tti_signals_bytes(n));
	if (!memory) {
		tti_free(mine);
		return tti_fail(TUTTI_ENOMEM, "a window of %zu signals: out of memory", n);
	}
	*mine = (struct counters){ .signals = memory, .key = key, .users = 1 };
	for (size_t at = 0; at < n; at++)
		atomic_store_explicit(&mine->signals->from[at].word, tti_signals_none(key),
				      memory_order_relaxed);
	atomic_store_explicit(&mine->signals->open, key, memory_order_relaxed);
	tti_fork_lock();
	mine->next = all.first;
	all.first = mine;
	tti_fork_unlock();
	*out = memory;
	return TUTTI_OK;
}

struct tti_window_signals *tti_signals_borrow(uint64_t key)
{
	struct tti_window_signals *signals = NULL;
	struct counters *at;

	tti_fork_lock();
	for (at = all.first; at && at->key != key;)
		at = at->next;
	if (at) {
		at->users++;
		signals = at->signals;
	}
	tti_fork_unlock();
	return signals;
}

void tti_signals_drop(struct tti_window_signals *signals)
{
	struct counters **link = &all.first, *unused = NULL;

	tti_fork_lock();
	while (*link && (*link)->signals != signals)
		link = &(*link)->next;
	if (*link && --(*link)->users == 0) {
		unused = *link;
		*link = unused->next;
	}
	tti_fork_unlock();
	if (unused)
		free_memory(unused->signals);
	tti_free(unused);
}

void tti_signals_close(struct tti_window_signals *signals, size_t n)
{
	atomic_store(&signals->open, 0);
	for (size_t at = 0; at < n; at++)
		atomic_store(&signals->from[at].word, 0);
}
