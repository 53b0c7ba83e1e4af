/* SPDX-License-Identifier: BSD-3-Clause */
/* Groups of sends and receives over the mock transport: of any lengths, in any order of peers,
 * by messages and from where the data lies, into memory that is being sent; and what becomes of
 * one whose other side gives up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coll/algorithms/send_recv.h"
#include "support/bed.h"
#include "support/reference.h"
#include "support/sanitizer.h"
#include "util/error.h"

#define RANKS    5
#define MESSAGES 24
#define GROUPS   3
/* Of one rank: it may send and receive each. */
#define STEPS    (2 * MESSAGES)

/* From one rank to another. If they swap, there is another one back, into the memory that the
 * first was sent from; it comes from where the first is received, or, if it is lent, from other
 * memory, the third. */
struct message {
	int from, to;
	bool swaps, lent;
	size_t nbytes;
	uint64_t tag;
	uint8_t *memory[3], *first[3]; /* what it holds at first */
};

/* What a rank does in a group. */
struct part {
	int nsteps, nchunks;
	struct tti_transfer_step step[STEPS];
	struct tti_extent extent[STEPS];
	bool lends;
	struct tti_executable *bound;
};

struct group {
	int nmessages;
	struct message message[MESSAGES];
	struct part part[RANKS];
};

struct play {
	int n;
	struct group group[GROUPS];
	struct bed bed;
	uint64_t random;
	bool wrong;
};

static int draw(struct play *play, int n)
{
	return (int)(next_random(&play->random) % (uint64_t)n);
}

/* -- A group ---------------------------------------------------------------------------------- */

static void draw_message(struct play *play, struct message *message)
{
	const size_t slot = play->bed.config.mock.slot_bytes;

	*message = (struct message){ .from = draw(play, play->n),
				     .to = draw(play, play->n),
				     .tag = next_random(&play->random) };
	message->nbytes =
		draw(play, 4) ? (size_t)draw(play, (int)(5 * slot)) : (size_t)draw(play, 3);
	message->swaps = message->from != message->to && draw(play, 4) == 0;
	message->lent = message->nbytes > 0 && draw(play, 2);
	for (int side = 0; side < 3; side++) {
		message->memory[side] = malloc(message->nbytes + 1);
		message->first[side] = malloc(message->nbytes + 1);
		for (size_t i = 0; i <= message->nbytes; i++)
			message->first[side][i] = (uint8_t)next_random(&play->random);
		memcpy(message->memory[side], message->first[side], message->nbytes + 1);
	}
}

/* A step of a rank: one chunk, which is new or that of the send into whose memory it receives. */
static void add_step(struct play *play, struct part *part, int rank, int peer, bool is_send,
		     const struct message *message, const uint8_t *memory, bool lent, int chunk)
{
	struct tti_port *port = bed_port(&play->bed, rank, peer);

	part->step[part->nsteps++] = (struct tti_transfer_step){
		.kind = is_send ? TTI_TRANSFER_SEND : TTI_TRANSFER_RECV,
		.peer = peer,
		.chunk = chunk,
	};
	part->extent[chunk] = (struct tti_extent){
		.first = (uintptr_t)memory,
		.to = (uintptr_t)memory,
		.count = message->nbytes,
		.slice = tti_piece_bytes(&play->bed.engine[rank], peer, message->nbytes),
		.tag = message->tag,
	};
	if (lent && port->transport->memory)
		part->lends |= port->transport->memory->name(port, memory, message->nbytes,
							     &part->extent[chunk].rndv);
}

static void add_message(struct play *play, struct group *group, const struct message *message)
{
	struct part *from = &group->part[message->from], *to = &group->part[message->to];
	uint8_t *const *memory = message->memory;

	add_step(play, from, message->from, message->to, true, message, memory[0],
		 message->lent && !message->swaps, from->nchunks++);
	if (!message->swaps) {
		add_step(play, to, message->to, message->from, false, message, memory[1], false,
			 to->nchunks++);
		return;
	}
	add_step(play, from, message->from, message->to, false, message, memory[0], false,
		 from->nchunks - 1);
	add_step(play, to, message->to, message->from, true, message, memory[message->lent ? 2 : 1],
		 message->lent, to->nchunks++);
	if (message->lent)
		to->nchunks++;
	add_step(play, to, message->to, message->from, false, message, memory[1], false,
		 to->nchunks - 1);
}

/* Neighbours change places where the order of a link and of a chunk allows it. */
static void shuffle(struct play *play, struct part *part)
{
	for (int i = 0; i < 4 * part->nsteps; i++) {
		const int at = part->nsteps > 1 ? draw(play, part->nsteps - 1) : 0;
		const struct tti_transfer_step step = part->step[at];

		if (part->nsteps < 2 || step.chunk == part->step[at + 1].chunk ||
		    (step.peer == part->step[at + 1].peer && step.kind == part->step[at + 1].kind))
			continue;
		part->step[at] = part->step[at + 1];
		part->step[at + 1] = step;
	}
}

