/* SPDX-License-Identifier: BSD-3-Clause */
/* What the calls of a trial are: drawn, laid out, and what comes out of them. */
#include <stdlib.h>
#include <string.h>

#include "support/reference.h"
#include "support/trial.h"

#define GUARD      48
#define GUARD_BYTE 0x5a
/* An output before it is written. */
#define EMPTY_BYTE 0xee
/* Of a call, at most. */
#define BLOCKS     40

static uint64_t draw(uint64_t *random, uint64_t n)
{
	return next_random(random) % n;
}

static bool has_input(const struct trial *trial, int rank)
{
	const tutti_collective coll = trial->config.algo->coll;

	return (coll != TUTTI_BROADCAST && coll != TUTTI_SCATTER) || rank == trial->config.root;
}

static bool has_output(const struct trial *trial, int rank)
{
	const tutti_collective coll = trial->config.algo->coll;

	return (coll != TUTTI_REDUCE && coll != TUTTI_GATHER) || rank == trial->config.root;
}

/* -- What a call is ---------------------------------------------------------------------------- */

/* An operator that the algorithm is made for: one whose result does not depend on the order, or
 * that asks for the order which the algorithm keeps. */
static int draw_op(const struct trial_config *config, tutti_type type, uint64_t *random)
{
	const struct tti_algorithm *algo = config->algo;
	static const int others[] = { TUTTI_AVG, NUMBERS_PREMUL, NUMBERS_PREMUL, NUMBERS_XOR,
				      NUMBERS_XOR };
	/* A memory program reads inputs where they are, so it multiplies none. */
	const bool is_plain = algo->needs_memory && draw(random, 3);
	uint64_t op;

	if (config->has_any_bits) {
		op = draw(random, TUTTI_OP_COUNT + !algo->needs_memory);
		return op == TUTTI_OP_COUNT ? NUMBERS_PREMUL : numbers_op_for(type, (int)op);
	}
	if (!is_plain && algo->order != TTI_ORDER_ANY &&
	    (algo->needs_memory || draw(random, 3) == 0))
		return NUMBERS_FOLD;
	if (!is_plain && algo->order == TTI_ORDER_ONE_PASS && draw(random, 4) == 0)
		return NUMBERS_REPRODUCIBLE;
	op = draw(random, TUTTI_OP_COUNT + (is_plain ? 0 : sizeof(others) / sizeof(others[0])));
	return numbers_op_for(type, op < TUTTI_OP_COUNT ? (int)op : others[op - TUTTI_OP_COUNT]);
}

static int nops_of(tutti_type type)
{
	int n = 1; /* the pre-multiplied sum */

	for (int op = 0; op < TUTTI_OP_COUNT; op++)
		n += tutti_op_takes((tutti_op)op, type);
	return n;
}

int trial_pair(int index, tutti_type *type, int *op)
{
	int all = 0;

	for (int i = 0; i < TUTTI_TYPE_COUNT; i++)
		all += nops_of((tutti_type)i);
	index %= all;
	for (*type = (tutti_type)0; index >= nops_of(*type); *type = (tutti_type)(*type + 1))
		index -= nops_of(*type);
	for (*op = 0; *op < TUTTI_OP_COUNT; ++*op)
		if (tutti_op_takes((tutti_op)*op, *type) && index-- == 0)
			return all;
	*op = NUMBERS_PREMUL;
	return all;
}

static void give_pair(const struct trial *trial, struct trial_call *call)
{
	const struct tti_algorithm *algo = trial->config.algo;

	const int pair = trial->config.pair + (int)(call - trial->call);

	if (trial->config.pair == 0)
		return;
	trial_pair(pair, &call->type, &call->op);
	if (!tti_collective_reduces(algo->coll))
		call->type = (tutti_type)(pair % TUTTI_TYPE_COUNT);
	if (!tti_collective_reduces(algo->coll) ||
	    (algo->needs_memory && call->op == NUMBERS_PREMUL))
		call->op = TUTTI_SUM;
}

