/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames of the TCP transport, without sockets. */
#include "unit/transport/tcp_world.h"

#include <stdlib.h>

#include "util/wire.h"

#define SLOTS 4
#define SLOT  9000

struct box {
	struct tti_tcp_inbox inbox;
	struct tti_tcp_slot slot[SLOTS];
	uint8_t small[SLOTS * TTI_TCP_SMALL], large[SLOTS * SLOT];
};

static void box_init(struct box *box)
{
	memset(box, 0, sizeof(*box));
	box->inbox = (struct tti_tcp_inbox){
		.slots = SLOTS,
		.slot_bytes = SLOT,
		.stride = SLOT,
		.small = box->small,
		.large = box->large,
		.slot = box->slot,
	};
}

static size_t put_message(uint8_t *at, uint64_t seq, size_t nbytes)
{
	const struct tti_tcp_frame frame = {
		.type = TTI_TCP_DATA,
		.length = (uint32_t)nbytes,
		.seq = seq,
		.tag = seq ^ 0x55,
	};

	tti_tcp_frame_put(at, &frame);
	pattern_fill(at + TTI_TCP_HEADER, nbytes, seq);
	return TTI_TCP_HEADER + nbytes;
}

/* The same for a job that is encrypted. */
static size_t put_sealed(uint8_t *at, uint64_t seq, size_t nbytes, struct tti_seal *seal)
{
	uint8_t *payload = at + TTI_TCP_SEALED;

	put_message(at, seq, 0);
	tti_wire_put32(at + 4, (uint32_t)nbytes);
	tti_tcp_frame_seal(at, seal);
	if (!nbytes)
		return TTI_TCP_SEALED;
	pattern_fill(payload, nbytes, seq);
	tti_seal_close(seal, NULL, 0, payload, nbytes, payload, payload + nbytes);
	return TTI_TCP_SEALED + nbytes + TTI_SEAL_MAC;
}

static size_t at_most(size_t a, size_t b)
{
	return a < b ? a : b;
}

static size_t wire_bytes(const struct tti_tcp_reader *reader, size_t nbytes)
{
	if (!reader->encrypted)
		return TTI_TCP_HEADER + nbytes;
	return TTI_TCP_SEALED + nbytes + (nbytes ? TTI_SEAL_MAC : 0);
}

/* Feed bytes in pieces of at most `piece`, taking messages as they come. As a peer
 * would, never more of them at a time than there are slots. */
static uint64_t feed(struct box *box, struct tti_tcp_reader *reader, const uint8_t *bytes,
		     size_t nbytes, size_t piece, const size_t *size)
{
	uint64_t taken = box->inbox.released, begun = taken;
	size_t allowed = 0;

	while (nbytes) {
		struct iovec iov[2];
		struct tti_tcp_fault fault;
		const int n = tti_tcp_reader_room(reader, iov);
		size_t fed = 0;

		for (; begun < taken + SLOTS && allowed < nbytes; begun++)
			allowed += wire_bytes(reader, size[begun]);
		for (int i = 0; i < n; i++) {
			const size_t most = at_most(piece - fed, at_most(allowed, nbytes));
			const size_t part = at_most(iov[i].iov_len, most);

			memcpy(iov[i].iov_base, bytes, part);
			bytes += part;
			nbytes -= part;
			allowed -= at_most(allowed, part);
			fed += part;
		}
		assert_int_equal(tti_tcp_reader_feed(reader, &box->inbox, fed, &fault), TUTTI_OK);
		for (; tti_tcp_inbox_oldest(&box->inbox); taken++) {
			const struct tti_tcp_slot *slot = tti_tcp_inbox_oldest(&box->inbox);

			assert_int_equal(slot->nbytes, size[taken]);
			assert_int_equal(slot->tag, taken ^ 0x55);
			check_filled(tti_tcp_inbox_room(&box->inbox, taken, slot->nbytes),
				     slot->nbytes, taken);
			tti_tcp_inbox_release(&box->inbox);
		}
	}
	return taken;
}

static void reads_in_any_pieces(void **state)
{
	static const size_t size[] = { 0, 1, 255, 256, 257, 4064, 4065, 9000, 8, 8, 3000, 0, 9000 };
	const size_t n = sizeof(size) / sizeof(size[0]);
	uint8_t *bytes = malloc(n * (TTI_TCP_HEADER + SLOT));
	size_t nbytes = 0;

	(void)state;
	for (size_t i = 0; i < n; i++)
		nbytes += put_message(bytes + nbytes, i, size[i]);
	for (size_t piece = 1; piece < 10000; piece += piece < 70 ? 1 : 331) {
		struct box *box = malloc(sizeof(*box));
		struct tti_tcp_reader *reader = calloc(1, sizeof(*reader));

		box_init(box);
		assert_int_equal(feed(box, reader, bytes, nbytes, piece, size), n);
		assert_true(tti_tcp_reader_idle(reader));
		free(reader);
		free(box);
	}
	free(bytes);
}

