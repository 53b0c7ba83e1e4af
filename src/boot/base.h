/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_BOOT_BASE_H
#define TTI_BOOT_BASE_H

/* The first member of every kind of bootstrap. Private to boot/. */

#include <stdbool.h>

#include "boot/boot.h"
#include "boot/family/dispatcher.h"
#include "boot/watch/watch.h"

struct tti_boot_ops {
	tutti_status (*all_gather)(struct tti_boot *boot, void *blobs, size_t nbytes);
	tutti_status (*broadcast)(struct tti_boot *boot, int root, void *data, size_t nbytes);
	/* Before the watch: the others' exchanges end with that failure of this rank. */
	void (*give_up)(struct tti_boot *boot, const struct tti_failure *failure);
	void (*close)(struct tti_boot *boot);
	tutti_status (*watch_start)(struct tti_boot *boot, const struct tti_watch_events *events);
	void (*watch_notify)(struct tti_boot *boot, const struct tti_failure *failure);
	void (*watch_ask)(struct tti_boot *boot, int peer);
	void (*watch_tick)(struct tti_boot *boot); /* NULL: it has no watcher */
	void (*watch_stop)(struct tti_boot *boot);
	/* tti_boot_name() of `rank`, which is called `number` in the text. NULL: "rank 3" alone. */
	const char *(*name)(const struct tti_boot *boot, int rank, int number, char *buf);
	/* Carriers, once they watch: the peer's dispatcher gets nbytes from the head on. Does not
	 * wait; the own dispatcher hears of a peer that cannot be reached. */
	tutti_status (*mail)(struct tti_boot *boot, int peer, const struct tti_mail *mail,
			     size_t nbytes);
};

struct tti_boot {
	const struct tti_boot_ops *ops;
	int rank, nranks;
	bool local;
	bool watching; /* tti_watch_start() was called */
	uint8_t secret[TTI_SECRET_BYTES];
	struct tti_dispatcher dispatcher; /* carriers; others: zero */
};

/* Whether *stop is set; NULL: never. */
static inline bool tti_boot_stopped(const _Atomic int *stop)
{
	return stop && *stop;
}

/* A wait looks at *stop this often. */
#define TTI_BOOT_NAP_MS 40

#endif
