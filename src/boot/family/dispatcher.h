/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_BOOT_DISPATCHER_H
#define TTI_BOOT_DISPATCHER_H

/* The message dispatcher of a bootstrap whose init is over. Subcommunicators (sub.h) send their
 * control messages, mail, over the connections of this bootstrap, their carrier, and so need neither
 * connections nor threads of their own. Ranks have their numbers in the carrier here.
 *
 *     rank a                                              rank b
 *     sub ─▶ carrier->ops->mail ─▶ connection ─▶ dispatcher ─▶ mailbox of that context ─▶ sub
 *
 * Every subcommunicator has a number of its own, the context, which all its ranks compute. Mail for a
 * context that has no mailbox yet is kept until it has one.
 *
 * Owner: a carrier contains its dispatcher; a mailbox belongs to whoever opened it. Threads: any. The
 * thread that brings mail calls the mailbox, without a lock held; the callbacks must not block. */

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "boot/watch/watch.h"

#define TTI_MAIL_DATA 664

enum tti_mail_kind {
	TTI_MAIL_BLOCK = 1, /* a part of an exchange                              */
	TTI_MAIL_FAILURE,   /* tti_failure, in ranks of the context               */
	TTI_MAIL_ASK,       /* what are you doing?                                */
	TTI_MAIL_ANSWER,    /* tti_call                                           */
	TTI_MAIL_CLOSED,    /* the context was here, and is closed                */
	TTI_MAIL_JOIN,      /* agreement.h: bits of ranks                         */
	TTI_MAIL_QUERY,     /* ... nothing                                        */
	TTI_MAIL_DECISION,  /* ... bits of ranks                                  */
	TTI_MAIL_WHERE,     /* callers.h: are you in this call?                   */
	TTI_MAIL_THERE,     /* ... tti_caller_answer                              */
	TTI_MAIL_CLASH,     /* ... neither of two calls can end                   */
	TTI_MAIL_REQUEST,   /* requests.h: do this                                */
	TTI_MAIL_REPLY,     /* ... what came of it                                */
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

/* Why a rank of the carrier is gone. */
enum tti_down {
	TTI_DOWN_LEFT, /* it said goodbye                                     */
	TTI_DOWN_DIED, /* it closed a connection in use without a goodbye     */
	TTI_DOWN_LOST, /* it cannot be reached                                */
};

struct tti_mailbox {
	struct tti_mailbox *next;
	uint64_t context;
	int calling; /* callbacks under way                      */
	bool is_due; /* it still has to hear which rank is gone  */
	/* nbytes of data. NULL: mail is dropped. */
	void (*take)(struct tti_mailbox *mailbox, int from, const struct tti_mail *mail,
		     size_t nbytes);
	/* `why`: words that follow the name of the rank. NULL: not wanted. */
	void (*down)(struct tti_mailbox *mailbox, int peer, enum tti_down how, const char *why);
	/* Mail of that rank came before the mailbox was opened, and there was no memory to keep it.
	 * NULL: such mail is sent again anyway. */
	void (*missed)(struct tti_mailbox *mailbox, int from);
};

/* How much mail that could not be kept is remembered. */
#define TTI_DISPATCHER_MISSED 16

struct tti_unexpected_mail;

struct tti_dispatcher {
	pthread_mutex_t lock;
	pthread_mutex_t down_lock; /* one rank goes down at a time */
	pthread_cond_t settled;
	int nranks;
	struct tti_mailbox *mailboxes;
	struct tti_unexpected_mail *unexpected, **unexpected_end;
	struct {
		uint64_t context;
		int from; /* -1: the mailbox has been told */
	} missed[TTI_DISPATCHER_MISSED];
	size_t nmissed;
	uint64_t *down; /* ranks that are gone for good             */
	int first_dead; /* the first of them that died, -1: none did */
	uint64_t *closed;
	size_t nclosed, closed_room;
};

TUTTI_CHECKED tutti_status tti_dispatcher_init(struct tti_dispatcher *dispatcher, int nranks);
/* After all mailboxes are closed. A zeroed one is fine. */
void tti_dispatcher_release(struct tti_dispatcher *dispatcher);

/* The mailbox gets what comes from now on, and what was kept. */
void tti_dispatcher_open(struct tti_dispatcher *dispatcher, struct tti_mailbox *mailbox);
/* Wait until none of its callbacks is under way; not from within one. */
void tti_dispatcher_settle(struct tti_dispatcher *dispatcher, struct tti_mailbox *mailbox);
/* No callback runs afterwards. A rank that asks hears that the context is closed. */
void tti_dispatcher_close(struct tti_dispatcher *dispatcher, struct tti_mailbox *mailbox);
/* Whether this context is open here, or was, as far as that is remembered. */
bool tti_dispatcher_knows(struct tti_dispatcher *dispatcher, uint64_t context);
bool tti_dispatcher_is_down(struct tti_dispatcher *dispatcher, int peer);
/* The first rank that died, as far as this rank knows; -1: none. */
int tti_dispatcher_first_dead(struct tti_dispatcher *dispatcher);

/* Send mail to a rank of the carrier. The caller has filled in context, kind and seq. Does not wait.
 * nbytes <= TTI_MAIL_DATA. */
TUTTI_CHECKED tutti_status tti_dispatcher_send(struct tti_boot *carrier, int to,
					       struct tti_mail *mail, const void *data,
					       size_t nbytes);

/* For carriers: mail came, of nbytes from its head on. */
void tti_dispatcher_take(struct tti_boot *carrier, int from, const struct tti_mail *mail,
			 size_t nbytes);
/* A rank is gone. The carrier has found that (teller NULL), or mail to the mailbox `teller` says so,
 * which is not told again. for_good: the rank will not be back. */
void tti_dispatcher_down(struct tti_dispatcher *dispatcher, int peer, enum tti_down how,
			 bool for_good, const char *why, const struct tti_mailbox *teller);

#endif