static const uint8_t key[TTI_SEAL_KEY] = { 3 };

static void reads_what_is_sealed_in_any_pieces(void **state)
{
	static const size_t size[] = { 0, 1, 255, 256, 257, 4064, 4065, 9000, 8, 8, 3000, 0, 9000 };
	const size_t n = sizeof(size) / sizeof(size[0]);
	uint8_t *bytes = malloc(n * (TTI_TCP_SEALED + SLOT + TTI_SEAL_MAC));
	struct tti_seal seal;
	size_t nbytes = 0;

	(void)state;
	tti_seal_init(&seal, TTI_SEAL_XCHACHA, key);
	for (size_t i = 0; i < n; i++)
		nbytes += put_sealed(bytes + nbytes, i, size[i], &seal);
	for (size_t piece = 1; piece < 10000; piece += piece < 70 ? 1 : 331) {
		struct box *box = malloc(sizeof(*box));
		struct tti_tcp_reader *reader = calloc(1, sizeof(*reader));

		box_init(box);
		tti_seal_init(&seal, TTI_SEAL_XCHACHA, key);
		reader->seal = &seal;
		reader->encrypted = true;
		assert_int_equal(feed(box, reader, bytes, nbytes, piece, size), n);
		assert_true(tti_tcp_reader_idle(reader));
		free(reader);
		free(box);
	}
	free(bytes);
}

/* What a reader of two messages makes of `bytes`: how many come out as they were. */
static int count_whole(const uint8_t *bytes, size_t nbytes, const size_t *size, bool *refused)
{
	struct box *box = malloc(sizeof(*box));
	struct tti_tcp_reader *reader = calloc(1, sizeof(*reader));
	struct tti_seal seal;
	int whole = 0;

	box_init(box);
	tti_seal_init(&seal, TTI_SEAL_XCHACHA, key);
	reader->seal = &seal;
	reader->encrypted = true;
	*refused = false;
	while (nbytes && !*refused) {
		struct iovec iov[2];
		struct tti_tcp_fault fault;
		const int n = tti_tcp_reader_room(reader, iov);
		size_t fed = 0;

		for (int i = 0; i < n; i++) {
			const size_t part = at_most(iov[i].iov_len, nbytes);

			memcpy(iov[i].iov_base, bytes, part);
			bytes += part;
			nbytes -= part;
			fed += part;
		}
		*refused = tti_tcp_reader_feed(reader, &box->inbox, fed, &fault) != TUTTI_OK;
		assert_true(!*refused || !fault.field);
	}
	for (; tti_tcp_inbox_oldest(&box->inbox); whole++) {
		assert_int_equal(tti_tcp_inbox_oldest(&box->inbox)->nbytes, size[whole]);
		check_filled(tti_tcp_inbox_room(&box->inbox, (uint64_t)whole, size[whole]),
			     size[whole], (uint64_t)whole);
		tti_tcp_inbox_release(&box->inbox);
	}
	free(reader);
	free(box);
	return whole;
}

/* Every bit of two messages: what comes before it is whole, nothing comes behind it, and the
 * reader does not wait for more. */
