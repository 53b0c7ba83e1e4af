/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_BOOT_LOCAL_H
#define TTI_BOOT_LOCAL_H

/* The kind of bootstrap whose ranks are threads of one process. Private to
 * local.c (exchange) and local_watch.c.
 *
 * Owner: the ranks together; the last one to close frees it. Threads: any, under
 * the lock; callbacks run without it. */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "boot/base.h"

struct tti_boot_local_world;

struct tti_boot_local {
	struct tti_boot base;
	struct tti_boot_local_world *world;
	bool left; /* closed, or said goodbye */
	uint64_t ngathers;

	/* The watch. */
	bool watching, told;
	int calling; /* callbacks of this rank that are running */
	struct tti_watch_events events;
};

/* An all-gather or a broadcast under way: at most two are, of even and odd number. */
struct tti_boot_local_gather {
	uint8_t *blobs;
	size_t nbytes; /* of a blob        */
	int root;      /* whose the only blob is; -1: each rank has one */
	int arrived, copied;
	bool *has;
};

struct tti_boot_local_world {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	int nranks, nopen;
	int64_t timeout_ms;
	const _Atomic int *stop;
	struct tti_boot_local_gather gathers[2];
	bool lost;
	struct tti_failure failure;
	struct tti_failure broken; /* of the exchange; status 0: none */
	struct tti_boot_local **ranks;
};

tutti_status tti_boot_local_watch_start(struct tti_boot *boot,
					const struct tti_watch_events *events);
void tti_boot_local_watch_notify(struct tti_boot *boot, const struct tti_failure *failure);
void tti_boot_local_watch_ask(struct tti_boot *boot, int peer);
void tti_boot_local_watch_stop(struct tti_boot *boot);

/* Mail goes into the peer's dispatcher at once; the others hear that a rank has closed. */
tutti_status tti_boot_local_mail(struct tti_boot *boot, int peer, const struct tti_mail *mail,
				 size_t nbytes);
void tti_boot_local_go_down(struct tti_boot_local *local);

#endif
