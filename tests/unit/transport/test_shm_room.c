/* SPDX-License-Identifier: BSD-3-Clause */
/* Where messages lie in a buffer: nothing that is not read is ever given away. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "transport/shm/shm_room.h"
#include "util/hash.h"

#define BOX_MOST 32768u

static uint32_t put(struct tti_shm_room *room, uint32_t lines)
{
	const uint32_t at = tti_shm_room_find(room, lines, lines);

	if (at != TTI_SHM_FULL)
		tti_shm_room_take(room, at, lines);
	return at;
}

/* -- Against a model: who owns each line -------------------------------------------- */

struct model {
	struct tti_shm_room room;
	bool taken[BOX_MOST];
	uint32_t at[TTI_SHM_HELD], lines[TTI_SHM_HELD];
	uint32_t first, n; /* messages, oldest first */
	uint64_t random;
};

static uint32_t draw(struct model *m, uint32_t below)
{
	m->random = tti_hash_mix(m->random + 1);
	return (uint32_t)(m->random >> 33) % below;
}

static void model_give(struct model *m, uint32_t n)
{
	tti_shm_room_give(&m->room, n);
	for (; n; n--, m->n--, m->first++) {
		const uint32_t i = m->first % TTI_SHM_HELD;

		for (uint32_t c = 0; c < m->lines[i]; c++)
			m->taken[m->at[i] + c] = false;
	}
}

static void model_take(struct model *m, uint32_t at, uint32_t lines)
{
	const uint32_t i = (m->first + m->n++) % TTI_SHM_HELD;

	assert_true(at + lines <= m->room.nlines);
	for (uint32_t c = 0; c < lines; c++) {
		assert_false(m->taken[at + c]);
		m->taken[at + c] = true;
	}
	m->at[i] = at;
	m->lines[i] = lines;
	tti_shm_room_take(&m->room, at, lines);
}

/* Mostly of one length for a while, as calls are; else any. */
static uint32_t draw_cells(struct model *m, uint32_t longest, uint32_t usual)
{
	if (draw(m, 4))
		return usual;
	return 1 + draw(m, draw(m, 2) ? longest : longest < 8 ? longest : 8);
}

struct seen {
	uint32_t refused, turned, far;
};

static void compare_with_model(uint32_t longest, int slots, uint32_t start, uint64_t seed,
			       struct seen *seen)
{
	static struct model m;
	const bool is_far = seed / 1000 % 3 == 0;
	uint32_t usual = 1, pause = 2;

	memset(&m, 0, sizeof(m));
	m.random = seed;
	tti_shm_room_init(&m.room,
			  (size_t)longest * (size_t)slots * TTI_SHM_LINE * (is_far ? 4 : 1),
			  (size_t)longest * TTI_SHM_LINE, slots, seed % 3 ? 2 : 8, seed % 5 ? 2 : 8,
			  seed % 2, start);
	for (int step = 0; step < 4000; step++) {
		uint32_t lines, at, again;

		if (step % 200 == 0) {
			usual = 1 + draw(&m, longest);
			pause = 1 + draw(&m, 16);
		}
		lines = draw_cells(&m, longest, usual);
		at = tti_shm_room_find(&m.room, lines, lines);
		seen->refused += at == TTI_SHM_FULL;
		/* What is asked for is found once all is read, at the latest. */
		assert_true(at != TTI_SHM_FULL || m.n > 0);
		if (m.n && (!draw(&m, pause) || !draw(&m, 50))) {
			model_give(&m, 1 + draw(&m, draw(&m, 4) ? 1 : m.n));
			again = tti_shm_room_find(&m.room, lines, lines);
			assert_true(at == TTI_SHM_FULL || again == at);
			at = again;
		}
		/* A reader that comes late is sent as much as there is room for. */
		if (at == TTI_SHM_FULL && is_far) {
			m.room.late_until_ns = INT64_MAX;
			at = tti_shm_room_find_far(&m.room, lines);
			seen->far += at != TTI_SHM_FULL;
			/* And what it was given stays its own, whatever is read and however late it is. */
			m.room.late_until_ns = 0;
			if (at != TTI_SHM_FULL && m.n && draw(&m, 2))
				model_give(&m, 1 + draw(&m, m.n));
			assert_true(at == TTI_SHM_FULL ||
				    tti_shm_room_find(&m.room, lines, lines) == at);
		}
		seen->turned += at == 0;
		if (at != TTI_SHM_FULL)
			model_take(&m, at, draw(&m, 8) ? lines : 1 + draw(&m, lines));
		assert_int_equal(m.room.held, m.n);
	}
}

