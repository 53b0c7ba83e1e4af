/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_BOOT_SUB_H
#define TTI_BOOT_SUB_H

/* The bootstrap of a subcommunicator: some ranks of another bootstrap, the carrier, whose watch runs,
 * under new numbers. It has no connections: its ranks exchange and watch by mail (dispatcher.h).
 *
 *     all_gather   half the ring of its ranks in each direction, as ring.c does
 *     failures     along the same ring, in both directions, around ranks that left; if the ranks are
 *                  threads of one process, to all at once
 *     death        the carrier says so, and a rank with a connection to the dead one sees it end
 *
 * sub.c has the exchange, sub_watch.c below it the watch and what both need. Private to boot/ but for
 * what boot.h declares. */

#include <pthread.h>

#include "boot/base.h"

/* A part of what a rank has sent in an exchange. */
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
	uint32_t *sent, *received; /* [nranks]: parts exchanged with each */

	/* The watch. */
	bool lost, told;
	struct tti_failure failure;
	struct tti_watch_events events;
	bool has_events;
	uint64_t *left;  /* members that closed it, or whose process is gone */
	int notified[2]; /* the rank that was notified from here, up and down the ring; -1: none */
};

struct tti_sub *tti_sub_of(struct tti_mailbox *mailbox);

/* The carrier of a bootstrap of any kind, and the number there of one of its ranks. */
struct tti_boot *tti_boot_carrier(struct tti_boot *boot);
int tti_boot_carrier_rank(struct tti_boot *boot, int rank);
/* The other way round; -1: that rank of the carrier is none of this bootstrap. */
int tti_boot_find_rank(struct tti_boot *boot, int carrier_rank);

/* The rank of the sub that has this number in the carrier; -1: none. */
int tti_sub_find(const struct tti_sub *sub, int carrier_rank);

/* "rank 3 (host, process 17)". */
const char *tti_sub_name(const struct tti_sub *sub, int rank, char buf[TTI_BOOT_NAME]);
const char *tti_sub_name_as(const struct tti_boot *boot, int rank, int number, char *buf);

/* nbytes <= TTI_MAIL_DATA. */
TUTTI_CHECKED tutti_status tti_sub_mail(struct tti_sub *sub, int peer, enum tti_mail_kind kind,
					uint32_t seq, const void *data, size_t nbytes);

/* A failure, which `from` notified this rank of (-1: found here). The first one counts. */
void tti_sub_learn(struct tti_sub *sub, const struct tti_failure *failure, int from);

/* Mail that is no part of an exchange came; a rank of the carrier is gone. */
void tti_sub_receive(struct tti_sub *sub, int from, const struct tti_mail *mail, size_t nbytes);
void tti_sub_down(struct tti_mailbox *mailbox, int peer, enum tti_down how, const char *why);

tutti_status tti_sub_watch_start(struct tti_boot *boot, const struct tti_watch_events *events);
void tti_sub_watch_notify(struct tti_boot *boot, const struct tti_failure *failure);
void tti_sub_watch_ask(struct tti_boot *boot, int peer);
void tti_sub_watch_stop(struct tti_boot *boot);

/* Free what exchanges need. The lock is held. */
void tti_sub_end_exchange(struct tti_sub *sub);

#endif
