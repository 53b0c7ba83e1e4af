/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_CORE_MESSAGE_MESSAGE_WAIT_H
#define TTI_CORE_MESSAGE_MESSAGE_WAIT_H

/* How calls on a channel wait. Not under its lock.
 *
 * Threads: each wait belongs to one. */

#include "core/message/message.h"

/* How a wait goes on. Zeroed but for timeout_ms, which is -1 for none. */
struct tti_message_wait {
	int64_t timeout_ms, since_ns;
	int peer;        /* that was looked for last */
	int64_t gone_ns; /* since when it is known that this one is gone; 0: it is not */
	uint32_t rounds;
	bool looks;
};

/* Look whether something comes, then spin, yield or sleep. TUTTI_OK: the caller sees whether its
 * wait is over, which it is where *word is no longer `seen`. TUTTI_AGAIN: its time is over, or
 * this thread is interrupted. `what`: what is waited for. */
TUTTI_CHECKED tutti_status tti_message_backoff(struct tutti_channel *channel,
					       struct tti_message_wait *wait,
					       _Atomic uint32_t *word, uint32_t seen,
					       const char *what);
/* Whether the watch says that a rank has closed the channel's communicator, which it may do
 * without a word on the links, and all that the rank has sent was taken from them. The caller
 * looks once more at what it waits for. False in a wait with a limit of its own. The channel's
 * communicator is in no call, so the channel asks the watch in its name, one question at a time. */
bool tti_message_is_gone(struct tutti_channel *channel, struct tti_message_wait *wait, int peer);
/* Then the channel is lost. `doing`: what this rank does with the other one. leaver(): `what`
 * that one has done. */
tutti_status tti_message_lose_to_leaver(struct tutti_channel *channel, int peer, const char *what,
					const char *doing);
TUTTI_CHECKED tutti_status tti_message_lose_to_gone(struct tutti_channel *channel, int peer,
						    const char *doing);
/* After the last tti_message_backoff(). */
void tti_message_wait_end(struct tutti_channel *channel, struct tti_message_wait *wait);
/* What this thread has left to be sent goes on without it. */
void tti_message_hand_over(struct tutti_channel *channel);

#endif
