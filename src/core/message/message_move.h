/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_CORE_MESSAGE_MESSAGE_MOVE_H
#define TTI_CORE_MESSAGE_MESSAGE_MOVE_H

/* Moving the bytes of a channel. Threads: under its lock. */

#include "core/message/message.h"

/* Some of what can be done without waiting, so that others get the lock; whether that was
 * anything. */
bool tti_message_pump(struct tutti_channel *channel);
/* Whether something waits for room, or the last pump left something. */
bool tti_message_is_busy(const struct tutti_channel *channel);

/* Begin. A receive whose message is too long: TUTTI_EINVAL, and nothing was done. */
void tti_message_begin_send(struct tutti_channel *channel, struct tti_request *request);
TUTTI_CHECKED tutti_status tti_message_begin_receive(struct tutti_channel *channel,
						     struct tti_request *request);
/* False: too late. */
bool tti_message_take_back(struct tutti_channel *channel, struct tti_request *request);
void tti_message_drop_kept(struct tutti_channel *channel);

#endif
