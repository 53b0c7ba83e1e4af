/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists of sends and receives by device programs: of any lengths, each with pieces and a tag of its
 * own, in any order of peers, into memory that is being sent, and to the rank itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coll/algorithms/send_recv.h"
#include "support/device_bed.h"
#include "support/device_trial.h"
#include "support/reference.h"
#include "support/sanitizer.h"
#include "util/clock.h"
#include "util/error.h"

#define RANKS    6
#define MESSAGES 20
#define LISTS    3
/* Of one rank: it may send and receive each, and copy. */
#define STEPS    (2 * MESSAGES)
#define PIECE    512

/* From one rank to another. If they swap, there is another one back, from where the first is received
 * to where it was sent. */
struct message {
	int from, to;
	bool swaps;
	size_t nbytes, slice;
	uint64_t tag;
	uint64_t memory[2];          /* where it is sent from, where it is received */
	uint8_t first[2][5 * PIECE]; /* what is there at first */
};

/* What a rank does in a list. */
struct part {
	int nsteps, nchunks;
	struct tti_transfer_step step[STEPS];
	struct tti_extent extent[STEPS];
	struct tti_compiled compiled;
};

struct list {
	int nmessages;
	uint64_t nbytes; /* that all ranks read, and write */
	struct message message[MESSAGES];
	struct part part[RANKS];
};

struct play {
	int n;
	struct list list[LISTS];
	struct tti_dev_call call[LISTS * RANKS];
	struct device_bed bed;
	uint64_t random;
};

static size_t draw(struct play *play, size_t n)
{
	return next_random(&play->random) % n;
}

static void draw_message(struct play *play, struct message *message)
{
	*message = (struct message){ .from = (int)draw(play, (size_t)play->n),
				     .to = (int)draw(play, (size_t)play->n),
				     .tag = next_random(&play->random),
				     .slice = 1 + draw(play, PIECE) };
	message->nbytes = draw(play, 4) ? draw(play, 5 * PIECE) : draw(play, 3);
	if (message->nbytes > 20 * message->slice)
		message->slice = PIECE;
	message->swaps = message->from != message->to && draw(play, 4) == 0;
	for (int side = 0; side < 2; side++) {
		const size_t shift = draw(play, 16);

		for (size_t i = 0; i < message->nbytes; i++)
			message->first[side][i] = (uint8_t)next_random(&play->random);
		message->memory[side] = device_alloc(&play->bed, message->nbytes + shift) + shift;
		memcpy(device_view(&play->bed, message->memory[side]), message->first[side],
		       message->nbytes);
	}
}

/* A step of a rank; `chunk` is new, or that of a send into whose memory it receives. */
static void add_step(struct part *part, enum tti_transfer_kind kind, int peer,
		     const struct message *message, int side, int chunk)
{
	part->step[part->nsteps++] =
		(struct tti_transfer_step){ .kind = kind, .peer = peer, .chunk = chunk };
	part->extent[chunk] = (struct tti_extent){ .first = message->memory[side],
						   .to = message->memory[side],
						   .count = message->nbytes,
						   .slice = message->slice,
						   .tag = message->tag };
}

static void add_message(struct list *list, const struct message *message)
{
	struct part *from = &list->part[message->from], *to = &list->part[message->to];

	add_step(from, TTI_TRANSFER_SEND, message->to, message, 0, from->nchunks++);
	if (message->swaps)
		add_step(to, TTI_TRANSFER_SEND, message->from, message, 1, to->nchunks);
	add_step(to, TTI_TRANSFER_RECV, message->from, message, 1, to->nchunks++);
	if (message->swaps)
		add_step(from, TTI_TRANSFER_RECV, message->to, message, 0, from->nchunks - 1);
}

/* What a rank has for itself. */
static void add_copy(struct list *list, const struct message *message)
{
	struct part *part = &list->part[message->from];

	add_step(part, TTI_TRANSFER_COPY, message->from, message, 1, part->nchunks);
	part->extent[part->nchunks++].first = message->memory[0];
}

/* Neighbours change places where the order of a link and of a chunk allows it. */
static void shuffle(struct play *play, struct part *part)
{
	for (int i = 0; i < 4 * part->nsteps && part->nsteps > 1; i++) {
		const size_t at = draw(play, (size_t)part->nsteps - 1);
		const struct tti_transfer_step step = part->step[at];

		if (step.chunk == part->step[at + 1].chunk ||
		    (step.peer == part->step[at + 1].peer && step.kind == part->step[at + 1].kind))
			continue;
		part->step[at] = part->step[at + 1];
		part->step[at + 1] = step;
	}
}

static void make_part(struct play *play, struct part *part, int rank, struct tti_dev_call *call)
{
	struct device_work work = { .prog = &part->compiled, .type = TUTTI_UINT8 };
	struct tti_program prog;

	shuffle(play, part);
	part->nchunks = part->nchunks ? part->nchunks : 1;
	assert_int_equal(tti_send_recv_program(part->step, part->nsteps, part->nchunks, rank,
					       play->n, &prog),
			 TUTTI_OK);
	if (tti_compile(&prog, &part->compiled) != TUTTI_OK)
		fail_msg("%s", tti_error_text());
	tti_program_release(&prog);
	work.layout = (struct tti_layout){
		.by_chunk = true, .extents = part->extent, .type_size = 1, .parts = 1
	};
	work.slice_bytes = 1;
	device_call_make(&play->bed, rank, &work, call);
}

