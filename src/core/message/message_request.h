/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_CORE_MESSAGE_MESSAGE_REQUEST_H
#define TTI_CORE_MESSAGE_MESSAGE_REQUEST_H

/* Requests of a channel, and their queues.
 *
 * Owner: the channel. Threads: under its lock. */

#include "core/message/message.h"

/* A new request; NULL: out of memory. */
struct tti_request *tti_request_create(struct tutti_channel *channel);
struct tti_request *tti_request_find(const struct tutti_channel *channel, tutti_request_t id);
/* It is in no queue any more, and freed. */
void tti_request_free(struct tutti_channel *channel, struct tti_request *request);
void tti_request_end(struct tti_request *request, tutti_status status);

/* As the last one. From its queue, if it is in one. Both take constant time. */
void tti_request_push(struct tti_request_queue *queue, struct tti_request *request);
void tti_request_drop(struct tti_request *request);
/* The first one of a queue that is not empty. */
struct tti_request *tti_request_pop(struct tti_request_queue *queue);

#endif