static void make_group(struct play *play, struct group *group)
{
	group->nmessages = 1 + draw(play, MESSAGES);
	for (int i = 0; i < group->nmessages; i++) {
		draw_message(play, &group->message[i]);
		add_message(play, group, &group->message[i]);
	}
	for (int rank = 0; rank < play->n; rank++) {
		struct part *part = &group->part[rank];
		struct tti_program prog;
		struct tti_compiled compiled;

		shuffle(play, part);
		assert_int_equal(tti_send_recv_program(part->step, part->nsteps,
						       part->nchunks ? part->nchunks : 1, rank,
						       play->n, &prog),
				 TUTTI_OK);
		if (tti_compile(&prog, &compiled) != TUTTI_OK)
			fail_msg("%s", tti_error_text());
		tti_program_release(&prog);
		assert_int_equal(
			tti_executable_create(&play->bed.engine[rank], &compiled, &part->bound),
			TUTTI_OK);
	}
}

static void start(void *self, struct bed *bed, int rank, int at)
{
	struct play *play = self;
	const struct part *part = &play->group[at].part[rank];
	const struct tti_reducer reducer = { 0 };
	struct tti_layout layout = { .by_chunk = true,
				     .extents = part->extent,
				     .has_rndv = part->lends,
				     .type_size = 1,
				     .parts = 1 };

	for (int chunk = 0; chunk < part->nchunks; chunk++)
		layout.row_count += part->extent[chunk].count;
	assert_int_equal(tti_job_program(&bed->job[rank], &bed->engine[rank], part->bound, &layout,
					 &reducer, 1, 0),
			 TUTTI_OK);
}

static void check_memory(struct play *play, const struct message *message, int side, int from)
{
	play->wrong |= memcmp(message->memory[side], message->first[from], message->nbytes) != 0;
	play->wrong |=
		message->memory[side][message->nbytes] != message->first[side][message->nbytes];
}

static void check_message(struct play *play, const struct message *message)
{
	check_memory(play, message, 0, !message->swaps ? 0 : message->lent ? 2 : 1);
	check_memory(play, message, 1, 0);
	check_memory(play, message, 2, 2);
}

/* -- Plays ----------------------------------------------------------------------------------- */

static void set_up(struct play *play, uint64_t seed)
{
	struct bed_config config;

	*play = (struct play){ .random = seed };
	play->n = 1 + draw(play, RANKS);
	bed_draw(&config, play->n, seed);
	bed_init(&play->bed, &config);
	for (int at = 0; at < GROUPS; at++)
		make_group(play, &play->group[at]);
}

static void tear_down(struct play *play)
{
	for (int at = 0; at < GROUPS; at++) {
		struct group *group = &play->group[at];

		for (int i = 0; i < group->nmessages; i++)
			for (int side = 0; side < 3; side++) {
				free(group->message[i].memory[side]);
				free(group->message[i].first[side]);
			}
		for (int rank = 0; rank < play->n; rank++)
			tti_executable_free(group->part[rank].bound);
	}
	bed_release(&play->bed);
}

static uint64_t reached(const struct play *play)
{
	uint64_t bytes = 0;

	for (int rank = 0; rank < play->n; rank++)
		bytes += mock_reached(play->bed.port[0].mock, rank);
	return bytes;
}

static void groups_come_out_right(void **state)
{
	static struct play play;
	const int plays = SANITIZED ? 200 : 700;
	uint64_t bytes = 0;

	(void)state;
	for (int seed = 1; seed <= plays; seed++) {
		const struct bed_work work = { .n = GROUPS, .start = start, .self = &play };
		enum bed_end end;

		set_up(&play, (uint64_t)seed);
		end = bed_run(&play.bed, &work);
		for (int at = 0; at < GROUPS; at++)
			for (int i = 0; i < play.group[at].nmessages; i++)
				check_message(&play, &play.group[at].message[i]);
		if (end != BED_DONE || play.wrong || !bed_is_clean(&play.bed)) {
			bed_print(&play.bed, stderr);
			fail_msg("seed %d: %s%s", seed,
				 end == BED_STUCK  ? "stuck"
				 : end != BED_DONE ? "failed"
				 : play.wrong      ? "wrong"
						   : "",
				 play.bed.breach);
		}
		bytes += reached(&play);
		tear_down(&play);
	}
	/* A good part of it was lent. */
	assert_true(bytes > (uint64_t)plays * 1000);
}

/* -- One message that does not come to its end -------------------------------------------------- */

#define LONG ((size_t)5 << 19)

static const struct mock_config lending = {
	.slot_bytes = 256, .slots = 2, .memory = TTI_REACH_MAPPED, .one_copy = true
};