static void make_list(struct play *play, int at)
{
	struct list *list = &play->list[at];

	list->nmessages = 1 + (int)draw(play, MESSAGES);
	for (int i = 0; i < list->nmessages; i++) {
		struct message *message = &list->message[i];

		draw_message(play, message);
		if (message->from == message->to && draw(play, 2)) {
			list->nbytes += message->nbytes;
			add_copy(list, message);
		} else {
			/* At either end of each way. */
			list->nbytes += message->nbytes * (message->swaps ? 4 : 2);
			add_message(list, message);
		}
	}
	for (int rank = 0; rank < play->n; rank++)
		make_part(play, &list->part[rank], rank, &play->call[at * play->n + rank]);
}

static void set_up(struct play *play, uint64_t seed)
{
	struct device_config config;

	*play = (struct play){ .random = seed };
	play->n = 1 + (int)draw(play, RANKS);
	device_draw(&config, play->n, seed);
	config.in_turns = seed % 8 != 0;
	config.slot_bytes = device_slot_bytes(PIECE, 1, config.nblocks);
	device_bed_init(&play->bed, &config);
	for (int at = 0; at < LISTS; at++)
		make_list(play, at);
}

static void tear_down(struct play *play)
{
	for (int at = 0; at < LISTS; at++)
		for (int rank = 0; rank < play->n; rank++)
			tti_compiled_release(&play->list[at].part[rank].compiled);
	device_bed_release(&play->bed);
}

static bool is_right(const struct play *play, const struct message *message)
{
	const uint8_t *const sent = device_view(&play->bed, message->memory[0]);
	const uint8_t *const got = device_view(&play->bed, message->memory[1]);

	return memcmp(got, message->first[0], message->nbytes) == 0 &&
	       memcmp(sent, message->first[message->swaps], message->nbytes) == 0;
}

static void swaps_come_out_right(void **state)
{
	static struct play play;
	const char *asked = getenv("TEST_CASES");
	const uint64_t plays = asked ? strtoull(asked, NULL, 10) : SANITIZED ? 60 : 200;

	(void)state;
	for (uint64_t seed = 1; seed <= plays; seed++) {
		uint64_t nbytes = 0;
		bool right;

		set_up(&play, seed);
		right = device_run(&play.bed, play.call, LISTS) == DEVICE_DONE;
		for (int at = 0; at < LISTS; at++)
			nbytes += play.list[at].nbytes;
		right &= play.bed.traffic.read == nbytes && play.bed.traffic.written == nbytes;
		for (int at = 0; at < LISTS && right; at++)
			for (int i = 0; i < play.list[at].nmessages; i++)
				right &= is_right(&play, &play.list[at].message[i]);
		if (!right || !device_bed_is_clean(&play.bed)) {
			device_bed_print(&play.bed, stderr);
			fail_msg("seed %d", (int)seed);
		}
		tear_down(&play);
	}
}

/* -- What has come before a rank looks ------------------------------------------------------- */

static struct device_bed *early_bed;

static uint64_t nfull(const struct device_bed *bed, uint32_t block)
{
	const struct tti_dev_lane *lane =
		(const struct tti_dev_lane *)device_view(bed, bed->lanes[0]) + 4 * block + 2 * 1;

	return __atomic_load_n((uint64_t *)device_view(bed, lane->full), __ATOMIC_RELAXED);
}

/* Rank 0 begins when all messages to it are there. */
static tutti_status run_after_messages(const struct tti_dev_launch *launch,
				       const struct tti_dev_host *host)
{
	const int64_t until = tti_now_ns() + 60000 * TTI_NS_PER_MS;

	for (uint32_t block = 0; launch->call[0].control == early_bed->control[0] &&
				 block < launch->nblocks && tti_now_ns() < until;)
		block += nfull(early_bed, block) > 0;
	return tti_dev_host_run(launch, host);
}

/* The first look of a block at its queues finds a message that must not be taken yet, as it goes to where
 * another queue still sends from. */
static void what_has_come_already_waits_for_the_send(void **state)
{
	static struct play play;
	const struct device_config config = { .n = 2,
					      .nblocks = 3,
					      .nthreads = 4,
					      .nslots = 1,
					      .slot_bytes = PIECE,
					      .per_launch = 1,
					      .run = run_after_messages };

	(void)state;
	for (uint64_t seed = 1; seed <= 10; seed++) {
		struct list *list = &play.list[0];
		struct message *message = &list->message[0];

		play = (struct play){ .random = seed, .n = 2 };
		device_bed_init(&play.bed, &config);
		early_bed = &play.bed;
		do
			draw_message(&play, message);
		while (message->from != 0 || !message->swaps || message->nbytes < 3 * PIECE);
		add_message(list, message);
		for (int rank = 0; rank < 2; rank++)
			make_part(&play, &list->part[rank], rank, &play.call[rank]);
		assert_int_equal(device_run(&play.bed, play.call, 1), DEVICE_DONE);
		assert_true(is_right(&play, message));
		tear_down(&play);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_has_come_already_waits_for_the_send),
		cmocka_unit_test(swaps_come_out_right),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
