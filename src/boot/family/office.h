/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_BOOT_OFFICE_H
#define TTI_BOOT_OFFICE_H

/* Mail between ranks over the connections of a bootstrap whose init is over: what the
 * communicators that are made of others talk over (sub.c), so that they need neither
 * connections nor threads of their own. The bootstrap that owns the connections is the
 * carrier; ranks are meant by their numbers there.
 *
 *     rank a                                              rank b
 *     sub ─▶ carrier->ops->mail ─▶ connection ─▶ office ─▶ box of that context ─▶ sub
 *
 * Every communicator has a number of its own, the context, which its ranks compute
 * alike. Mail for a context that is not here yet waits until it is.
 *
 * Owner: a carrier has one office in itself; a box belongs to who opened it. Threads:
 * any; boxes are called without a lock held, by whoever brings the mail, and must not
 * block. */

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "boot/watch/watch.h"

#define TTI_MAIL_DATA 664

enum tti_mail_kind {
	TTI_MAIL_BLOCK = 1, /* of an exchange                                   */
	TTI_MAIL_NEWS,      /* tti_news, in ranks of the context                */
	TTI_MAIL_ASK,       /* what are you doing                               */
	TTI_MAIL_ANSWER,    /* tti_call                                         */
	TTI_MAIL_CLOSED,    /* there was such a context here, and it is closed  */
	TTI_MAIL_JOIN,      /* of a council (council.h): bits of ranks          */
	TTI_MAIL_QUERY,     /* ... nothing                                      */
	TTI_MAIL_VERDICT,   /* ... bits of ranks                                */
	TTI_MAIL_WHERE,     /* of calls of some ranks (callers.h): are you in it */
	TTI_MAIL_THERE,     /* ... tti_caller_answer                            */
	TTI_MAIL_CLASH,     /* ... neither can end                              */
	TTI_MAIL_KINDS,
};

/* On the wire. */
struct tti_mail {
	uint64_t context;
	uint32_t kind, seq;
	uint8_t data[TTI_MAIL_DATA];
};

#define TTI_MAIL_HEAD offsetof(struct tti_mail, data)

_Static_assert(sizeof(struct tti_news) <= TTI_MAIL_DATA, "news fit into a mail");
_Static_assert(sizeof(struct tti_call) <= TTI_MAIL_DATA, "answers fit into a mail");

/* Why a rank of the carrier is there no more. */
enum tti_down {
	TTI_DOWN_LEFT, /* it said goodbye                          */
	TTI_DOWN_DIED, /* it closed what it used without a goodbye */
	TTI_DOWN_LOST, /* it cannot be reached                     */
};

struct tti_box {
	struct tti_box *next;
	uint64_t context;
	int calling; /* calls of it under way */
	bool is_due; /* it is still to be told who is gone */
	/* nbytes of data. */
	void (*take)(struct tti_box *box, int from, const struct tti_mail *mail, size_t nbytes);
	/* `why` says in words what happened to the rank. */
	void (*down)(struct tti_box *box, int peer, enum tti_down how, const char *why);
	/* Mail from that rank came before the box was opened, and there was no memory to keep it. NULL: it
	 * is sent again anyway. */
	void (*missed)(struct tti_box *box, int from);
};

/* So many mails that could not be kept are remembered. */
#define TTI_OFFICE_MISSED 16

struct tti_stray;

struct tti_office {
	pthread_mutex_t lock;
	pthread_mutex_t down_lock; /* one rank goes down at a time */
	pthread_cond_t settled;
	int nranks;
	struct tti_box *boxes;
	struct tti_stray *strays, **strays_end;
	struct {
		uint64_t context;
		int from; /* -1: its box was told */
	} missed[TTI_OFFICE_MISSED];
	size_t nmissed;
	uint64_t *down; /* ranks that are gone for good */
	int fallen;     /* the first of them that died, -1: none did */
	uint64_t *closed;
	size_t nclosed, closed_room;
};

TUTTI_CHECKED tutti_status tti_office_init(struct tti_office *office, int nranks);
/* All boxes are closed. Zeroed is fine. */
void tti_office_release(struct tti_office *office);

/* From now on, and for what came before. */
void tti_office_open(struct tti_office *office, struct tti_box *box);
/* Wait until no call of the box is under way; not from within one. */
void tti_office_settle(struct tti_office *office, struct tti_box *box);
/* No call of it afterwards; who asks is told that it is closed. */
void tti_office_close(struct tti_office *office, struct tti_box *box);
/* Whether such a box is open here, or was, as far as that is remembered. */
bool tti_office_knows(struct tti_office *office, uint64_t context);
bool tti_office_is_down(struct tti_office *office, int peer);
/* The first rank that died, as far as was heard here; -1: none. */
int tti_office_fallen(struct tti_office *office);

/* For carriers: mail came, of nbytes from its head on. */
void tti_office_take(struct tti_boot *carrier, int from, const struct tti_mail *mail,
		     size_t nbytes);
/* A rank is gone, as a carrier finds, or as mail to the box `teller` says, which is not told;
 * NULL: no mail. `for_good`: it will not be back. */
void tti_office_down(struct tti_office *office, int peer, enum tti_down how, bool for_good,
		     const char *why, const struct tti_box *teller);

#endif
