/* SPDX-License-Identifier: BSD-3-Clause */
/* Channels: requests and their queues. All of it under the channel's lock. */
#include "core/message/message_request.h"

#include "util/mem.h"
#include "util/thread.h"

void tti_request_push(struct tti_request_queue *queue, struct tti_request *request)
{
	if (!queue->end)
		queue->end = &queue->first;
	request->queue = queue;
	request->next = NULL;
	request->link = queue->end;
	*queue->end = request;
	queue->end = &request->next;
}

void tti_request_drop(struct tti_request *request)
{
	if (!request->queue)
		return;
	*request->link = request->next;
	if (request->next)
		request->next->link = request->link;
	else
		request->queue->end = request->link;
	request->queue = NULL;
}

struct tti_request *tti_request_pop(struct tti_request_queue *queue)
{
	struct tti_request *request = queue->first;

	tti_request_drop(request);
	return request;
}

struct tti_request *tti_request_create(struct tutti_channel *channel)
{
	struct tti_request *request = tti_zalloc(sizeof(*request));
	uint32_t place;

	if (!request)
		return NULL;
	if (channel->unused.n) {
		place = channel->unused.at[--channel->unused.n];
		channel->requests.at[place] = request;
	} else {
		place = (uint32_t)channel->requests.n;
		if (place >= TTI_REQUEST_PLACES || !tti_vec_push(&channel->requests, request)) {
			tti_free(request);
			return NULL;
		}
	}
	request->id = ++channel->nrequests << TTI_REQUEST_PLACE_BITS | place;
	return request;
}

struct tti_request *tti_request_find(const struct tutti_channel *channel, tutti_request_t id)
{
	const size_t place = (size_t)(id & (TTI_REQUEST_PLACES - 1));
	struct tti_request *request =
		place < channel->requests.n ? channel->requests.at[place] : NULL;

	return request && request->id == id ? request : NULL;
}

void tti_request_free(struct tutti_channel *channel, struct tti_request *request)
{
	const uint32_t place = (uint32_t)(request->id & (TTI_REQUEST_PLACES - 1));

	tti_match_remove(&channel->match.receives, &request->entry);
	tti_request_drop(request);
	channel->requests.at[place] = NULL;
	/* If there is no memory the place is lost. */
	(void)tti_vec_push(&channel->unused, place);
	tti_bounce_close(&request->memory);
	tti_free(request);
}

void tti_request_end(struct tti_request *request, tutti_status status)
{
	request->state = TTI_REQUEST_DONE;
	request->status = status;
	atomic_store(&request->over, 1);
	if (atomic_load(&request->sleeps))
		tti_futex_wake(&request->over, INT32_MAX);
}