static void every_changed_bit_is_refused(void **state)
{
	static const size_t size[] = { 100, 300 };
	uint8_t bytes[2 * (TTI_TCP_SEALED + 300 + TTI_SEAL_MAC)];
	struct tti_seal seal;
	size_t first, nbytes;
	bool refused;

	(void)state;
	tti_seal_init(&seal, TTI_SEAL_XCHACHA, key);
	nbytes = first = put_sealed(bytes, 0, size[0], &seal);
	nbytes += put_sealed(bytes + first, 1, size[1], &seal);
	assert_int_equal(count_whole(bytes, nbytes, size, &refused), 2);
	assert_false(refused);
	for (size_t bit = 0; bit < 8 * nbytes; bit++) {
		bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_int_equal(count_whole(bytes, nbytes, size, &refused), bit / 8 >= first);
		assert_true(refused);
		bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	/* The second first, the first twice, the first left out. */
	assert_int_equal(count_whole(bytes + first, nbytes - first, size, &refused), 0);
	assert_true(refused);
	memmove(bytes + first, bytes, first);
	assert_int_equal(count_whole(bytes, 2 * first, size, &refused), 1);
	assert_true(refused);
}

/* A message that another connection brings as well is thrown away, and those behind it come. */
static void what_is_thrown_away_counts(void **state)
{
	static const size_t size[] = { 100, 300, 20, 0, 5000 };
	struct box *box = malloc(sizeof(*box));
	struct tti_tcp_reader *reader = calloc(1, sizeof(*reader));
	uint8_t *bytes = malloc(2 * SLOT);
	struct tti_seal seal, in;
	size_t nbytes;

	(void)state;
	box_init(box);
	tti_seal_init(&seal, TTI_SEAL_XCHACHA, key);
	tti_seal_init(&in, TTI_SEAL_XCHACHA, key);
	reader->seal = &in;
	reader->encrypted = true;
	nbytes = put_sealed(bytes, 0, size[0], &seal);
	assert_int_equal(feed(box, reader, bytes, nbytes, 77, size), 1);
	nbytes = put_sealed(bytes, 0, size[0], &seal); /* released: it goes nowhere */
	nbytes += put_sealed(bytes + nbytes, 1, size[1], &seal);
	nbytes += put_sealed(bytes + nbytes, 2, size[2], &seal);
	nbytes += put_sealed(bytes + nbytes, 3, size[3], &seal);
	nbytes += put_sealed(bytes + nbytes, 4, size[4], &seal);
	for (size_t at = 0; at < nbytes; at += 500) {
		struct iovec iov[2];
		struct tti_tcp_fault fault;
		size_t left = at_most(500, nbytes - at), fed = 0;
		const int n = tti_tcp_reader_room(reader, iov);

		for (int i = 0; i < n; i++) {
			const size_t part = at_most(iov[i].iov_len, left);

			memcpy(iov[i].iov_base, bytes + at + fed, part);
			left -= part;
			fed += part;
		}
		assert_int_equal(left, 0);
		assert_int_equal(tti_tcp_reader_feed(reader, &box->inbox, fed, &fault), TUTTI_OK);
	}
	for (uint64_t seq = 1; seq < 5; seq++) {
		assert_non_null(tti_tcp_inbox_oldest(&box->inbox));
		check_filled(tti_tcp_inbox_room(&box->inbox, seq, size[seq]), size[seq], seq);
		tti_tcp_inbox_release(&box->inbox);
	}
	assert_true(tti_tcp_reader_idle(reader));
	free(bytes);
	free(reader);
	free(box);
}

/* Two connections, the later message first. */
static void puts_connections_in_order(void **state)
{
	static const size_t size[] = { 100, 5000 };
	struct box *box = malloc(sizeof(*box));
	struct tti_tcp_reader *reader = calloc(2, sizeof(*reader));
	uint8_t *bytes = malloc(TTI_TCP_HEADER + SLOT);

	(void)state;
	box_init(box);
	assert_int_equal(feed(box, &reader[1], bytes, put_message(bytes, 1, size[1]), 999, size),
			 0);
	assert_int_equal(feed(box, &reader[0], bytes, put_message(bytes, 0, size[0]), 999, size),
			 2);
	free(bytes);
	free(reader);
	free(box);
}

static void frames_come_back(void **state)
{
	const struct tti_tcp_frame in = { TTI_TCP_DATA,       0x0506,
					  0x01020304,         0x1112131415161718,
					  0x2122232425262728, 0x3132333435363738 };
	static const uint8_t expected[TTI_TCP_HEADER] = {
		0x74, 1,    0x06, 0x05, 0x04, 0x03, 0x02, 0x01, 0x18, 0x17, 0x16,
		0x15, 0x14, 0x13, 0x12, 0x11, 0x28, 0x27, 0x26, 0x25, 0x24, 0x23,
		0x22, 0x21, 0x38, 0x37, 0x36, 0x35, 0x34, 0x33, 0x32, 0x31,
	};
	uint8_t bytes[TTI_TCP_HEADER];
	struct tti_tcp_frame out = { 0 };
	struct tti_tcp_fault fault;

	(void)state;
	tti_tcp_frame_put(bytes, &in);
	assert_memory_equal(bytes, expected, sizeof(bytes));
	assert_int_equal(tti_tcp_frame_get(bytes, &out, &fault), TUTTI_OK);
	assert_int_equal(out.type, in.type);
	assert_int_equal(out.retry, in.retry);
	assert_int_equal(out.length, in.length);
	assert_int_equal(out.seq, in.seq);
	assert_int_equal(out.consumed, in.consumed);
	assert_int_equal(out.tag, in.tag);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_in_any_pieces),
		cmocka_unit_test(reads_what_is_sealed_in_any_pieces),
		cmocka_unit_test(every_changed_bit_is_refused),
		cmocka_unit_test(what_is_thrown_away_counts),
		cmocka_unit_test(puts_connections_in_order),
		cmocka_unit_test(frames_come_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