static void what_is_not_read_is_not_given_away(void **state)
{
	const struct {
		uint32_t longest;
		int slots;
	} buffers[] = { { 64, 1 }, { 64, 2 }, { 256, 3 }, { 128, 64 }, { 4096, 2 } };

	uint32_t far = 0;

	(void)state;
	for (size_t b = 0; b < sizeof(buffers) / sizeof(buffers[0]); b++) {
		struct seen seen = { 0 };

		for (uint64_t seed = 0; seed < 20; seed++)
			compare_with_model(buffers[b].longest, buffers[b].slots,
					   seed % 2 ? UINT32_MAX - 100 : 0, seed * 1000 + b, &seen);
		assert_true(seen.refused > 200 && seen.turned > 200);
		far += seen.far;
	}
	assert_true(far > 200);
}

static void fill_slots(struct tti_shm_room *room)
{
	while (room->held < 2)
		assert_true(put(room, 4096) != TTI_SHM_FULL);
	assert_int_equal(put(room, 4096), TTI_SHM_FULL);
}

/* A reader has come after longer than a time slice takes: all of the buffer may be under way then. */
static void a_late_reader_is_sent_more(void **state)
{
	(void)state;
	for (int is_shared = 0; is_shared < 2; is_shared++) {
		struct tti_shm_room room;
		uint32_t n = 2;

		tti_shm_room_init(&room, tti_shm_room_bytes(262144, 2, 2), 262144, 2, 2, 2,
				  is_shared, 0);
		fill_slots(&room);
		assert_int_equal(tti_shm_room_find_far(&room, 4096), TTI_SHM_FULL);
		/* One that does not come at all may never come. */
		room.full_since_ns = 1;
		assert_int_equal(tti_shm_room_find_far(&room, 4096), TTI_SHM_FULL);
		tti_shm_room_give(&room, 1);
		fill_slots(&room);
		for (uint32_t at; (at = tti_shm_room_find_far(&room, 4096)) != TTI_SHM_FULL; n++)
			tti_shm_room_take(&room, at, 4096);
		assert_int_equal(n, 32);
		/* So it is where there is room again, and not for ever. */
		room.full_since_ns = 1;
		room.late_until_ns = 0;
		tti_shm_room_give(&room, n);
		tti_shm_room_is_free(&room);
		assert_int_equal(room.full_since_ns, 0);
		assert_true(room.late_until_ns > 0);
		room.late_until_ns = 1;
		fill_slots(&room);
		assert_int_equal(tti_shm_room_find_far(&room, 4096), TTI_SHM_FULL);
	}
}

/* -- Single cases ---------------------------------------------------------------------- */

static void the_longest_fit_as_often_as_there_are_slots(void **state)
{
	(void)state;
	for (int slots = 1; slots <= (int)TTI_SHM_HELD; slots++) {
		struct tti_shm_room room;

		tti_shm_room_init(&room, (size_t)slots * 4096, 4096, slots, 2, 2, false, 0);
		for (int round = 0; round < 3; round++) {
			for (int k = 0; k < slots; k++)
				assert_int_equal(put(&room, 64), k * 64);
			assert_int_equal(put(&room, 1), TTI_SHM_FULL);
			tti_shm_room_give(&room, (uint32_t)slots);
		}
	}
}

/* Two of 256 KiB, as a link has by default, whose reader is behind. */
static void short_ones_share_a_slot(void **state)
{
	const uint32_t lengths[] = { 1, 4, 16, 64, 128, 256, 1024, 4096 };
	const uint32_t least[] = { 64, 64, 64, 32, 16, 8, 2, 2 };

	(void)state;
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		struct tti_shm_room room;
		uint32_t n = 0;

		tti_shm_room_init(&room, 2 * 262144, 262144, 2, 2, 2, false, 0);
		while (put(&room, lengths[i]) != TTI_SHM_FULL)
			n++;
		assert_in_range(n, least[i], TTI_SHM_HELD);
		/* And no more is under way than two of 64 KiB, or two of them. */
		assert_true(n * lengths[i] <= 2048 || n == 2);
	}
}

/* The links of many ranks together take no more, nor does what is shared. */
static void long_ones_have_their_slots(void **state)
{
	(void)state;
	for (int is_shared = 0; is_shared < 2; is_shared++) {
		struct tti_shm_room room;

		tti_shm_room_init(&room, 2 * 262144, 262144, 2, 8, 8, is_shared, 0);
		for (int k = 0; k < 2; k++)
			assert_int_equal(put(&room, 256), k * 256);
		assert_int_equal(put(&room, 256), TTI_SHM_FULL);
	}
}

