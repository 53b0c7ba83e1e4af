/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_CORE_WINDOW_WINDOW_SIGNALS_H
#define TTI_CORE_WINDOW_WINDOW_SIGNALS_H

/* The counters of signals of a window.
 *
 * Owner: counted; each rank of the process that has them drops them. Threads: any. */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tutti/status.h"

/* Signals from one origin, in memory that it can address. The lower bits of `word` count them,
 * the upper bits are those of the window's key. So a signal is one compare-and-swap, which
 * changes nothing if the window is gone, whatever lies there by now. A waiter counts itself in
 * `waiters` and sleeps on the lower half of `word`. */
struct tti_window_signal {
	_Alignas(64) _Atomic uint64_t word;
	_Atomic uint32_t waiters;
};

#define TTI_SIGNALS_MOST ((UINT64_C(1) << 40) - 1)

/* All counters of one rank. `open` is the window's key until the rank takes its window away:
 * from then on the memory of the window may be something else's. */
struct tti_window_signals {
	_Alignas(64) _Atomic uint64_t open;
	struct tti_window_signal from[];
};

/* Where the counter of signal `index` from `origin` is, with `n` signals of each two ranks. */
static inline size_t tti_signals_at(int n, int origin, int index)
{
	return (size_t)origin * (size_t)n + (size_t)index;
}

static inline size_t tti_signals_bytes(size_t n)
{
	return sizeof(struct tti_window_signals) + n * sizeof(struct tti_window_signal);
}

/* The word of a counter without signals. Not 0, which freed memory may hold. */
static inline uint64_t tti_signals_none(uint64_t key)
{
	return (key | (TTI_SIGNALS_MOST + 1)) & ~TTI_SIGNALS_MOST;
}

/* The half of the word that changes with each signal: the futex of the waiter. */
static inline _Atomic uint32_t *tti_signal_doorbell(struct tti_window_signal *signal)
{
	_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the lower half comes first");
	return (_Atomic uint32_t *)(void *)&signal->word;
}

/* n counters for a window with that key, to be dropped. `for_peers`: in memory that other
 * processes can map, if there is any. */
TUTTI_CHECKED tutti_status tti_signals_create(size_t n, bool for_peers, uint64_t key,
					      struct tti_window_signals **out);

/* A random number of this process. */
uint64_t tti_signals_process(void);

/* The counters of another rank of this process, which are not freed before they are dropped;
 * NULL: their window has ended. Counters of another process are mapped as long as the port
 * lives. */
struct tti_window_signals *tti_signals_borrow(uint64_t key);
void tti_signals_drop(struct tti_window_signals *signals);

/* The window has ended: no signal is counted any more. */
void tti_signals_close(struct tti_window_signals *signals, size_t n);

/* Count a signal in from[at]. False: the window with that key has ended. */
bool tti_signals_count(struct tti_window_signals *signals, size_t at, uint64_t key);

#endif
