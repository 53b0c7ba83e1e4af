/* SPDX-License-Identifier: BSD-3-Clause */
/* Passes of blocks, as threads run them, against the reductions of hosts: the same bits. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "device/env.h"
#include "device/host_run.h"
#include "reduce/reducer.h"
#include "support/reference.h"
#include "support/sanitizer.h"

#define SOURCES 9
#define MOST    331 /* elements */
#define ROOM    (MOST * 16 + 64)
#define GUARD   0xa5
#define DIVISOR 7
#define HEAD    32 /* bytes of words before those with data */

/* What the operands of a pass are. */
enum layout {
	ALIGNED,    /* memory at multiples of 16 bytes */
	BY_ELEMENT, /* of elements, and of 8 bytes at most */
	ANYWHERE,
	WORDS,
	MIXED, /* words and memory */
	LAYOUTS,
};

struct trial {
	tutti_type type;
	tutti_op op;
	int nsrc, ndst;
	size_t count;
	int divisor, input_at;
	uint32_t nthreads;
	enum layout layout;
};

/* A block whose threads run one after the other, as no pass has a barrier in it. */
static struct tti_dev_control control;
static struct tti_dev_state state;
static struct tti_dev_shared shared = { .control = &control, .state = &state };

static _Alignas(16) unsigned char source[SOURCES][ROOM];
static _Alignas(16) unsigned char result[2][ROOM], expected[ROOM];
static _Alignas(16) uint64_t words[SOURCES + 2][ROOM / 4 + HEAD / 8];
static uint64_t seed;

static uint64_t draw_part(const struct format *f)
{
	const uint64_t random = next_random(&seed);

	if (random % 3 == 0)
		return random >> (64 - 8 * f->bytes);
	return f->mbits == 0 ? special_int(f, random) : special_code(f, random);
}

static void fill(tutti_type type, unsigned char *to, size_t count)
{
	const struct format *f = &formats[type];

	for (size_t i = 0; i < count; i++) {
		const uint64_t first = draw_part(f->part ? f->part : f);
		const code_t code = f->part ? code_join(f, first, draw_part(f->part)) : first;

		code_put(to + i * (size_t)f->bytes, f->bytes, code);
	}
}

static size_t offset_of(const struct trial *trial, int operand)
{
	const size_t size = tutti_type_size(trial->type), step = size < 8 ? size : 8;

	if (trial->layout == BY_ELEMENT)
		return step * (1 + (size_t)operand % 3);
	return trial->layout == ANYWHERE ? 1 + (size_t)operand * 5 % 13 : 0;
}

static bool is_words(const struct trial *trial, int operand)
{
	return trial->layout == WORDS || (trial->layout == MIXED && operand % 2 == 0);
}

/* The message of `operand`, complete or not. */
static void send(int operand, uint32_t flag, const unsigned char *data, size_t nbytes)
{
	for (size_t i = 0; i < (nbytes + 15) / 16 * 4; i++) {
		uint32_t part = 0;

		if (i * 4 < nbytes)
			memcpy(&part, data + i * 4, nbytes - i * 4 < 4 ? nbytes - i * 4 : 4);
		words[operand][HEAD / 8 + i] = part | (uint64_t)flag << 32;
	}
}

static void set_up_source(const struct trial *trial, int s, struct tti_dev_end *end)
{
	const size_t offset = offset_of(trial, s);

	memmove(source[s] + offset, source[s], ROOM - offset);
	*end = (struct tti_dev_end){ .at = source[s] + offset, .peer = -1 };
	if (is_words(trial, s)) {
		end->at = words[s];
		end->peer = s;
		end->flag = 77 + (uint32_t)s;
		send(s, end->flag, source[s], trial->count * tutti_type_size(trial->type));
	}
}

static void set_up_result(const struct trial *trial, int d, struct tti_dev_end *end)
{
	memset(result[d], GUARD, ROOM);
	memset(words[SOURCES + d], GUARD, sizeof(words[0]));
	*end = (struct tti_dev_end){ .at = result[d] + offset_of(trial, SOURCES + d), .peer = -1 };
	if (is_words(trial, d)) {
		end->at = words[SOURCES + d];
		end->peer = d;
		end->flag = 1234;
	}
}

