/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_BOOT_DISPATCHER_H
#define TTI_BOOT_DISPATCHER_H

/* Mail between ranks over the connections of a bootstrap whose init is over: what the
 * communicators that are made of others talk over (sub.c), so that they need neither
 * connections nor threads of their own. The bootstrap that owns the connections is the
 * carrier; ranks are meant by their numbers there.
 *
 *     rank a                                              rank b
 *     sub ─▶ carrier->ops->mail ─▶ connection ─▶ dispatcher ─▶ mailbox of that context ─▶ sub
 *
 * Every communicator has a number of its own, the context, which its ranks compute
 * alike. Mail for a context that is not here yet waits until it is.
 *
 * Owner: a carrier has one dispatcher in itself; a mailbox belongs to who opened it. Threads:
 * any; mailboxes are called without a lock held, by whoever brings the mail, and must not
 * block. */

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "boot/watch/watch.h"

#define TTI_MAIL_DATA 664

enum tti_mail_kind {
	TTI_MAIL_BLOCK = 1, /* of an exchange                                   */
	TTI_MAIL_FAILURE,   /* tti_failure, in ranks of the context                */
	TTI_MAIL_ASK,       /* what are you doing                               */
	TTI_MAIL_ANSWER,    /* tti_call                                         */
	TTI_MAIL_CLOSED,    /* there was such a context here, and it is closed  */
	TTI_MAIL_JOIN,      /* of an agreement (agreement.h): bits of ranks          */
	TTI_MAIL_QUERY,     /* ... nothing                                      */
	TTI_MAIL_DECISION,  /* ... bits of ranks                                */
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

_Static_assert(sizeof(struct tti_failure) <= TTI_MAIL_DATA, "failures fit into a mail");
_Static_assert(sizeof(struct tti_call) <= TTI_MAIL_DATA, "answers fit into a mail");

/* Why a rank of the carrier is there no more. */
enum tti_down {
	TTI_DOWN_LEFT, /* it said goodbye                          */
	TTI_DOWN_DIED, /* it closed what it used without a goodbye */
	TTI_DOWN_LOST, /* it cannot be reached                     */
};

struct tti_mailbox {
	struct tti_mailbox *next;
	uint64_t context;
	int calling; /* calls of it under way */
	bool is_due; /* it is still to be told who is gone */
	/* nbytes of data. NULL: mail is dropped. */
	void (*take)(struct tti_mailbox *mailbox, int from, const struct tti_mail *mail,
		     size_t nbytes);
	/* `why` says in words what happened to the rank. NULL: nobody wants to know. */
	void (*down)(struct tti_mailbox *mailbox, int peer, enum tti_down how, const char *why);
	/* Mail from that rank came before the mailbox was opened, and there was no memory to keep it. NULL: it
	 * is sent again anyway. */
	void (*missed)(struct tti_mailbox *mailbox, int from);
};

/* So many mails that could not be kept are remembered. */
#define TTI_DISPATCHER_MISSED 16

struct tti_stray;

struct tti_dispatcher {
	pthread_mutex_t lock;
	pthread_mutex_t down_lock; /* one rank goes down at a time */
	pthread_cond_t settled;
	int nranks;
	struct tti_mailbox *mailboxes;
	struct tti_stray *strays, **strays_end;
	struct {
		uint64_t context;
		int from; /* -1: its mailbox was told */
	} missed[TTI_DISPATCHER_MISSED];
	size_t nmissed;
	uint64_t *down; /* ranks that are gone for good */
	int fallen;     /* the first of them that died, -1: none did */
	uint64_t *closed;
	size_t nclosed, closed_room;
};

TUTTI_CHECKED tutti_status tti_dispatcher_init(struct tti_dispatcher *dispatcher, int nranks);
/* All mailboxes are closed. Zeroed is fine. */
void tti_dispatcher_release(struct tti_dispatcher *dispatcher);

/* From now on, and for what came before. */
void tti_dispatcher_open(struct tti_dispatcher *dispatcher, struct tti_mailbox *mailbox);
/* Wait until no call of the mailbox is under way; not from within one. */
void tti_dispatcher_settle(struct tti_dispatcher *dispatcher, struct tti_mailbox *mailbox);
/* No call of it afterwards; who asks is told that it is closed. */
void tti_dispatcher_close(struct tti_dispatcher *dispatcher, struct tti_mailbox *mailbox);
/* Whether such a mailbox is open here, or was, as far as that is remembered. */
bool tti_dispatcher_knows(struct tti_dispatcher *dispatcher, uint64_t context);
bool tti_dispatcher_is_down(struct tti_dispatcher *dispatcher, int peer);
/* The first rank that died, as far as was heard here; -1: none. */
int tti_dispatcher_fallen(struct tti_dispatcher *dispatcher);

/* Send mail, of which context, kind and seq are filled in, to a rank of the carrier. Does not wait.
 * nbytes <= TTI_MAIL_DATA. */
TUTTI_CHECKED tutti_status tti_dispatcher_send(struct tti_boot *carrier, int to,
					       struct tti_mail *mail, const void *data,
					       size_t nbytes);

/* For carriers: mail came, of nbytes from its head on. */
void tti_dispatcher_take(struct tti_boot *carrier, int from, const struct tti_mail *mail,
			 size_t nbytes);
/* A rank is gone, as a carrier finds, or as mail to the mailbox `teller` says, which is not told;
 * NULL: no mail. `for_good`: it will not be back. */
void tti_dispatcher_down(struct tti_dispatcher *dispatcher, int peer, enum tti_down how,
			 bool for_good, const char *why, const struct tti_mailbox *teller);

#endif