/* From nothing to `most` blocks; of long ones fewer. */
static size_t draw_count(size_t slice, size_t most, uint64_t *random)
{
	if (slice >= 2048 && most < BLOCKS)
		return draw(random, 300);
	if (slice >= 2048)
		return draw(random, draw(random, 6) ? 300 : slice + slice / 3);
	switch (draw(random, 6)) {
	case 0:
		return draw(random, 3);
	case 1:
		return 1 + draw(random, slice);
	case 2:
		return slice * (1 + draw(random, most < 6 ? most : 6));
	default:
		return draw(random, slice * (1 + draw(random, most)) + 1);
	}
}

/* Memory programs have blocks of their own choice. */
static size_t block_of_memory(const struct trial *trial)
{
	const struct tti_memory_call call = {
		.coll = trial->config.algo->coll,
		.send = { .name = { .reach = trial->bed.config.mock.memory & 3 } },
	};

	return tti_memory_block_bytes(&trial->bed.engine[0], &call);
}

static void draw_rows(const struct trial *trial, struct trial_call *call, uint64_t *random)
{
	size_t at = draw(random, 3);

	for (int rank = 0; rank < trial->config.n; rank++) {
		call->counts[rank] = draw(random, 3) ? draw(random, call->count + 1) : 0;
		call->firsts[rank] = at;
		at += call->counts[rank] + draw(random, 3);
	}
}

static void draw_call(const struct trial *trial, struct trial_call *call, uint64_t *random)
{
	const tutti_collective coll = trial->config.algo->coll;
	const size_t slot_bytes = trial->bed.config.mock.slot_bytes;
	const size_t rows = coll == TUTTI_ALL_TO_ALL
				    ? (size_t)trial->config.n * (size_t)trial->config.n
			    : tti_collective_is_by_rank(coll) ? (size_t)trial->config.n
							      : 1;
	const size_t parts = (size_t)trial->nchunks / rows;
	size_t size;

	call->type = (tutti_type)draw(random, TUTTI_TYPE_COUNT);
	call->op = tti_collective_reduces(coll) ? draw_op(&trial->config, call->type, random)
						: TUTTI_SUM;
	give_pair(trial, call);
	size = tutti_type_size(call->type);
	call->slice_bytes = draw(random, 3) ? size * (1 + draw(random, 32)) : slot_bytes;
	if (call->slice_bytes > slot_bytes)
		call->slice_bytes = slot_bytes / size * size;
	if (trial->config.algo->needs_memory)
		call->slice_bytes = block_of_memory(trial);
	call->count =
		coll == TUTTI_BARRIER
			? 0
			: draw_count(call->slice_bytes / size * parts,
				     trial->config.most_blocks ? trial->config.most_blocks : BLOCKS,
				     random);
	if (coll == TUTTI_ALL_TO_ALL)
		call->count /= (size_t)trial->config.n;
	call->chunk_count =
		(call->count + parts - 1) / parts + (draw(random, 3) ? 0 : draw(random, 9));
	call->stride = call->count + draw(random, 4);
	call->tag = next_random(random);
	call->is_uneven =
		(coll == TUTTI_ALL_GATHER || coll == TUTTI_REDUCE_SCATTER) && draw(random, 3) == 0;
	call->shift = draw(random, 5);
	if (call->is_uneven)
		draw_rows(trial, call, random);
}

/* -- Where it lies ------------------------------------------------------------------------------- */

