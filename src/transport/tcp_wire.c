/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/tcp_wire.h"

#include <endian.h>
#include <string.h>

#include "util/error.h"

static void put32(uint8_t *at, uint32_t value)
{
	value = htole32(value);
	memcpy(at, &value, sizeof(value));
}

static void put64(uint8_t *at, uint64_t value)
{
	value = htole64(value);
	memcpy(at, &value, sizeof(value));
}

static uint32_t get32(const uint8_t *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return le32toh(value);
}

static uint64_t get64(const uint8_t *at)
{
	uint64_t value;

	memcpy(&value, at, sizeof(value));
	return le64toh(value);
}

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
	bytes[2] = bytes[3] = 0;
	put32(bytes + 4, frame->length);
	put64(bytes + 8, frame->seq);
	put64(bytes + 16, frame->consumed);
	put64(bytes + 24, frame->tag);
}

void tti_tcp_frame_set_consumed(uint8_t bytes[TTI_TCP_HEADER], uint64_t consumed)
{
	put64(bytes + 16, consumed);
}

tutti_status tti_tcp_frame_get(const uint8_t bytes[TTI_TCP_HEADER], struct tti_tcp_frame *out,
			       struct tti_tcp_fault *fault)
{
	if (bytes[0] != TTI_TCP_MAGIC)
		return refuse(fault, "magic", bytes[0], TTI_TCP_MAGIC);
	if (bytes[1] < TTI_TCP_DATA || bytes[1] > TTI_TCP_HELLO)
		return refuse(fault, "type", bytes[1], TTI_TCP_HELLO);
	if (bytes[2] || bytes[3])
		return refuse(fault, "reserved", (uint64_t)bytes[2] << 8 | bytes[3], 0);
	out->type = bytes[1];
	out->length = get32(bytes + 4);
	out->seq = get64(bytes + 8);
	out->consumed = get64(bytes + 16);
	out->tag = get64(bytes + 24);
	if (out->type != TTI_TCP_DATA && out->length)
		return refuse(fault, "length", out->length, 0);
	return TUTTI_OK;
}

int tti_tcp_reader_room(struct tti_tcp_reader *reader, struct iovec iov[2])
{
	int n = 0;

	if (reader->left)
		iov[n++] = (struct iovec){ reader->payload, reader->left };
	iov[n++] = (struct iovec){ reader->ahead + reader->have, TTI_TCP_AHEAD - reader->have };
	return n;
}

static void finish(struct tti_tcp_reader *reader)
{
	reader->slot->state = TTI_TCP_ARRIVED;
	reader->slot = NULL;
	reader->payload = NULL;
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
		return refuse(fault, "type", frame.type, TTI_TCP_CREDIT);
	if (frame.consumed > inbox->committed)
		return refuse(fault, "consumed", frame.consumed, inbox->committed);
	/* A credit that tells nothing new would let a peer keep us busy for ever. */
	if (frame.consumed < reader->consumed + (frame.type == TTI_TCP_CREDIT))
		return refuse(fault, "consumed (told before)", frame.consumed, inbox->committed);
	reader->consumed = frame.consumed;
	/* With several connections an older count may come later. */
	if (frame.consumed > inbox->credit)
		inbox->credit = frame.consumed;
	if (frame.type == TTI_TCP_CREDIT) {
		if (frame.seq || frame.tag)
			return refuse(fault, "seq and tag of a credit", frame.seq | frame.tag, 0);
		return TUTTI_OK;
	}
	if (frame.length > inbox->slot_bytes)
		return refuse(fault, "length", frame.length, inbox->slot_bytes);
	if (frame.seq < inbox->released || frame.seq - inbox->released >= inbox->slots)
		return refuse(fault, "seq", frame.seq, inbox->released + inbox->slots - 1);
	slot = &inbox->slot[frame.seq % inbox->slots];
	if (slot->state != TTI_TCP_FREE)
		return refuse(fault, "seq (sent before)", frame.seq,
			      inbox->released + inbox->slots - 1);
	slot->state = TTI_TCP_FILLING;
	slot->nbytes = frame.length;
	slot->tag = frame.tag;
	reader->slot = slot;
	reader->payload = tti_tcp_inbox_room(inbox, frame.seq, frame.length);
	reader->left = frame.length;
	return TUTTI_OK;
}

tutti_status tti_tcp_reader_feed(struct tti_tcp_reader *reader, struct tti_tcp_inbox *inbox,
				 size_t nbytes, struct tti_tcp_fault *fault)
{
	const uint8_t *at = reader->ahead, *end;
	const size_t direct = nbytes < reader->left ? nbytes : reader->left;

	if (direct) {
		reader->payload += direct;
		reader->left -= direct;
		if (reader->left)
			return TUTTI_OK;
		finish(reader);
	}
	end = at + reader->have + (nbytes - direct);
	reader->have = 0;
	while (end - at >= TTI_TCP_HEADER) {
		size_t copied;

		TTI_TRY(begin(reader, inbox, at, fault));
		at += TTI_TCP_HEADER;
		if (!reader->slot)
			continue;
		copied = reader->left < (size_t)(end - at) ? reader->left : (size_t)(end - at);
		memcpy(reader->payload, at, copied);
		at += copied;
		reader->payload += copied;
		reader->left -= copied;
		if (reader->left)
			return TUTTI_OK;
		finish(reader);
	}
	reader->have = (size_t)(end - at);
	memmove(reader->ahead, at, reader->have);
	return TUTTI_OK;
}
