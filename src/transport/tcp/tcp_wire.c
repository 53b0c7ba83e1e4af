/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/tcp/tcp_wire.h"

#include <string.h>

#include "util/error.h"
#include "util/wire.h"

static tutti_status refuse(struct tti_tcp_fault *fault, const char *field, uint64_t value,
			   uint64_t most)
{
	*fault = (struct tti_tcp_fault){ field, value, most };
	return TUTTI_EPROTO;
}

void tti_tcp_frame_put(uint8_t bytes[TTI_TCP_HEADER], const struct tti_tcp_frame *frame)
{
	bytes[0] = TTI_TCP_MAGIC;
	bytes[1] = frame->type;
	tti_tcp_frame_set_retry(bytes, frame->retry);
	tti_wire_put32(bytes + 4, frame->length);
	tti_wire_put64(bytes + 8, frame->seq);
	tti_wire_put64(bytes + 16, frame->consumed);
	tti_wire_put64(bytes + 24, frame->tag);
}

void tti_tcp_frame_set_consumed(uint8_t bytes[TTI_TCP_HEADER], uint64_t consumed)
{
	tti_wire_put64(bytes + 16, consumed);
}

void tti_tcp_frame_set_retry(uint8_t bytes[TTI_TCP_HEADER], uint16_t retry)
{
	bytes[2] = (uint8_t)retry;
	bytes[3] = (uint8_t)(retry >> 8);
}

/* Magic, type and retry, by which the other side knows what it has before it. */
#define OPEN 4

void tti_tcp_frame_seal(uint8_t bytes[TTI_TCP_SEALED], struct tti_seal *seal)
{
	tti_seal_close(seal, bytes, OPEN, bytes + OPEN, TTI_TCP_HEADER - OPEN, bytes + OPEN,
		       bytes + TTI_TCP_HEADER);
}

tutti_status tti_tcp_frame_open(uint8_t bytes[TTI_TCP_SEALED], struct tti_seal *seal)
{
	return tti_seal_open(seal, bytes, OPEN, bytes + OPEN, TTI_TCP_HEADER - OPEN,
			     bytes + TTI_TCP_HEADER, bytes + OPEN);
}

tutti_status tti_tcp_frame_get(const uint8_t bytes[TTI_TCP_HEADER], struct tti_tcp_frame *out,
			       struct tti_tcp_fault *fault)
{
	if (bytes[0] != TTI_TCP_MAGIC)
		return refuse(fault, "magic", bytes[0], TTI_TCP_MAGIC);
	if (bytes[1] < TTI_TCP_DATA || bytes[1] > TTI_TCP_ALIVE)
		return refuse(fault, "type", bytes[1], TTI_TCP_ALIVE);
	out->type = bytes[1];
	out->retry = (uint16_t)(bytes[2] | bytes[3] << 8);
	out->length = tti_wire_get32(bytes + 4);
	out->seq = tti_wire_get64(bytes + 8);
	out->consumed = tti_wire_get64(bytes + 16);
	out->tag = tti_wire_get64(bytes + 24);
	if (out->type != TTI_TCP_DATA && out->length)
		return refuse(fault, "length", out->length, 0);
	if (out->type != TTI_TCP_DATA && out->retry)
		return refuse(fault, "retry", out->retry, 0);
	return TUTTI_OK;
}

int tti_tcp_reader_room(struct tti_tcp_reader *reader, struct iovec iov[2])
{
	int n = 0;

	/* Behind what is dropped a header may follow: the room ahead is for both. */
	if (reader->left)
		iov[n++] = (struct iovec){ reader->payload, reader->left };
	iov[n++] = (struct iovec){ reader->ahead + reader->have, TTI_TCP_AHEAD - reader->have };
	return n;
}

static void finish(struct tti_tcp_reader *reader)
{
	reader->slot->state = TTI_TCP_ARRIVED;
	reader->slot->filler = NULL;
	reader->slot = NULL;
	reader->payload = NULL;
}

/* The rest of a payload of nbytes is thrown away, and what seals it. */
static void skip(struct tti_tcp_reader *reader, size_t nbytes, size_t left)
{
	reader->skip = left;
	if (!reader->encrypted || !nbytes)
		return;
	reader->skip += TTI_SEAL_MAC;
	tti_seal_skip(reader->seal, nbytes);
}

void tti_tcp_reader_abandon(struct tti_tcp_reader *reader)
{
	if (!reader->slot)
		return;
	skip(reader, reader->slot->nbytes, reader->left);
	reader->slot->state = TTI_TCP_FREE;
	reader->slot->filler = NULL;
	reader->slot = NULL;
	reader->payload = NULL;
	reader->left = 0;
}

static tutti_status take_credit(struct tti_tcp_reader *reader, struct tti_tcp_inbox *inbox,
				const struct tti_tcp_frame *frame, struct tti_tcp_fault *fault)
{
	if (frame->consumed > inbox->committed)
		return refuse(fault, "consumed", frame->consumed, inbox->committed);
	/* A credit that tells nothing new would let a peer keep us busy for ever. */
	if (frame->consumed < reader->consumed + (frame->type == TTI_TCP_CREDIT))
		return refuse(fault, "consumed (told before)", frame->consumed, inbox->committed);
	reader->consumed = frame->consumed;
	/* With several connections an older count may come later. */
	if (frame->consumed > inbox->credit)
		inbox->credit = frame->consumed;
	if (frame->type != TTI_TCP_DATA && (frame->seq || frame->tag))
		return refuse(fault, "seq and tag of no message", frame->seq | frame->tag, 0);
	inbox->ended |= frame->type == TTI_TCP_END;
	return TUTTI_OK;
}