/* Of ranks that share cores, the one that writes what all read may be as far ahead as others. */
static void short_ones_that_all_read_do_not_wait(void **state)
{
	const uint32_t lengths[] = { 1, 16, 32, 64, 128, 129 };
	const uint32_t most[] = { 64, 64, 64, 32, 16, 2 };

	(void)state;
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		struct tti_shm_room room;

		tti_shm_room_init(&room, tti_shm_room_bytes(262144, 2, 8), 262144, 2, 8, 2, true,
				  0);
		for (uint32_t n = 0; n < most[i]; n++)
			assert_true(put(&room, lengths[i]) != TTI_SHM_FULL);
		assert_int_equal(put(&room, lengths[i]), TTI_SHM_FULL);
	}
}

/* Of pieces of 8 KiB as much may be under way as of what they are pieces of, and no less. */
static void pieces_go_as_far_as_the_whole(void **state)
{
	static const uint32_t wholes[] = { 256, 1024, 4096 };

	(void)state;
	for (int n = 2; n <= 8; n += 6)
		for (size_t i = 0; i < sizeof(wholes) / sizeof(wholes[0]); i++) {
			struct tti_shm_room room;
			uint32_t at, k = 0;

			tti_shm_room_init(&room, 2 * 262144, 262144, 2, n, n, false, 0);
			while ((at = tti_shm_room_find(&room, 128, wholes[i])) != TTI_SHM_FULL) {
				assert_int_equal(at, k++ * 128);
				tti_shm_room_take(&room, at, 128);
			}
			assert_true(k * 128 >= 2 * wholes[i]);
			assert_true(k * 128 == 2 * wholes[i] || k * 128 <= 2048);
		}
}

/* Where the k-th message of 1 KiB lies if each is read before the next but one is written;
 * false: somewhere else. */
static bool goes_round(int n, int cores, bool is_shared, uint32_t round)
{
	struct tti_shm_room room;
	bool good = true;

	tti_shm_room_init(&room, tti_shm_room_bytes(262144, 2, n), 262144, 2, n, cores, is_shared,
			  0);
	assert_true(round <= room.nlines);
	for (uint32_t k = 0; k < 5000; k++) {
		good = good && put(&room, 16) == TTI_SHM_PAGE * k % (round - round % TTI_SHM_PAGE);
		tti_shm_room_give(&room, room.held - 1);
	}
	return good;
}

/* What a rank goes round is as much for many links as for one, and less where cores are shared.
 * In lines of 64 bytes. */
static void who_keeps_pace_goes_round_much(void **state)
{
	(void)state;
	assert_true(goes_round(2, 2, false, 32768));
	assert_true(goes_round(2, 2, true, 32768));
	assert_true(goes_round(5, 8, false, 8192));
	assert_true(goes_round(4, 2, false, 10880));
	assert_true(goes_round(8, 2, false, 2304));
	assert_true(goes_round(8, 2, true, TTI_SHM_HELD * TTI_SHM_PAGE));
}

/* What is long and read by all ranks of a core stays where it is, behind what short ones left. */
static void long_ones_take_turns_where_cores_are_shared(void **state)
{
	struct tti_shm_room room;

	(void)state;
	tti_shm_room_init(&room, tti_shm_room_bytes(262144, 2, 8), 262144, 2, 8, 2, true, 0);
	for (uint32_t k = 0; k < 40; k++) {
		assert_int_equal(put(&room, 16), k * TTI_SHM_PAGE);
		tti_shm_room_give(&room, room.held - 1);
	}
	tti_shm_room_give(&room, 1);
	for (uint32_t k = 0; k < 10; k++) {
		assert_int_equal(put(&room, 1024), 1024 * (k % 2));
		tti_shm_room_give(&room, room.held - 1);
	}
}

/* Of what is longer than that there are as many as slots. */
static void long_ones_go_as_far_as_they_must(void **state)
{
	struct tti_shm_room room;

	(void)state;
	tti_shm_room_init(&room, tti_shm_room_bytes(262144, 2, 64), 262144, 2, 64, 2, false, 0);
	assert_int_equal(room.nlines, 8192);
	for (uint32_t k = 0; k < 10; k++) {
		assert_int_equal(put(&room, 1024), 1024 * (k % 2));
		tti_shm_room_give(&room, room.held - 1);
	}
}

