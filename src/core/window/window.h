/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_CORE_WINDOW_H
#define TTI_CORE_WINDOW_H

/* Windows in parts: window.c makes them, window_call.c has the calls and moves bytes in place,
 * window_net.c by messages; window_signals.c has the counters of signals.
 *
 * Signals from a rank are a counter that it increments, in memory of the rank that waits. To a
 * rank whose window or counters cannot be reached, both go by messages: so one way carries
 * all, and in order.
 *
 * Owner: the user, and until that comes the communicator, which takes back all but the struct.
 * Threads: as window.h says. */

#include "core/comm.h"
#include "tutti/window.h"

/* Signals from one origin, in memory that it can address. The lower bits of `word` are their number, the
 * upper ones those of the window's key, so that a signal is one compare-and-swap that changes nothing
 * where the window is gone, whatever lies there by now. Who waits sleeps on the lower half of `word`, while
 * `waiters` is not 0. */
struct tti_window_signal {
	_Alignas(64) _Atomic uint64_t word;
	_Atomic uint32_t waiters;
};

#define TTI_SIGNALS_MOST ((UINT64_C(1) << 40) - 1)

/* Of one rank: from[origin * signals + index]. `open` is the window's key until the rank takes its window away: then what was in the
 * window may be something else's. */
struct tti_window_signals {
	_Alignas(64) _Atomic uint64_t open;
	struct tti_window_signal from[];
};

struct tti_window_peer {
	uint64_t nbytes;
	uint8_t *data; /* NULL and no signals: by messages */
	struct tti_window_signals *signals;
	bool borrowed; /* they are of this process, and stay until they are dropped */
	uint64_t key;  /* see struct tti_window_signals */
};

struct tti_window_net;

struct tutti_window {
	tutti_comm_t handle;
	int pid;                         /* of the process that made it              */
	_Atomic(struct tti_comm *) comm; /* NULL: it has taken back what it lent */
	uint8_t *base;
	size_t nbytes;
	int nsignals; /* of each two ranks */
	struct tti_window_signals *signals;
	_Atomic uint64_t *taken;       /* [n * nsignals]: those that were waited for */
	struct tti_window_peer *peers; /* [n] */
	struct tti_window_net *net;    /* NULL: all are reached in place */
	/* Calls that streams have not run yet. */
	pthread_mutex_t lock;
	pthread_cond_t ran;
	size_t queued;
};

/* Where the counter of signal `index` from `origin` lies, and how many there are. */
static inline size_t tti_window_signal_at(const struct tutti_window *window, int origin, int index)
{
	return (size_t)origin * (size_t)window->nsignals + (size_t)index;
}

static inline size_t tti_window_signal_count(const struct tutti_window *window)
{
	return (size_t)window->comm->n * (size_t)window->nsignals;
}

/* The communicator ends: all windows that are left lose what is its. */
void tti_windows_release(struct tti_comm *comm);

/* Its communicator, held until tti_handle_leave(). NULL: that was destroyed, and the handle may be
 * another's by now. */
struct tti_comm *tti_window_find(struct tutti_window *window);

/* Wait until no stream has a call of the window left to run. TUTTI_EUSAGE: that would be for ever. */
TUTTI_CHECKED tutti_status tti_window_await_queued(struct tutti_window *window);

/* How long a wait has gone on. Zeroed: not at all. */
struct tti_window_wait {
	int64_t since_ns, nap_ns;
	uint32_t rounds;
};

/* Nothing moved: look whether to go on waiting for `peer` and for `what`, then back off. */
TUTTI_CHECKED tutti_status tti_window_backoff(struct tutti_window *window,
					      struct tti_window_wait *wait, int peer,
					      const char *what);

/* -- window_net.c --------------------------------------------------------- */

/* Collective. A port of its own, links to all peers that are not reached in place. */
TUTTI_CHECKED tutti_status tti_window_net_open(struct tutti_window *window);
/* Nothing is put or got any more: from now on peers that are gone are no failure. */
void tti_window_net_leave(struct tti_window_net *net);
/* The end was refused. */
void tti_window_net_stay(struct tti_window_net *net);
void tti_window_net_close(struct tti_window_net *net);

TUTTI_CHECKED tutti_status tti_window_net_put(struct tutti_window *window, int peer, size_t offset,
					      const void *src, size_t nbytes);
TUTTI_CHECKED tutti_status tti_window_net_get(struct tutti_window *window, int peer, size_t offset,
					      void *dst, size_t nbytes);
TUTTI_CHECKED tutti_status tti_window_net_signal(struct tutti_window *window, int peer, int index);
TUTTI_CHECKED tutti_status tti_window_net_flush(struct tutti_window *window, int peer);

/* -- window_signals.c ------------------------------------------------------ */

static inline size_t tti_signals_bytes(size_t n)
{
	return sizeof(struct tti_window_signals) + n * sizeof(struct tti_window_signal);
}

/* The word of no signals yet. Not 0, which is what lies in memory that was freed. */
static inline uint64_t tti_signals_none(uint64_t key)
{
	return (key | (TTI_SIGNALS_MOST + 1)) & ~TTI_SIGNALS_MOST;
}

/* The half of the word that changes with each signal, for the kernel. */
static inline _Atomic uint32_t *tti_signal_doorbell(struct tti_window_signal *signal)
{
	_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the lower half comes first");
	return (_Atomic uint32_t *)(void *)&signal->word;
}

/* Of a window with that key, n of them. `for_peers`: where other processes reach them, if there is such
 * memory. To be dropped. */
TUTTI_CHECKED tutti_status tti_signals_create(size_t n, bool for_peers, uint64_t key,
					      struct tti_window_signals **out);

/* Tells this process from others. */
uint64_t tti_signals_process(void);

/* The counters of another rank of this process, which are not freed before they are dropped, as their
 * memory is this process's own; NULL: their window has ended. Those of another process are mapped as long
 * as the port. */
struct tti_window_signals *tti_signals_borrow(uint64_t key);
void tti_signals_drop(struct tti_window_signals *signals);

/* The window has ended: no signal is counted any more. */
void tti_signals_close(struct tti_window_signals *signals, size_t n);

/* Whether from[at] of the window of that key was counted: false: it has ended. */
bool tti_signals_count(struct tti_window_signals *signals, size_t at, uint64_t key);

#endif
