/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_BOOT_SUB_H
#define TTI_BOOT_SUB_H

/* The kind of bootstrap that needs no connections of its own: some ranks of another one,
 * the carrier, whose watch runs, under new numbers. They exchange by mail (dispatcher.h), and
 * so does their watch:
 *
 *     all_gather   half the ring of their own numbers in each direction, as ring.c does
 *     news         along the same ring, in both directions, around who has left; over a
 *                  carrier within a process: to all at once
 *     death        the carrier's news say so; who has a connection to the dead rank sees it end
 *
 * sub.c: exchange; sub_watch.c: the watch. Private to boot/ but for tti_boot_sub_create()
 * in boot.h. */

#include <pthread.h>

#include "boot/base.h"

/* A part of what a rank sent in the exchange. */
struct tti_letter {
	struct tti_letter *next;
	int from; /* rank here */
	uint32_t seq;
	size_t nbytes;
	uint8_t data[];
};

struct tti_sub {
	struct tti_boot base;
	struct tti_mailbox mailbox;
	struct tti_boot *carrier;
	int *member; /* [nranks]: their ranks in the carrier */
	int64_t timeout_ms;
	const _Atomic int *stop;
	tutti_status (*on_wait)(void *self, int peer, bool is_late);
	void *self; /* of on_wait */

	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t came;
	/* The exchange: until the watch starts. */
	struct tti_letter *letters, **letters_end;
	uint32_t *sent, *received; /* [nranks] mails, of the exchange with each */
	bool finished;             /* it is over */

	/* The watch. */
	bool lost, told;
	struct tti_failure failure;
	struct tti_watch_events events;
	bool has_events;
	uint64_t *left;  /* members that closed it, or whose process is gone */
	int notified[2]; /* who got the news from here, that way round; -1: nobody */
};

struct tti_sub *tti_sub_of(struct tti_mailbox *mailbox);

/* Of any bootstrap: whose connections it uses, and a rank's number there. */
struct tti_boot *tti_boot_carrier(struct tti_boot *boot);
int tti_boot_carrier_rank(struct tti_boot *boot, int rank);

/* Which rank it is here; -1: none. */
int tti_sub_find(const struct tti_sub *sub, int carrier_rank);

/* "rank 3 (host, process 17)". */
const char *tti_sub_name(const struct tti_sub *sub, int rank, char buf[TTI_BOOT_NAME]);
const char *tti_sub_name_as(const struct tti_boot *boot, int rank, int number, char *buf);

/* nbytes <= TTI_MAIL_DATA. */
TUTTI_CHECKED tutti_status tti_sub_mail(struct tti_sub *sub, int peer, enum tti_mail_kind kind,
					uint32_t seq, const void *data, size_t nbytes);

/* These are the news, which `from` brought (-1: found here); the first count. */
void tti_sub_learn(struct tti_sub *sub, const struct tti_failure *failure, int from);

/* Mail that is not of the exchange; a member is gone. */
void tti_sub_hear(struct tti_sub *sub, int from, const struct tti_mail *mail, size_t nbytes);
void tti_sub_down(struct tti_mailbox *mailbox, int peer, enum tti_down how, const char *why);

tutti_status tti_sub_watch_start(struct tti_boot *boot, const struct tti_watch_events *events);
void tti_sub_watch_notify(struct tti_boot *boot, const struct tti_failure *failure);
void tti_sub_watch_ask(struct tti_boot *boot, int peer);
void tti_sub_watch_stop(struct tti_boot *boot);

/* Give back what the exchange needed; the lock is held. */
void tti_sub_end_exchange(struct tti_sub *sub);

#endif
