/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_BOOT_BOOT_H
#define TTI_BOOT_BOOT_H

/* The bootstrap: ranks that share nothing but a unique id find each other and exchange small blobs,
 * before there is any transport.
 *
 * Every connection proves that it holds the secret of the id (auth.h) before anything that it says
 * is parsed. Every call has the deadline that was given at connect; its error names the missing ranks.
 *
 * Three kinds share one handle: sockets (ranks in processes), local (ranks that are threads of one
 * process: memory only), and sub (the ranks of a subcommunicator, over the connections of another
 * bootstrap).
 *
 * Owner: tti_boot_close(). Threads: one at a time; any may set *stop. */

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
	/* Nonzero: give up, with TUTTI_EABORTED or, a sub, with this status. NULL: never. Outlives
	 * the handle. */
	const _Atomic int *stop;
	/* Sockets: called once if init fails, with what the other ranks will be told, which it may
	 * replace. NULL: not wanted; `self` outlives the handle. */
	void (*on_broken)(void *self, struct tti_failure *failure);
	/* Sub: called every TTI_BOOT_NAP_MS while an exchange waits for rank `peer`. TUTTI_AGAIN: go
	 * on waiting. An error ends the exchange on all ranks, with its text. is_late: the deadline has
	 * passed. NULL: not wanted. */
	tutti_status (*on_wait)(void *self, int peer, bool is_late);
	void *self;
};

/* More ranks than this are a mistake: each rank holds some 300 bytes about every other. */
#define TTI_BOOT_RANKS_MOST (1 << 20)

/* Make an id: the addresses and port of a listening socket, and a fresh secret. A detached root thread
 * serves it and ends by itself, when all ranks have come or the deadline has passed. With
 * TUTTI_COMM_ID the id names that address instead, and rank 0's tti_boot_connect() serves it. */
TUTTI_CHECKED tutti_status tti_boot_id_create(tutti_unique_id *out);

/* Make an id of an address ("host:port", "[::1]:port") and a secret. NULL: the secret is derived from
 * the address, and one warning says so. Nothing is started: rank 0's tti_boot_connect() serves the id.
 * The key depends on both texts, so all ranks pass the same ones. TUTTI_EINVAL: the secret is too
 * short, or the text is no address; TUTTI_ETIMEOUT: its name did not resolve within timeout_ms. */
TUTTI_CHECKED tutti_status tti_boot_id_from_address(const char *address, const char *secret,
						    int64_t timeout_ms, tutti_unique_id *out);

/* Check in at the root, learn the next rank of the ring, connect the ring. */
TUTTI_CHECKED tutti_status tti_boot_connect(const struct tti_boot_config *config,
					    struct tti_boot **out);

/* This rank will not come: tell the ranks that wait at the root of the id, or come there later. `failure`
 * is what they are told, NULL: this rank's name with the reason in tti_error_text(), which stays. The rank
 * need not be one of nranks. Takes half a second at most, and one more if this rank serves the id; a root
 * that is not reached by then is not told. */
void tti_boot_decline(const struct tti_boot_config *config, const struct tti_failure *failure);

/* The local kind: out[0 .. nranks-1], one for each thread that is a rank. */
TUTTI_CHECKED tutti_status tti_boot_local_create(int nranks, const _Atomic int *stop,
						 struct tti_boot **out);

/* The sub kind: its ranks are `n` ranks of `parent`, which is of any kind and watches. ranks[i] there is
 * rank i here, NULL: the same numbers; the own rank is among them. The connections are those of the
 * carrier, which is the parent or, if that is a sub, the parent's carrier; it outlives this one. Each
 * subcommunicator of a carrier has a context of its own, the same on all its ranks. The config gives
 * timeout_ms, stop and on_wait. Does not wait for the others. */
TUTTI_CHECKED tutti_status tti_boot_sub_create(struct tti_boot *parent, uint64_t context,
					       const int *ranks, int n,
					       const struct tti_boot_config *config,
					       struct tti_boot **out);

/* Instead of that: this rank cannot come, for the reason in tti_error_text(), which stays. The other
 * ranks get TUTTI_EPEER, also those that come later. `rank` is its number in the sub. */
void tti_boot_sub_decline(struct tti_boot *parent, uint64_t context, const int *ranks, int n,
			  int rank);

/* "rank 3 (host, process 17)", as far as that is known, for error texts; returns buf. */
#define TTI_BOOT_NAME 96
const char *tti_boot_name(const struct tti_boot *boot, int rank, char buf[TTI_BOOT_NAME]);

int tti_boot_rank(const struct tti_boot *boot);
int tti_boot_nranks(const struct tti_boot *boot);
int tti_boot_is_local(const struct tti_boot *boot);

/* The secret that all ranks share, TTI_SECRET_BYTES, for the handshakes of transports. Borrowed. The
 * local kind has a random one. */
const uint8_t *tti_boot_secret(const struct tti_boot *boot);

/* blobs[nranks][nbytes]: the caller fills in its own at [rank], all are there on return. */
TUTTI_CHECKED tutti_status tti_boot_all_gather(struct tti_boot *boot, void *blobs, size_t nbytes);

/* All ranks have the root's data[nbytes] on return. All pass the same root and nbytes. Any size: it
 * travels in pieces. */
TUTTI_CHECKED tutti_status tti_boot_broadcast(struct tti_boot *boot, int root, void *data,
					      size_t nbytes);

/* This rank fails alone while a communicator is made, for the reason in tti_error_text(), which stays. The
 * others get TUTTI_EPEER with its name and the reason, in the exchange that they are in or the next
 * one. An exchange that this rank has ended ends on all. NULL is fine. */
void tti_boot_give_up(struct tti_boot *boot);

/* NULL is fine, and so is a half-built one. Stops the watch (watch.h) if it runs. */
void tti_boot_close(struct tti_boot *boot);

#endif