/* Chunks of rows that differ in length: all take as many blocks as the longest. */
static void make_extents(const struct trial *trial, struct trial_call *call, uint64_t *random)
{
	const size_t parts = (size_t)(trial->nchunks / trial->config.n);
	const size_t size = tutti_type_size(call->type);
	size_t longest = 0, nblocks, slice;

	call->extents = calloc((size_t)trial->nchunks, sizeof(*call->extents));
	for (int rank = 0; rank < trial->config.n; rank++) {
		const size_t piece = (call->counts[rank] + parts - 1) / parts;

		for (size_t part = 0; part < parts; part++) {
			const size_t begin = part * piece < call->counts[rank] ? part * piece
									       : call->counts[rank];
			const size_t left = call->counts[rank] - begin;
			struct tti_extent *extent = &call->extents[(size_t)rank * parts + part];

			extent->first = call->firsts[rank] + begin;
			extent->to = extent->first + call->shift;
			extent->count = left < piece ? left : piece;
			longest = extent->count > longest ? extent->count : longest;
		}
	}
	slice = call->slice_bytes / size;
	if (slice > longest && longest > 0)
		slice = longest;
	nblocks = longest ? (longest + slice - 1) / slice : 1;
	for (int chunk = 0; chunk < trial->nchunks; chunk++) {
		struct tti_extent *extent = &call->extents[chunk];
		const size_t least = (extent->count + nblocks - 1) / nblocks;

		extent->slice = least + draw(random, slice - least + 1);
	}
	call->chunk_count = longest;
}

/* The parts of a rank's memory, in bytes: each from its first byte, and how long it is. */
struct parts {
	size_t in, in_bytes, out, out_bytes;
	size_t own; /* where the rank's own row begins in a buffer of all rows */
};

static struct parts place(const struct trial *trial, const struct trial_call *call, int rank)
{
	const tutti_collective coll = trial->config.algo->coll;
	const size_t n = (size_t)trial->config.n, size = tutti_type_size(call->type);
	const bool sends = tti_collective_sends_rows(coll), gets = tti_collective_gets_rows(coll);
	const size_t last = n - 1;
	const size_t all = size * (call->is_uneven ? call->firsts[last] + call->counts[last]
						   : last * call->stride + call->count);
	const size_t one = size * (call->is_uneven ? call->counts[rank] : call->count);
	struct parts parts = {
		.in = GUARD,
		.in_bytes = has_input(trial, rank) ? (sends ? all : one) : 0,
		.out_bytes = has_output(trial, rank) ? (gets ? all : one) : 0,
		.own = size * (call->is_uneven ? call->firsts[rank] : (size_t)rank * call->stride),
	};

	if (!has_input(trial, rank) || !has_output(trial, rank) || !trial->in_place[rank])
		parts.out = parts.in + parts.in_bytes + GUARD;
	else if (gets && !sends) {
		parts.out = parts.in;
		parts.in += parts.own;
	} else
		parts.out = parts.in + (sends && !gets ? parts.own : 0);
	return parts;
}

static void make_layout(const struct trial *trial, struct trial_call *call, int rank,
			const struct parts *parts)
{
	const tutti_collective coll = trial->config.algo->coll;
	const int n = trial->config.n;
	const size_t size = tutti_type_size(call->type), row = call->stride * size;
	const bool is_pairs = coll == TUTTI_ALL_TO_ALL, gets = tti_collective_gets_rows(coll);
	struct tti_layout *layout = &call->layout[rank];
	const uintptr_t base = (uintptr_t)call->memory[rank];

	*layout = (struct tti_layout){
		.input = has_input(trial, rank) ? (const void *)(base + parts->in) : NULL,
		.output = has_output(trial, rank) ? (void *)(base + parts->out) : NULL,
		.type_size = size,
		.parts = is_pairs                          ? trial->nchunks / n / n
			 : tti_collective_is_by_rank(coll) ? trial->nchunks / n
							   : trial->nchunks,
		.chunk_count = call->chunk_count,
		.row_count = call->count,
		.in_stride = tti_collective_sends_rows(coll) ? row : 0,
		.out_stride = gets ? row : 0,
		.paired = is_pairs ? (size_t)n : 0,
	};
	if (!call->is_uneven)
		return;
	/* The buffer of what is a rank's own alone is taken for its part of all. */
	layout->extents = call->extents;
	layout->parts = trial->nchunks;
	layout->in_stride = 0;
	layout->out_stride = 0;
	layout->input = (const void *)(base + parts->in - (gets ? parts->own : 0));
	layout->output = (void *)(base + parts->out - (gets ? 0 : parts->own) - call->shift * size);
}