/* Whether a message that has begun to come before is taken from now on from the
 * frame at hand. One connection never carries the same twice. */
static tutti_status come_again(struct tti_tcp_slot *slot, struct tti_tcp_inbox *inbox,
			       const struct tti_tcp_frame *frame, struct tti_tcp_fault *fault)
{
	if (frame->retry == slot->retry)
		return refuse(fault, "seq (sent before)", frame->seq,
			      inbox->released + inbox->slots - 1);
	if (slot->state == TTI_TCP_FILLING && frame->retry > slot->retry) {
		slot->filler->usurped = true;
		inbox->usurped++;
		tti_tcp_reader_abandon(slot->filler);
	}
	return TUTTI_OK;
}

/* A header is complete: judge it against what the link may do now. */
static tutti_status begin(struct tti_tcp_reader *reader, struct tti_tcp_inbox *inbox,
			  const uint8_t *bytes, struct tti_tcp_fault *fault)
{
	struct tti_tcp_frame frame;
	struct tti_tcp_slot *slot;

	if (tti_tcp_frame_get(bytes, &frame, fault))
		return TUTTI_EPROTO;
	if (frame.type == TTI_TCP_HELLO)
		return refuse(fault, "type", frame.type, TTI_TCP_ALIVE);
	TTI_TRY(take_credit(reader, inbox, &frame, fault));
	if (frame.type != TTI_TCP_DATA)
		return TUTTI_OK;
	if (frame.length > inbox->slot_bytes)
		return refuse(fault, "length", frame.length, inbox->slot_bytes);
	if (frame.seq >= inbox->released && frame.seq - inbox->released >= inbox->slots)
		return refuse(fault, "seq", frame.seq, inbox->released + inbox->slots - 1);
	slot = &inbox->slot[frame.seq % inbox->slots];
	if (frame.seq >= inbox->released && slot->state != TTI_TCP_FREE)
		TTI_TRY(come_again(slot, inbox, &frame, fault));
	if (reader->usurped || frame.seq < inbox->released || slot->state != TTI_TCP_FREE) {
		inbox->dropped++;
		skip(reader, frame.length, frame.length);
		return TUTTI_OK;
	}
	*slot = (struct tti_tcp_slot){
		.state = TTI_TCP_FILLING,
		.nbytes = frame.length,
		.tag = frame.tag,
		.retry = frame.retry,
		.filler = reader,
	};
	reader->slot = slot;
	reader->payload = tti_tcp_inbox_room(inbox, frame.seq, frame.length);
	reader->left = frame.length;
	return TUTTI_OK;
}

/* All of a payload is here, but for its mac if it is sealed. */
static void all_came(struct tti_tcp_reader *reader)
{
	if (!reader->left && (!reader->encrypted || !reader->slot->nbytes))
		finish(reader);
}

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* What was read ahead and belongs to the payload; returns how much that was. */
static size_t copy_on(struct tti_tcp_reader *reader, const uint8_t *at, size_t nbytes)
{
	const size_t copied = least(reader->left, nbytes);

	memcpy(reader->payload, at, copied);
	reader->payload += copied;
	reader->left -= copied;
	all_came(reader);
	return copied;
}

/* The mac of the payload that has come. */
static tutti_status check_payload(struct tti_tcp_reader *reader, const uint8_t *mac,
				  struct tti_tcp_fault *fault)
{
	const size_t nbytes = reader->slot->nbytes;
	uint8_t *payload = reader->payload - nbytes;

	if (tti_seal_open(reader->seal, NULL, 0, payload, nbytes, mac, payload))
		return refuse(fault, NULL, 0, 0);
	finish(reader);
	return TUTTI_OK;
}

/* The bytes of the header at hand, by what every one begins with. */
static size_t header_bytes(const struct tti_tcp_reader *reader, const uint8_t *at)
{
	return reader->seal && (reader->encrypted || at[1] != TTI_TCP_DATA) ? TTI_TCP_SEALED
									    : TTI_TCP_HEADER;
}

tutti_status tti_tcp_reader_feed(struct tti_tcp_reader *reader, struct tti_tcp_inbox *inbox,
				 size_t nbytes, struct tti_tcp_fault *fault)
{
	uint8_t *at = reader->ahead, *end;
	const size_t direct = least(nbytes, reader->left);
	size_t header;

	if (direct) {
		reader->payload += direct;
		reader->left -= direct;
		if (reader->left)
			return TUTTI_OK;
		all_came(reader);
	}
	end = at + reader->have + (nbytes - direct);
	reader->have = 0;
	for (;;) {
		const size_t dropped = least(reader->skip, (size_t)(end - at));

		at += dropped;
		reader->skip -= dropped;
		if (reader->slot) {
			if (reader->left || end - at < TTI_SEAL_MAC)
				break;
			TTI_TRY(check_payload(reader, at, fault));
			at += TTI_SEAL_MAC;
		}
		if (end - at < TTI_TCP_HEADER)
			break;
		header = header_bytes(reader, at);
		if ((size_t)(end - at) < header)
			break;
		if (header == TTI_TCP_SEALED && tti_tcp_frame_open(at, reader->seal))
			return refuse(fault, NULL, 0, 0);
		TTI_TRY(begin(reader, inbox, at, fault));
		at += header;
		if (reader->slot)
			at += copy_on(reader, at, (size_t)(end - at));
	}
	reader->have = (size_t)(end - at);
	memmove(reader->ahead, at, reader->have);
	return TUTTI_OK;
}
