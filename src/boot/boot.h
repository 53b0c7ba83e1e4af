/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_BOOT_BOOT_H
#define TTI_BOOT_BOOT_H

/* The bootstrap: how ranks that share nothing but a unique id find each other
 * and exchange small blobs, before there is any transport.
 *
 * Every connection proves that it holds the id's secret (auth.h) before
 * anything it says is parsed. Every call has the deadline given at connect; its
 * error names the missing ranks.
 *
 * Three kinds behind one handle: sockets (ranks in processes), local (ranks that are
 * threads of one process, memory only), and sub (ranks of another bootstrap, over its
 * connections).
 *
 * Owner: tti_boot_close(). Threads: one at a time; *stop may be set by any. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tutti/tutti.h"

#define TTI_SECRET_BYTES 32

struct tti_boot;
struct tti_failure;

struct tti_boot_config {
	int rank, nranks;
	const tutti_unique_id *ids; /* borrowed during connect */
	int nids;                   /* >= 1: one root each     */
	int64_t timeout_ms;
	const _Atomic int *stop; /* nonzero: give up with TUTTI_EABORTED, of a sub with
				    the status that it is; NULL: never; outlives the
				    handle                                    */
	/* Of the kind that connects: called once if init breaks, with what the others are about
	 * to be told, which it may replace. NULL: nobody; `self` outlives the handle. */
	void (*on_broken)(void *self, struct tti_failure *failure);
	/* Of the sub kind: called every TTI_BOOT_NAP_MS while this rank waits for rank `peer` in an
	 * exchange. TUTTI_AGAIN: it goes on waiting; an error: it ends with that and its text, on all
	 * ranks. is_late: the time is over. NULL: nobody. */
	tutti_status (*on_wait)(void *self, int peer, bool is_late);
	void *self;
};

/* More ranks are a mistake, not a job: each holds a card of every other, some 300 bytes. */
#define TTI_BOOT_RANKS_MOST (1 << 20)

/* Make an id: addresses and port of a listening socket, a fresh secret; starts
 * the detached root thread that serves it and ends by itself (all ranks came, or
 * the deadline passed). With TUTTI_COMM_ID the id names that address instead, and
 * the root is started by rank 0's tti_boot_connect(). */
TUTTI_CHECKED tutti_status tti_boot_id_create(tutti_unique_id *out);

/* The same for an address given by hand ("host:port", "[::1]:port") and a secret
 * (NULL: derived from the address, which is said once as a warning): nothing is
 * started; rank 0's tti_boot_connect() serves it. The key depends on the text of both, so
 * all ranks pass the same ones. TUTTI_EINVAL: the secret is too short, or the address is none;
 * TUTTI_ETIMEOUT: its name has not resolved within timeout_ms. */
TUTTI_CHECKED tutti_status tti_boot_id_from_address(const char *address, const char *secret,
						    int64_t timeout_ms, tutti_unique_id *out);

/* Check in at the root, learn the ring neighbour, connect the ring. */
TUTTI_CHECKED tutti_status tti_boot_connect(const struct tti_boot_config *config,
					    struct tti_boot **out);

/* This rank will not come, for the reason that the news give: tell the ranks that wait where the id
 * leads, or come there later. Takes half a second at most, and then they wait in vain. */
void tti_boot_decline(const struct tti_boot_config *config, const struct tti_failure *failure);

/* The local kind: out[0 .. nranks-1], one per thread-rank. */
TUTTI_CHECKED tutti_status tti_boot_local_create(int nranks, const _Atomic int *stop,
						 struct tti_boot **out);

/* The sub kind: `n` ranks of `parent` (of any kind), ranks[i] there is rank i here, NULL: the
 * same ones; the own rank is among them. `parent` watches; it, or the carrier that it is
 * a sub of, outlives this one. The context is another one for each communicator of a
 * carrier, and the same on all its ranks. Of the config timeout_ms, stop and on_wait are looked at.
 * Does not wait for the others. */
TUTTI_CHECKED tutti_status tti_boot_sub_create(struct tti_boot *parent, uint64_t context,
					       const int *ranks, int n,
					       const struct tti_boot_config *config,
					       struct tti_boot **out);

/* In place of that: this rank cannot come, for the reason that tti_error_text() gives, which stays. Tells
 * the others, those that come later too: they get TUTTI_EPEER. `rank` is its number there. */
void tti_boot_sub_decline(struct tti_boot *parent, uint64_t context, const int *ranks, int n,
			  int rank);

/* The sub kind: this rank has all it wanted of it without a watch, and closes it. Closed
 * before, it tells the others that they wait in vain. */
void tti_boot_sub_finish(struct tti_boot *boot);

/* "rank 3 (host, process 17)", as far as it is known, for texts of errors; returns buf. */
#define TTI_BOOT_NAME 96
const char *tti_boot_name(const struct tti_boot *boot, int rank, char buf[TTI_BOOT_NAME]);

int tti_boot_rank(const struct tti_boot *boot);
int tti_boot_nranks(const struct tti_boot *boot);
int tti_boot_is_local(const struct tti_boot *boot);

/* The secret all ranks share, TTI_SECRET_BYTES; for the transports' own
 * handshakes. Borrowed. The local kind has a random one too. */
const uint8_t *tti_boot_secret(const struct tti_boot *boot);

/* blobs[nranks][nbytes]; own one filled in at [rank]; all filled on return. */
TUTTI_CHECKED tutti_status tti_boot_all_gather(struct tti_boot *boot, void *blobs, size_t nbytes);

/* data[nbytes] of root, at all ranks on return; root and nbytes are the same on all. Any
 * size: it travels in pieces, one behind the other. */
TUTTI_CHECKED tutti_status tti_boot_broadcast(struct tti_boot *boot, int root, void *data,
					      size_t nbytes);

/* NULL and half-built are fine. Stops the watch (watch.h) if it runs. */
void tti_boot_close(struct tti_boot *boot);

#endif
