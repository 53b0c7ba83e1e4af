/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TUTTI_WINDOW_H
#define TUTTI_WINDOW_H

/* One-sided communication: one rank reads and writes the memory of another, which makes no call for
 * it. Part of tutti.h, which is what to include and which says what holds for all calls: streams,
 * errors.
 *
 * Between ranks of one host a window on memory of tutti_mem_alloc() (between threads of one process
 * also on registered memory) is read and written in place. All else goes over TCP: then the window
 * has a thread on each rank that serves the others, and sleeps while there is nothing to do. In
 * either case the rank whose memory it is need not call anything, and bytes arrive within bounded
 * time. A window, and memory that is put or got, may be a device's: ranks with devices in one
 * process copy it in place, all others go over TCP.
 *
 * Order and memory: what one rank puts and signals to one other arrives in that order. A rank that
 * has returned from tutti_wait_signal() sees all that the signalling rank had put before that
 * signal. To be sure that a put is seen, the rank needs a signal, or a flush and then any other
 * message between the two ranks. If several ranks put to the same bytes, it is undefined what is
 * seen.
 *
 * Threads: any, and several at once, but for create, and for destroy, after which no thread may
 * begin a call. Nothing here is part of a group: inside one, create and destroy are refused, and
 * the other calls are done at once.
 *
 * Errors, of all but destroy: TUTTI_EINVAL: no such rank, or bytes that are not in its window;
 * nothing was done. TUTTI_EPEER and all else that ends the communicator. If the communicator has a
 * timeout, a call that waits for longer is TUTTI_ETIMEOUT. The communicator is lost then, as after
 * a failed call. */

#include "tutti/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Memory of all ranks of a communicator that each of them may read and write. Opaque; the caller's,
 * until tutti_window_destroy(). */
typedef struct tutti_window *tutti_window_t;

/* The most that tutti_window_config.signals may be. */
#define TUTTI_SIGNALS_MOST 1024

/* How a window is made. Fill it with TUTTI_WINDOW_CONFIG_INIT, then change what you need. */
typedef struct tutti_window_config {
	size_t size; /* sizeof(tutti_window_config) */
	/* How many signals each pair of ranks has. Each is counted and waited for by itself. 1
	 * (default) to TUTTI_SIGNALS_MOST, the same on all ranks. Each takes 72 bytes for each
	 * rank. */
	int signals;
} tutti_window_config;

/* clang-format off */
#define TUTTI_WINDOW_CONFIG_INIT { sizeof(tutti_window_config), 1 }
/* clang-format on */

/* Make a window: let the other ranks of `comm` read and write `size` bytes at `base`. Collective;
 * sizes may differ, 0 and NULL are fine. The memory stays the caller's, and must stay until
 * destroy. TUTTI_EUNSUPPORTED, on all ranks: the memory of some rank cannot be reached in place,
 * and TCP is not among the transports (TUTTI_TRANSPORT). TUTTI_EUSAGE: inside a group. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_window_create(tutti_comm_t comm, void *base, size_t size,
							 tutti_window_t *out);

/* tutti_window_create() of `size` bytes at `base`, with `config`, which may be NULL. TUTTI_EINVAL:
 * the number of signals is out of range, or config.size is wrong. TUTTI_EMISMATCH: the configs of
 * the ranks differ. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_window_create_config(tutti_comm_t comm, void *base,
								size_t size,
								const tutti_window_config *config,
								tutti_window_t *out);

/* Destroy a window, once the calls on it that this rank has queued on streams are done: if one of
 * them waits for an event or a signal, destroy waits for it, too. Collective: when it returns,
 * everything that the ranks have put has arrived. Destroy a window before its communicator. After
 * the communicator was destroyed, or has failed, it frees what is left and waits for no other rank.
 * NULL is fine. Else the window is gone whatever the status says, except with TUTTI_EUSAGE: inside
 * a group, while another thread is in a call on the communicator or destroys it, after
 * tutti_comm_finalize(), or in a function of tutti_stream_call() that would wait for calls behind
 * itself. tutti_stream_synchronize() says which queued calls failed. */
TUTTI_API tutti_status tutti_window_destroy(tutti_window_t window);

/* Write `size` bytes from `src` to the window of `peer`, `offset` bytes from its beginning. The own
 * rank is fine. When the call is done, `src` may be changed. Only a flush, or a signal to that
 * rank, says that the bytes have arrived. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_put(tutti_window_t window, int peer, size_t offset,
					       const void *src, size_t size, tutti_stream_t stream);

/* Read `size` bytes from the window of `peer`, `offset` bytes from its beginning, into `dst`. They
 * are there when the call is done. It sees what this rank put there before. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_get(tutti_window_t window, int peer, size_t offset,
					       void *dst, size_t size, tutti_stream_t stream);

/* Send one signal to `peer`, which sees it after all that this rank has put to it before. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_signal(tutti_window_t window, int peer,
						  tutti_stream_t stream);

/* Send signal `index` to `peer`; tutti_signal() sends signal 0. TUTTI_EINVAL: the window has no
 * such signal. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_signal_index(tutti_window_t window, int peer, int index,
							tutti_stream_t stream);

/* Wait until `peer` has sent `count` more signals 0 to this rank than were waited for, at most
 * INT64_MAX. One thread or stream at a time may wait for each peer and signal. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_wait_signal(tutti_window_t window, int peer,
						       uint64_t count, tutti_stream_t stream);

/* What tutti_wait_signals() waits for: `count` signals `index` of `peer`. */
typedef struct tutti_signal_wait {
	int peer, index;
	uint64_t count;
} tutti_signal_wait;

/* tutti_wait_signal() for all of waits[0 .. nwaits - 1], which are read before it returns. If it
 * fails, some may have been waited for. TUTTI_EINVAL: nothing was waited for. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_wait_signals(tutti_window_t window,
							const tutti_signal_wait *waits, int nwaits,
							tutti_stream_t stream);

/* Wait until all that this rank has put and signalled to `peer` (-1: to all ranks) has arrived. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_window_flush(tutti_window_t window, int peer,
							tutti_stream_t stream);

#ifdef __cplusplus
}
#endif

#endif
