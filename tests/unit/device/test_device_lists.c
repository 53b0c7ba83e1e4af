/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists of sends and receives by device programs: ranks have their transfers in different orders, some
 * send on what they receive, and some copy what they have for themselves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coll/algorithms/send_recv.h"
#include "support/device_bed.h"
#include "support/reference.h"
#include "support/sanitizer.h"
#include "util/error.h"

#define RANKS     5
#define TRANSFERS 30
#define STEPS     (2 * TRANSFERS)
#define MOST      1500 /* bytes of a transfer */

/* Data goes from one rank to another, or, with via >= 0, through a third one. */
struct transfer {
	int from, to, via;
	size_t nbytes, slice;
	uint64_t tag;
	size_t at[RANKS]; /* where it lies in the input of the first, in the outputs of others */
};

struct rank {
	struct tti_transfer_step step[STEPS];
	struct tti_extent extent[STEPS];
	int32_t n, nchunks;
	int32_t chunk_of[TRANSFERS];
	size_t in_bytes, out_bytes;
	struct tti_compiled prog;
	uint64_t input, output;
};

struct play {
	int n, ntransfers;
	struct transfer transfer[TRANSFERS];
	struct rank rank[RANKS];
	struct device_bed bed;
	struct tti_dev_call call[RANKS];
	uint64_t random;
};

static size_t draw(struct play *play, size_t n)
{
	return next_random(&play->random) % n;
}

static void draw_transfers(struct play *play)
{
	for (int i = 0; i < play->ntransfers; i++) {
		struct transfer *t = &play->transfer[i];

		t->from = (int)draw(play, (size_t)play->n);
		t->to = (int)draw(play, (size_t)play->n);
		t->via = play->n > 2 && draw(play, 3) == 0 ? (int)draw(play, (size_t)play->n) : -1;
		if (t->from == t->to || t->via == t->from || t->via == t->to)
			t->via = -1;
		t->nbytes = draw(play, 4) ? draw(play, MOST) : draw(play, 3);
		t->slice = 1 + draw(play, draw(play, 3) ? 400 : 40);
		t->tag = next_random(&play->random);
	}
}

/* -- The list of a rank ---------------------------------------------------------------------- */

static void add(struct play *play, int at, int32_t transfer, enum tti_transfer_kind kind, int peer)
{
	struct rank *rank = &play->rank[at];
	struct transfer *t = &play->transfer[transfer];
	int32_t chunk = rank->chunk_of[transfer];

	if (chunk < 0) {
		chunk = rank->chunk_of[transfer] = rank->nchunks++;
		rank->extent[chunk] =
			(struct tti_extent){ .count = t->nbytes, .slice = t->slice, .tag = t->tag };
	}
	if (kind != TTI_TRANSFER_RECV && t->from == at) {
		rank->extent[chunk].first = t->at[at] = rank->in_bytes;
		rank->in_bytes += t->nbytes + draw(play, 20);
	}
	if (kind != TTI_TRANSFER_SEND) {
		rank->extent[chunk].to = rank->out_bytes;
		t->at[at] = kind == TTI_TRANSFER_COPY ? t->at[at] : rank->out_bytes;
		rank->out_bytes += t->nbytes + draw(play, 20);
	}
	rank->step[rank->n++] =
		(struct tti_transfer_step){ .kind = kind, .peer = peer, .chunk = chunk };
}

static void list_all(struct play *play)
{
	for (int at = 0; at < play->n; at++)
		for (int32_t i = 0; i < TRANSFERS; i++)
			play->rank[at].chunk_of[i] = -1;
	for (int32_t i = 0; i < play->ntransfers; i++) {
		const struct transfer *t = &play->transfer[i];

		if (t->from == t->to) {
			add(play, t->from, i, TTI_TRANSFER_COPY, t->from);
			continue;
		}
		add(play, t->from, i, TTI_TRANSFER_SEND, t->via < 0 ? t->to : t->via);
		if (t->via >= 0) {
			add(play, t->via, i, TTI_TRANSFER_RECV, t->from);
			add(play, t->via, i, TTI_TRANSFER_SEND, t->to);
		}
		add(play, t->to, i, TTI_TRANSFER_RECV, t->via < 0 ? t->from : t->via);
	}
}

/* Neighbours that are of different links and of different data may change places: one rank sends
 * first what another one receives last. */
static void disorder(struct play *play, struct rank *rank)
{
	for (int k = 0; k < 4 * rank->n; k++) {
		struct tti_transfer_step *step = &rank->step[draw(play, (size_t)rank->n)];
		const struct tti_transfer_step last = step[0];

		if (step + 1 == rank->step + rank->n || step[1].chunk == last.chunk ||
		    (step[1].kind == last.kind && step[1].peer == last.peer))
			continue;
		step[0] = step[1];
		step[1] = last;
	}
}

/* -- Running --------------------------------------------------------------------------------- */