/* As tti_reducer_run() has it, with the scalar kernels or with the best. */
static void expect(const struct trial *trial, const struct tti_dev_end *src, const uint64_t *scalar,
		   bool best)
{
	struct tti_reducer reducer = tti_reducer_of(trial->type, trial->op, trial->divisor);
	static struct tti_scalars scalars;
	const void *from[SOURCES];

	for (int s = 0; s < trial->nsrc; s++)
		from[s] = is_words(trial, s) ? source[s] : src[s].at;
	if (!best)
		reducer.fn = tti_reduce_get_isa(trial->type, trial->op, TTI_ISA_SCALAR);
	if (trial->input_at >= 0) {
		tti_scalars_fill(&scalars, scalar, trial->type);
		reducer.scalars = &scalars;
	}
	memset(expected, 0, sizeof(expected));
	tti_reducer_run(&reducer, expected, NULL, from, trial->nsrc, trial->input_at, trial->count,
			trial->divisor > 0);
}

static void run(const struct trial *trial, const struct tti_dev_end *src,
		const struct tti_dev_end *dst, const uint64_t *scalar)
{
	const struct tti_dev_pass pass = {
		.src = src,
		.dst = dst,
		.count = trial->count,
		.scalar = scalar,
		.nsrc = trial->nsrc,
		.ndst = trial->ndst,
		.input_at = trial->input_at,
		.type = (int32_t)trial->type,
		.op = (int32_t)trial->op,
		.type_size = (int32_t)tutti_type_size(trial->type),
		.divisor = trial->divisor,
		.words = trial->layout >= WORDS,
	};

	for (uint32_t tid = 0; tid < trial->nthreads; tid++) {
		struct tti_dev_env env = {
			.world = { .tid = tid, .nthreads = trial->nthreads },
			.shared = &shared,
		};

		tti_dev_reduce(&env, &pass);
		assert_int_equal(env.gave_up, 0);
	}
}

static void fail_trial(const struct trial *trial, const char *what, size_t at)
{
	fail_msg("%s %s of %d (scaled: %d, divisor %d), %zu elements, %u threads, layout %d: %s "
		 "at byte %zu",
		 tutti_type_name(trial->type), tutti_op_name(trial->op), trial->nsrc,
		 trial->input_at, trial->divisor, trial->count, trial->nthreads, (int)trial->layout,
		 what, at);
}

static void check_memory(const struct trial *trial, int d)
{
	const size_t offset = offset_of(trial, SOURCES + d);
	const size_t nbytes = trial->count * tutti_type_size(trial->type);

	for (size_t i = 0; i < nbytes; i++)
		if (result[d][offset + i] != expected[i])
			fail_trial(trial, "other bits", i);
	for (size_t i = 0; i < ROOM; i++)
		if ((i < offset || i >= offset + nbytes) && result[d][i] != GUARD)
			fail_trial(trial, "written", i);
}

static void check_words(const struct trial *trial, int d)
{
	const size_t nbytes = trial->count * tutti_type_size(trial->type);
	const unsigned char *const all = (const unsigned char *)words[SOURCES + d];

	for (size_t i = 0; i < nbytes; i++)
		if (all[HEAD + i / 4 * 8 + i % 4] != expected[i])
			fail_trial(trial, "other bits", i);
	for (size_t i = 0; i < (nbytes + 15) / 16 * 4; i++)
		if (words[SOURCES + d][HEAD / 8 + i] >> 32 != 1234)
			fail_trial(trial, "another flag", i * 4);
	for (size_t i = 0; i < sizeof(words[0]); i++)
		if ((i < HEAD || i >= HEAD + (nbytes + 15) / 16 * 32) && all[i] != GUARD)
			fail_trial(trial, "written", i);
}