/* -- What it holds --------------------------------------------------------------------------------- */

/* Elements [first, first + count) of a tile to a place in bytes. */
static void lay(const struct trial_call *call, char *memory, size_t at, const unsigned char *tile,
		size_t first, size_t count)
{
	numbers_lay(memory + at, tile, first, count, tutti_type_size(call->type));
}

/* One row of the inputs of a rank, and which row of the output it is to become: what every
 * collective does but for reducing. Element i of row d of a rank's input is element first + i of
 * its tile. */
static size_t first_of(const struct trial *trial, const struct trial_call *call, int row)
{
	if (!tti_collective_sends_rows(trial->config.algo->coll))
		return 0;
	return call->is_uneven ? call->firsts[row] : (size_t)row * call->count;
}

static size_t count_of(const struct trial_call *call, int row)
{
	return call->is_uneven ? call->counts[row] : call->count;
}

static void fill_input(const struct trial *trial, struct trial_call *call, int rank,
		       const struct parts *parts)
{
	const unsigned char *tile = call->numbers.tiles[rank];
	const size_t size = tutti_type_size(call->type);

	if (!has_input(trial, rank))
		return;
	if (!tti_collective_sends_rows(trial->config.algo->coll)) {
		lay(call, call->memory[rank], parts->in, tile, 0, count_of(call, rank));
		return;
	}
	for (int row = 0; row < trial->config.n; row++)
		lay(call, call->memory[rank],
		    parts->in + size * (call->is_uneven ? call->firsts[row]
							: (size_t)row * call->stride),
		    tile, first_of(trial, call, row), count_of(call, row));
}

/* In a ring, of the parts of the rank before this one the one with its number. */
static void fill_received(const struct trial *trial, struct trial_call *call, int rank,
			  const struct parts *parts)
{
	const int n = trial->config.n, from = (rank + n - 1) % n;
	const size_t first = (size_t)from * call->chunk_count;
	const size_t left = first < call->count ? call->count - first : 0;

	lay(call, call->want[rank], parts->out + first * tutti_type_size(call->type),
	    call->numbers.tiles[from], first, left < call->chunk_count ? left : call->chunk_count);
}

/* From the first half of the ranks to the last half, part by part. */
static void fill_handed(const struct trial *trial, struct trial_call *call, int rank,
			const struct parts *parts)
{
	const int n = trial->config.n, from = n > 1 ? rank - (n - n / 2) : rank;
	struct tti_program prog;

	if (tti_program_build(trial->config.algo,
			      &(struct tti_program_spec){ .rank = rank, .n = n },
			      &prog) != TUTTI_OK)
		abort();
	for (int chunk = 0; chunk < prog.nchunks; chunk++) {
		const size_t first = (size_t)chunk * call->chunk_count;
		const size_t left = first < call->count ? call->count - first : 0;

		if (tti_chunk_is_output(&prog, chunk))
			lay(call, call->want[rank],
			    parts->out + first * tutti_type_size(call->type),
			    call->numbers.tiles[from], first,
			    left < call->chunk_count ? left : call->chunk_count);
	}
	tti_program_release(&prog);
}

