/* SPDX-License-Identifier: BSD-3-Clause */
/* The reading machine of a TCP link: what a peer that has proven itself may send,
 * in any pieces, over several connections.
 *
 * The input is a script. Most of its operations make frames that are right, so that
 * the fuzzer gets past the first header; others make nonsense of them. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "transport/tcp/tcp_wire.h"

#define CONNS 3

struct script {
	const uint8_t *at, *end;
};

struct world {
	struct tti_tcp_inbox inbox;
	struct tti_tcp_reader *reader[CONNS];
	size_t data_left[CONNS]; /* payload the script still owes */
	uint64_t seq;
	uint8_t piece; /* bytes per feed */
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes);

static uint8_t next(struct script *script)
{
	return script->at < script->end ? *script->at++ : 0;
}

static void check(int condition)
{
	if (!condition)
		__builtin_trap();
}

/* false: refused. */
static int feed(struct world *world, int conn, const uint8_t *bytes, size_t nbytes)
{
	struct tti_tcp_reader *reader = world->reader[conn];

	while (nbytes) {
		struct iovec iov[2];
		struct tti_tcp_fault fault = { 0 };
		const int n = tti_tcp_reader_room(reader, iov);
		size_t most = (size_t)world->piece * 37 + 1, fed = 0;

		check(n == 1 || n == 2);
		for (int i = 0; i < n; i++) {
			size_t part = iov[i].iov_len < nbytes ? iov[i].iov_len : nbytes;

			check(iov[i].iov_len > 0);
			part = part < most ? part : most;
			memcpy(iov[i].iov_base, bytes, part);
			bytes += part, nbytes -= part, fed += part, most -= part;
		}
		if (tti_tcp_reader_feed(reader, &world->inbox, fed, &fault)) {
			check(fault.field != NULL);
			return 0;
		}
		check(world->inbox.credit <= world->inbox.committed);
	}
	return 1;
}

static int feed_frame(struct world *world, struct script *script, int conn, uint8_t op)
{
	static const uint8_t zeros[1 << 16];
	uint8_t header[TTI_TCP_HEADER];
	struct tti_tcp_frame frame = { .type = TTI_TCP_DATA, .consumed = world->inbox.credit };

	if (world->data_left[conn]) {
		const size_t left = world->data_left[conn];

		world->data_left[conn] = 0;
		return feed(world, conn, zeros, left);
	}
	if (op & 1) {
		frame.type = TTI_TCP_CREDIT;
		frame.consumed += next(script) % 4;
	} else {
		frame.seq = world->seq++;
		frame.length = (uint32_t)(next(script) << 8 | next(script)) % 20000;
		frame.tag = next(script);
	}
	tti_tcp_frame_put(header, &frame);
	if (op & 2) {
		const uint8_t at = next(script);

		header[at % TTI_TCP_HEADER] ^= next(script);
	}
	world->data_left[conn] = frame.length;
	return feed(world, conn, header, sizeof(header));
}

static int take(struct world *world)
{
	const struct tti_tcp_slot *slot = tti_tcp_inbox_oldest(&world->inbox);
	volatile uint8_t sum = 0;
	const uint8_t *bytes;

	if (!slot)
		return 1;
	check(slot->nbytes <= world->inbox.slot_bytes);
	bytes = tti_tcp_inbox_room(&world->inbox, world->inbox.released, slot->nbytes);
	for (uint32_t i = 0; i < slot->nbytes; i += 61)
		sum = (uint8_t)(sum + bytes[i]);
	tti_tcp_inbox_release(&world->inbox);
	return 1;
}

static int step(struct world *world, struct script *script)
{
	const uint8_t op = next(script);
	const int conn = (op >> 3) % CONNS;

	switch (op & 7) {
	case 0:
	case 1:
	case 2:
	case 3:
		return feed_frame(world, script, conn, op);
	case 4:
	case 5:
		return take(world);
	case 6:
		world->inbox.committed++;
		return 1;
	default: {
		const size_t left = (size_t)(script->end - script->at);
		const size_t n = left < op ? left : op;

		script->at += n;
		return feed(world, conn, script->at - n, n);
	}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
	struct script script = { data, data + nbytes };
	const uint32_t slots = next(&script) % 8 + 1;
	const size_t slot_bytes = (size_t)(next(&script) << 6) + 1;
	struct world world = { .piece = next(&script) };

	world.inbox = (struct tti_tcp_inbox){
		.slots = slots,
		.slot_bytes = slot_bytes,
		.stride = slot_bytes,
		.small = malloc(slots * TTI_TCP_SMALL),
		.large = malloc(slots * slot_bytes),
		.slot = calloc(slots, sizeof(struct tti_tcp_slot)),
	};
	for (int i = 0; i < CONNS; i++)
		world.reader[i] = calloc(1, sizeof(struct tti_tcp_reader));
	while (script.at < script.end && step(&world, &script))
		;
	for (int i = 0; i < CONNS; i++)
		free(world.reader[i]);
	free(world.inbox.small);
	free(world.inbox.large);
	free(world.inbox.slot);
	return 0;
}