static void try(const struct trial *trial)
{
	struct tti_dev_end src[SOURCES], dst[2];
	uint64_t scalar[2];

	for (int s = 0; s < trial->nsrc; s++) {
		fill(trial->type, source[s], trial->count);
		set_up_source(trial, s, &src[s]);
	}
	fill(trial->type, (unsigned char *)scalar, 1);
	for (int d = 0; d < trial->ndst; d++)
		set_up_result(trial, d, &dst[d]);
	run(trial, src, dst, scalar);
	for (int best = 0; best < 2; best++) {
		expect(trial, src, scalar, best > 0);
		for (int d = 0; d < trial->ndst; d++)
			if (is_words(trial, d))
				check_words(trial, d);
			else
				check_memory(trial, d);
	}
}

/* One source divided by the number of ranks is not a pass of a program: there are others then. */
static void try_counts(struct trial trial)
{
	static const size_t counts[] = { 0, 1, 2, 3, 17, 64, 127, MOST };

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		trial.count = counts[i];
		trial.ndst = 1 + (int)i % 2;
		for (int threads = 1; threads <= 4; threads += 3) {
			trial.nthreads = (uint32_t)threads;
			try(&trial);
		}
	}
}

static void try_pair(tutti_type type, tutti_op op)
{
	struct trial trial = { .type = type, .op = op, .input_at = -1 };

	for (int layout = 0; layout < LAYOUTS; layout++)
		for (trial.nsrc = 1; trial.nsrc <= SOURCES; trial.nsrc += SANITIZED ? 8 : 1) {
			trial.layout = (enum layout)layout;
			trial.divisor = 0;
			trial.input_at = -1;
			try_counts(trial);
			if (op == TUTTI_SUM) {
				trial.input_at = trial.nsrc * 7 % trial.nsrc;
				try_counts(trial);
				trial.input_at = trial.nsrc - 1;
				try_counts(trial);
			} else if (op == TUTTI_AVG) {
				trial.divisor = DIVISOR;
				try_counts(trial);
			}
		}
}

static void every_type_and_operator_has_the_bits_of_hosts(void **unused)
{
	(void)unused;
	for (int type = 0; type < TUTTI_TYPE_COUNT; type++)
		for (int op = 0; op < TUTTI_OP_COUNT; op++)
			if (tutti_op_takes((tutti_op)op, (tutti_type)type))
				try_pair((tutti_type)type, (tutti_op)op);
}

/* In place: the result lies where one of the sources is, wherever that is. */
static void a_result_may_replace_any_source(void **unused)
{
	struct trial trial = { .op = TUTTI_SUM, .ndst = 1, .count = MOST, .input_at = -1 };
	struct tti_dev_end src[SOURCES];
	uint64_t scalar[2] = { 0 };

	(void)unused;
	for (int at = 0; at < TUTTI_TYPE_COUNT * ANYWHERE * SOURCES; at++) {
		const int k = at % SOURCES;

		trial.type = (tutti_type)(at / SOURCES % TUTTI_TYPE_COUNT);
		trial.layout = (enum layout)(at / SOURCES / TUTTI_TYPE_COUNT);
		trial.nthreads = 1 + 3 * (uint32_t)(k & 1);
		trial.nsrc = SOURCES;
		for (int s = 0; s < SOURCES; s++) {
			fill(trial.type, source[s], MOST);
			set_up_source(&trial, s, &src[s]);
		}
		expect(&trial, src, scalar, true);
		run(&trial, src, &src[k], scalar);
		assert_memory_equal(src[k].at, expected, MOST * tutti_type_size(trial.type));
	}
}