static void fill_output(const struct trial *trial, struct trial_call *call, int rank,
			const struct parts *parts)
{
	const tutti_collective coll = trial->config.algo->coll;
	const size_t size = tutti_type_size(call->type);
	char *want = call->want[rank];
	/* Which row of the inputs comes here. */
	const size_t first = first_of(trial, call, rank);

	if (!has_output(trial, rank))
		return;
	if (coll == TUTTI_SEND_RECV || coll == TUTTI_HANDOFF) {
		(coll == TUTTI_HANDOFF ? fill_handed : fill_received)(trial, call, rank, parts);
		return;
	}
	if (tti_collective_reduces(coll)) {
		call->unknown_at[rank] = parts->out;
		call->unknown[rank] = trial->config.has_any_bits ? size * count_of(call, rank) : 0;
		lay(call, want, parts->out, call->numbers.reduced, first, count_of(call, rank));
		return;
	}
	if (!tti_collective_gets_rows(coll)) {
		lay(call, want, parts->out, call->numbers.tiles[trial->config.root], first,
		    count_of(call, rank));
		return;
	}
	for (int row = 0; row < trial->config.n; row++)
		lay(call, want,
		    parts->out + size * (call->is_uneven ? call->firsts[row]
							 : (size_t)row * call->stride),
		    call->numbers.tiles[row], first, count_of(call, row));
}

static void make_reducer(const struct trial *trial, struct trial_call *call, int rank)
{
	const int n = trial->config.n;

	if (numbers_user_op(call->op)) {
		call->reducer[rank] = (struct tti_reducer){ .type = call->type,
							    .user = numbers_user_op(call->op) };
		return;
	}
	call->reducer[rank] = tti_reducer_of(
		call->type, call->op < TUTTI_OP_COUNT ? (tutti_op)call->op : TUTTI_SUM, n);
	if (call->op != NUMBERS_PREMUL)
		return;
	tti_scalars_fill(&call->scalars[rank], call->numbers.scalars[rank], call->type);
	call->reducer[rank].scalars = &call->scalars[rank];
}

static void make_buffers(const struct trial *trial, struct trial_call *call, int rank)
{
	const struct parts parts = place(trial, call, rank);
	const size_t in_end = parts.in + parts.in_bytes, out_end = parts.out + parts.out_bytes;

	call->nbytes[rank] = (in_end > out_end ? in_end : out_end) + GUARD;
	call->memory[rank] = malloc(call->nbytes[rank]);
	call->want[rank] = malloc(call->nbytes[rank]);
	memset(call->memory[rank], GUARD_BYTE, call->nbytes[rank]);
	memset(call->memory[rank] + parts.out, EMPTY_BYTE, parts.out_bytes);
	fill_input(trial, call, rank, &parts);
	call->before[rank] = malloc(call->nbytes[rank]);
	memcpy(call->before[rank], call->memory[rank], call->nbytes[rank]);
	memcpy(call->want[rank], call->memory[rank], call->nbytes[rank]);
	fill_output(trial, call, rank, &parts);
	call->send[rank] = (struct tti_memory_buffer){ .nbytes = parts.in_bytes };
	call->recv[rank] = (struct tti_memory_buffer){ .nbytes = parts.out_bytes };
	if (call->is_uneven) {
		const size_t size = tutti_type_size(call->type);

		call->recv[rank].before = call->shift * size;
		if (tti_collective_gets_rows(trial->config.algo->coll))
			call->send[rank].before = call->firsts[rank] * size;
		else
			call->recv[rank].before += call->firsts[rank] * size;
	}
	make_layout(trial, call, rank, &parts);
	make_reducer(trial, call, rank);
}

void trial_make_call(struct trial *trial, struct trial_call *call, uint64_t *random)
{
	draw_call(trial, call, random);
	if (call->is_uneven)
		make_extents(trial, call, random);
	(trial->config.has_any_bits ? numbers_draw_any : numbers_draw)(
		&call->numbers, call->type, call->op, trial->config.n, NUMBERS_PERIOD,
		next_random(random));
	if (tti_collective_reduces(trial->config.algo->coll) && !trial->config.has_any_bits)
		numbers_reduce(&call->numbers, call->type, call->op, trial->config.n,
			       NUMBERS_PERIOD);
	for (int rank = 0; rank < trial->config.n; rank++)
		make_buffers(trial, call, rank);
}