/* A group of one message from rank 0 to rank 1. */
static void set_up_one(struct play *play, const struct mock_config *mock, size_t nbytes, bool lent)
{
	const struct bed_config config = { .n = 2, .mock = *mock, .seed = 1 };
	struct message *message = &play->group[0].message[0];

	*play = (struct play){ .n = 2, .random = 1 };
	bed_init(&play->bed, &config);
	play->group[0].nmessages = 1;
	*message = (struct message){ .to = 1, .lent = lent, .nbytes = nbytes, .tag = 9 };
	for (int side = 0; side < 3; side++) {
		message->memory[side] = malloc(nbytes + 1);
		message->first[side] = calloc(1, nbytes + 1);
		memset(message->memory[side], 3 + side, nbytes + 1);
	}
	add_message(play, &play->group[0], message);
	for (int rank = 0; rank < 2; rank++) {
		struct part *part = &play->group[0].part[rank];
		struct tti_program prog;
		struct tti_compiled compiled;

		assert_int_equal(tti_send_recv_program(part->step, 1, 1, rank, 2, &prog), TUTTI_OK);
		assert_int_equal(tti_compile(&prog, &compiled), TUTTI_OK);
		tti_program_release(&prog);
		assert_int_equal(
			tti_executable_create(&play->bed.engine[rank], &compiled, &part->bound),
			TUTTI_OK);
		start(play, &play->bed, rank, 0);
	}
}

/* The sender has named its data and is stopped: before the receiver has begun, when it is in the
 * middle, and when it has it all. */
static void a_sender_that_gives_up_is_noticed(void **state)
{
	static struct play play;

	(void)state;
	for (int polls = 0; polls < 5; polls++) {
		struct tti_job *sender = &play.bed.job[0], *receiver = &play.bed.job[1];

		set_up_one(&play, &lending, LONG, true);
		tti_job_poll(sender);
		assert_int_equal(bed_sent(&play.bed, 0, 1), 1);
		for (int i = 0; i < polls; i++)
			tti_job_poll(receiver);
		atomic_store(&play.bed.stop, 1);
		/* It may still find that all was taken. */
		assert_int_equal(tti_job_wait(&sender, 1),
				 receiver->status == TUTTI_OK ? TUTTI_OK : TUTTI_EABORTED);
		memset(play.group[0].message[0].memory[0], 0, LONG);
		for (int i = 0; i < 10 && receiver->status == TUTTI_AGAIN; i++)
			tti_job_poll(receiver);
		assert_int_equal(receiver->status,
				 sender->status == TUTTI_OK ? TUTTI_OK : TUTTI_EPEER);
		assert_true(receiver->status != TUTTI_OK ||
			    play.group[0].message[0].memory[1][LONG - 1] == 3);
		tear_down(&play);
	}
}

static void memory_that_is_not_reached_ends_the_receive(void **state)
{
	static struct play play;
	struct mock_config mock = lending;

	(void)state;
	for (int copied = 0; copied < 2; copied++)
		for (int polls = 0; polls < 2; polls++) {
			mock.memory = copied ? TTI_REACH_COPIED : TTI_REACH_MAPPED;
			set_up_one(&play, &mock, LONG, true);
			for (int i = 0; i < polls; i++) {
				tti_job_poll(&play.bed.job[0]);
				tti_job_poll(&play.bed.job[1]);
			}
			mock_break_memory(play.bed.port[0].mock, 1, TUTTI_ESYS);
			for (int i = 0; i < 10; i++) {
				tti_job_poll(&play.bed.job[0]);
				if (play.bed.job[1].status == TUTTI_AGAIN)
					tti_job_poll(&play.bed.job[1]);
			}
			if (copied || !polls) {
				assert_int_equal(play.bed.job[1].status, TUTTI_ESYS);
				assert_int_equal(play.bed.job[0].status, TUTTI_AGAIN);
			} else {
				assert_int_equal(play.bed.job[1].status, TUTTI_OK);
			}
			tear_down(&play);
		}
}

/* Of both sides each has the length of its own call. */
static void another_length_is_found(void **state)
{
	static const size_t lengths[] = { 0, 1, 100, 257, 1000 };
	static struct play play;

	(void)state;
	for (int lent = 0; lent < 2; lent++)
		for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
			struct part *part = &play.group[0].part[1];

			set_up_one(&play, &lending, 300, lent);
			part->extent[0].count = lengths[i];
			part->extent[0].slice = tti_piece_bytes(&play.bed.engine[1], 0, lengths[i]);
			if (lent) /* which is told by the tag alone */
				part->extent[0].tag++;
			start(&play, &play.bed, 1, 0);
			for (int poll = 0; poll < 20; poll++)
				for (int rank = 0; rank < 2; rank++)
					if (play.bed.job[rank].status == TUTTI_AGAIN)
						tti_job_poll(&play.bed.job[rank]);

			assert_int_equal(play.bed.job[1].status, TUTTI_EMISMATCH);
			assert_int_equal(play.bed.job[1].mismatch_peer, 0);
			tear_down(&play);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(groups_come_out_right),
		cmocka_unit_test(a_sender_that_gives_up_is_noticed),
		cmocka_unit_test(memory_that_is_not_reached_ends_the_receive),
		cmocka_unit_test(another_length_is_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