/* A copy does not read numbers: any bits stay what they are, of calls that have no type, too. */
static void one_source_is_copied_bit_for_bit(void **unused)
{
	struct tti_dev_pass pass = { .nsrc = 1, .ndst = 1, .type = -1, .input_at = -1 };
	struct tti_dev_env env = { .world = { .nthreads = 1 }, .shared = &shared };

	(void)unused;
	for (size_t i = 0; i < ROOM; i++)
		source[0][i] = (unsigned char)next_random(&seed);
	pass.type_size = 1;
	for (size_t at = 0; at < 20 * 20; at++) {
		const struct tti_dev_end src = { .at = source[0] + at % 20, .peer = -1 };
		const struct tti_dev_end dst = { .at = result[0] + at / 20, .peer = -1 };

		for (pass.count = 0; pass.count < 300; pass.count += 1 + pass.count / 3) {
			pass.src = &src;
			pass.dst = &dst;
			memset(result[0], GUARD, ROOM);
			tti_dev_reduce(&env, &pass);
			assert_memory_equal(dst.at, src.at, pass.count);
			for (size_t i = 0; i < 400; i++)
				if (i < at / 20 || i >= at / 20 + pass.count)
					assert_int_equal(result[0][i], GUARD);
		}
	}
}

struct late {
	struct trial trial;
	struct tti_dev_end src[SOURCES], dst[2];
	uint64_t scalar[2];
	uint32_t nsent; /* words so far */
};

static void *run_late(void *arg)
{
	struct late *late = arg;

	run(&late->trial, late->src, late->dst, late->scalar);
	return NULL;
}

/* Words come one by one, from the last to the first: none is taken before it is there. */
static void words_are_waited_for(void **unused)
{
	struct late late = { .trial = { .type = TUTTI_FLOAT32,
					.op = TUTTI_SUM,
					.nsrc = SOURCES,
					.ndst = 1,
					.count = 61,
					.input_at = -1,
					.nthreads = 1,
					.layout = MIXED } };
	uint64_t sent[SOURCES][64];
	pthread_t thread;

	(void)unused;
	for (int s = 0; s < SOURCES; s++) {
		fill(TUTTI_FLOAT32, source[s], late.trial.count);
		set_up_source(&late.trial, s, &late.src[s]);
		memcpy(sent[s], &words[s][HEAD / 8], sizeof(sent[s]));
		if (is_words(&late.trial, s))
			memset(words[s], 0, sizeof(words[s]));
	}
	set_up_result(&late.trial, 0, &late.dst[0]);
	expect(&late.trial, late.src, late.scalar, true);
	assert_int_equal(pthread_create(&thread, NULL, run_late, &late), 0);
	for (int i = 63; i >= 0; i--)
		for (int s = 0; s < SOURCES; s += 2) {
			__atomic_store_n(&words[s][HEAD / 8 + i], sent[s][i], __ATOMIC_RELAXED);
			if (i % 16 == 0)
				tti_dev_relax(&(struct tti_dev_world){ 0 }, 32);
		}
	pthread_join(thread, NULL);
	check_words(&late.trial, 0);
}

/* The host stops the call while words are waited for. */
static void a_pass_ends_when_the_call_does(void **unused)
{
	const struct tti_dev_end src = { .at = words[0], .flag = 5, .peer = 3 };
	const struct tti_dev_end dst = { .at = result[0], .peer = -1 };
	const struct tti_dev_pass pass = { .src = &src,
					   .dst = &dst,
					   .count = 100,
					   .nsrc = 1,
					   .ndst = 1,
					   .input_at = -1,
					   .type = TUTTI_INT8,
					   .type_size = 1,
					   .words = 1 };
	struct tti_dev_env env = { .world = { .nthreads = 1 }, .shared = &shared };

	(void)unused;
	memset(words[0], 0, sizeof(words[0]));
	memset(result[0], GUARD, ROOM);
	control.stop = 1;
	tti_dev_reduce(&env, &pass);
	control.stop = 0;
	assert_int_equal(env.gave_up, 1);
	for (size_t i = 0; i < 100; i++)
		assert_int_equal(result[0][i], GUARD);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_type_and_operator_has_the_bits_of_hosts),
		cmocka_unit_test(a_result_may_replace_any_source),
		cmocka_unit_test(one_source_is_copied_bit_for_bit),
		cmocka_unit_test(words_are_waited_for),
		cmocka_unit_test(a_pass_ends_when_the_call_does),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