static void what_is_left_at_the_end_is_skipped(void **state)
{
	struct tti_shm_room room;

	(void)state;
	tti_shm_room_init(&room, 640 * (size_t)TTI_SHM_LINE, 640 * (size_t)TTI_SHM_LINE, 1, 2, 2,
			  false, 0);
	assert_int_equal(put(&room, 384), 0);
	assert_int_equal(put(&room, 192), 384);
	assert_int_equal(put(&room, 65), TTI_SHM_FULL); /* 64 are left */
	tti_shm_room_give(&room, 1);
	assert_int_equal(put(&room, 128), 0);
	assert_int_equal(put(&room, 257), TTI_SHM_FULL);
	assert_int_equal(put(&room, 256), 128); /* as far as the oldest */
	assert_int_equal(put(&room, 1), TTI_SHM_FULL);
	tti_shm_room_give(&room, 1);
	/* What lay behind is free again. */
	assert_int_equal(put(&room, 250), 384);
	assert_int_equal(put(&room, 65), TTI_SHM_FULL);
	tti_shm_room_give(&room, 3);
	assert_int_equal(put(&room, 640), 0);
	assert_int_equal(put(&room, 641), TTI_SHM_FULL);
}

static void no_more_are_held_than_can_be_numbered(void **state)
{
	struct tti_shm_room room;

	(void)state;
	tti_shm_room_init(&room, 64 * 4096, 4096, 64, 2, 2, false, UINT32_MAX - 3);
	for (uint32_t k = 0; k < TTI_SHM_HELD; k++)
		assert_int_equal(put(&room, 1), k * TTI_SHM_PAGE);
	assert_int_equal(put(&room, 1), TTI_SHM_FULL);
	tti_shm_room_give(&room, 1);
	assert_true(put(&room, 1) != TTI_SHM_FULL);
	assert_int_equal(put(&room, 1), TTI_SHM_FULL);
}

/* -- Pages ----------------------------------------------------------------------------- */

#define PAGES 512

static int pages_of(uint8_t *buffer)
{
	unsigned char resident[PAGES];
	int n = 0;

	assert_int_equal(mincore(buffer, sizeof(resident) * 4096, resident), 0);
	for (int i = 0; i < PAGES; i++)
		n += resident[i] & 1;
	return n;
}

/* Of a buffer of shared memory whose messages each begin a page: pages come ahead of them, several at
 * once, and never more than as many again as are used. */
static void pages_come_ahead(void **state)
{
	const int fd = memfd_create("buffer", MFD_CLOEXEC);
	uint8_t *buffer, *probe = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
				       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const bool can = madvise(probe, 4096, 23) == 0; /* MADV_POPULATE_WRITE, Linux 5.14 */
	struct tti_shm_room room;
	int pages = 0, times = 0;

	(void)state;
	assert_int_equal(ftruncate(fd, PAGES * 4096), 0);
	buffer = mmap(NULL, PAGES * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	tti_shm_room_init(&room, PAGES * 4096, PAGES * 2048, 2, 2, 2, false, 0);
	for (int k = 0; k < PAGES; k++) {
		const uint32_t at = tti_shm_room_find(&room, 4, 4);
		int now;

		assert_int_equal(at, (uint32_t)k * TTI_SHM_PAGE);
		assert_ptr_equal(tti_shm_room_at(&room, buffer, at, 4), buffer + k * 4096);
		buffer[k * 4096] = 1;
		tti_shm_room_take(&room, at, 4);
		tti_shm_room_give(&room, 1);
		now = pages_of(buffer);
		assert_in_range(now, k + 1, 2 * k + 1);
		times += now != pages;
		pages = now;
	}
	assert_int_equal(pages, PAGES);
	assert_true(!can || times < 20);
	munmap(buffer, PAGES * 4096);
	munmap(probe, 4096);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_not_read_is_not_given_away),
		cmocka_unit_test(a_late_reader_is_sent_more),
		cmocka_unit_test(the_longest_fit_as_often_as_there_are_slots),
		cmocka_unit_test(short_ones_share_a_slot),
		cmocka_unit_test(long_ones_have_their_slots),
		cmocka_unit_test(short_ones_that_all_read_do_not_wait),
		cmocka_unit_test(pieces_go_as_far_as_the_whole),
		cmocka_unit_test(who_keeps_pace_goes_round_much),
		cmocka_unit_test(long_ones_take_turns_where_cores_are_shared),
		cmocka_unit_test(long_ones_go_as_far_as_they_must),
		cmocka_unit_test(what_is_left_at_the_end_is_skipped),
		cmocka_unit_test(no_more_are_held_than_can_be_numbered),
		cmocka_unit_test(pages_come_ahead),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