static void compile(struct play *play, int at)
{
	struct rank *rank = &play->rank[at];
	struct tti_program prog;

	if (rank->n > 0)
		disorder(play, rank);
	assert_int_equal(tti_send_recv_program(rank->step, rank->n,
					       rank->nchunks ? rank->nchunks : 1, at, play->n,
					       &prog),
			 TUTTI_OK);
	assert_int_equal(tti_compile(&prog, &rank->prog), TUTTI_OK);
	tti_program_release(&prog);
}

static unsigned char byte_of(const struct play *play, int32_t transfer, size_t i)
{
	return (unsigned char)(play->transfer[transfer].tag * 31 + i * 7 + i / 256);
}

static void place(struct play *play, int at)
{
	struct rank *rank = &play->rank[at];
	struct device_work work = { .prog = &rank->prog, .type = TUTTI_UINT8, .slice_bytes = 1 };
	unsigned char *input;

	rank->input = device_alloc(&play->bed, rank->in_bytes + 1);
	rank->output = device_alloc(&play->bed, rank->out_bytes + 1);
	input = device_view(&play->bed, rank->input);
	for (int32_t i = 0; i < play->ntransfers; i++)
		for (size_t k = 0; play->transfer[i].from == at && k < play->transfer[i].nbytes;
		     k++)
			input[play->transfer[i].at[at] + k] = byte_of(play, i, k);
	work.layout = (struct tti_layout){ .extents = rank->extent,
					   .by_chunk = true,
					   .input = (const void *)(uintptr_t)rank->input,
					   .output = (void *)(uintptr_t)rank->output,
					   .type_size = 1,
					   .parts = 1,
					   .chunk_count = MOST,
					   .row_count = MOST };
	device_call_make(&play->bed, at, &work, &play->call[at]);
}

/* What a rank has received, and that nothing else was written. */
static size_t count_wrong(struct play *play, int at)
{
	const struct rank *rank = &play->rank[at];
	const unsigned char *output = device_view(&play->bed, rank->output);
	unsigned char *want = calloc(1, rank->out_bytes + 1);
	size_t wrong = 0;

	assert_non_null(want);
	for (int32_t i = 0; i < play->ntransfers; i++) {
		const struct transfer *t = &play->transfer[i];

		for (size_t k = 0; (t->to == at || t->via == at) && k < t->nbytes; k++)
			want[rank->extent[rank->chunk_of[i]].to + k] = byte_of(play, i, k);
	}
	for (size_t i = 0; i <= rank->out_bytes; i++)
		wrong += output[i] != want[i];
	free(want);
	return wrong;
}

/* A hop reads each byte once at the sender and once at the receiver, and writes it as often; what a rank
 * has for itself it reads and writes once. */
static uint64_t bytes_moved(const struct play *play)
{
	uint64_t nbytes = 0;

	for (int32_t i = 0; i < play->ntransfers; i++) {
		const struct transfer *t = &play->transfer[i];

		nbytes += t->nbytes * (t->from == t->to ? 1 : t->via < 0 ? 2 : 4);
	}
	return nbytes;
}

static void draw_bed(struct play *play, struct device_config *out)
{
	static const uint32_t slots[] = { 1, 2, 8 };

	*out = (struct device_config){ .n = play->n };
	out->nblocks = 1 + (uint32_t)draw(play, 3);
	out->nthreads = 1 + 3 * (uint32_t)draw(play, 2);
	out->nslots = slots[draw(play, 3)];
	out->words = draw(play, 2);
	out->is_guarded = draw(play, 2);
	out->in_turns = draw(play, 4) > 0;
	out->slot_bytes = device_slot_bytes(400, 1, out->nblocks);
}

static void try(uint64_t seed)
{
	struct play *play = calloc(1, sizeof(*play));
	struct device_config config;
	enum device_end end;
	size_t wrong = 0;

	assert_non_null(play);
	play->random = seed;
	play->n = 1 + (int)draw(play, RANKS);
	play->ntransfers = (int)draw(play, TRANSFERS + 1);
	draw_transfers(play);
	list_all(play);
	draw_bed(play, &config);
	device_bed_init(&play->bed, &config);
	for (int at = 0; at < play->n; at++)
		compile(play, at);
	for (int at = 0; at < play->n; at++)
		place(play, at);
	end = device_run(&play->bed, play->call, 1);
	for (int at = 0; at < play->n && end == DEVICE_DONE; at++)
		wrong += count_wrong(play, at);
	if (end != DEVICE_DONE || wrong > 0 || !device_bed_is_clean(&play->bed)) {
		fprintf(stderr, "seed %d, %d transfers of %d ranks: end %d, %zu bytes are wrong\n",
			(int)seed, play->ntransfers, play->n, end, wrong);
		device_bed_print(&play->bed, stderr);
		fail();
	}
	assert_int_equal(play->bed.traffic.read, bytes_moved(play));
	assert_int_equal(play->bed.traffic.written, bytes_moved(play));
	for (int at = 0; at < play->n; at++)
		tti_compiled_release(&play->rank[at].prog);
	device_bed_release(&play->bed);
	free(play);
}

static void all_transfers_arrive(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= (SANITIZED ? 60 : 200); seed++)
		try(seed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_transfers_arrive),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
