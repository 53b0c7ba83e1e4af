/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_CORE_MESSAGE_MESSAGE_SERVE_H
#define TTI_CORE_MESSAGE_MESSAGE_SERVE_H

/* The threads that look after a channel while no call does, its lock, and its end.
 *
 * Threads: any. */

#include "core/message/message.h"

/* As pthread_mutex_lock(), for all but the servers, which make way for it. */
void tti_channel_lock(struct tutti_channel *channel);

TUTTI_CHECKED tutti_status tti_channel_start_servers(struct tutti_channel *channel);
/* Fine if none was started. */
void tti_channel_stop_servers(struct tutti_channel *channel);

/* Not under the lock. TUTTI_OK, or what ended the channel, or its communicator. */
TUTTI_CHECKED tutti_status tti_channel_async_error(struct tutti_channel *channel);
/* Tell the communicator of the channel what broke, if anything did. */
void tti_channel_report(struct tutti_channel *channel);
/* The caller does not look any more, or not soon: let the channel's threads. */
void tti_channel_wake_servers(struct tutti_channel *channel);

#endif
