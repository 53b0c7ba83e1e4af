/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_BOOT_WATCHER_H
#define TTI_BOOT_WATCHER_H

/* The thread of a rank that lets peers in from the start, and is the watch after tti_watch_start().
 * Private to boot/. */

#include "boot/net/sock.h"

/* Takes listen_fd over, on failure too. */
TUTTI_CHECKED tutti_status tti_watcher_start(struct tti_sock *sock, int listen_fd);

/* The operations of the watch (base.h). */
TUTTI_CHECKED tutti_status tti_watcher_take_over(struct tti_boot *boot,
						 const struct tti_watch_events *events);
void tti_watcher_notify(struct tti_boot *boot, const struct tti_failure *failure);
void tti_watcher_ask(struct tti_boot *boot, int peer);
void tti_watcher_tick(struct tti_boot *boot);
/* End it, with goodbyes unless init failed. Fine if it has ended, or never began. */
void tti_watcher_stop(struct tti_boot *boot);
tutti_status tti_watcher_mail(struct tti_boot *boot, int peer, const struct tti_mail *mail,
			      size_t nbytes); /* mail.c */

/* For tests: end without goodbye, as if the process had been killed. */
void tti_watcher_vanish(struct tti_boot *boot);

#endif
