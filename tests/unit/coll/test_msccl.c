/* SPDX-License-Identifier: BSD-3-Clause */
/* Files of MSCCL's format: what is right is read and proven, what is wrong is refused with
 * the line and the reason. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coll/check/check.h"
#include "coll/files/msccl.h"
#include "support/msccl.h"
#include "support/sanitizer.h"
#include "util/error.h"
#include "util/fault.h"
#include "util/mem.h"

static void release(struct tti_program *prog, int n)
{
	for (int rank = 0; rank < n; rank++)
		tti_program_release(&prog[rank]);
	tti_free(prog);
}

static tutti_status read_text(const char *text, struct tti_msccl_head *head,
			      struct tti_program **prog)
{
	return tti_msccl_read(text, strlen(text), "a.xml", head, prog);
}

static size_t count(const struct tti_program *prog, enum tti_step_kind kind)
{
	size_t n = 0;

	for (size_t i = 0; i < prog->steps.n; i++)
		n += prog->steps.at[i].kind == kind;
	return n;
}

/* -- Right ones -------------------------------------------------------------------- */

static void read_and_prove(const struct msccl_spec *spec)
{
	char *text = msccl_text(spec);
	struct tti_msccl_head head;
	struct tti_program *prog;

	if (read_text(text, &head, &prog) != TUTTI_OK)
		fail_msg("%s\nin %s", tti_error_text(), text);
	assert_int_equal(head.coll, spec->coll);
	assert_int_equal(head.n, spec->n);
	assert_int_equal(head.root, spec->root);
	for (int slots = 1; slots <= 2; slots++)
		if (tti_program_check(prog, spec->n, slots, TTI_ORDER_ANY) != TUTTI_OK)
			fail_msg("%s\nin %s", tti_error_text(), text);
	release(prog, spec->n);
	free(text);
}

static void every_algorithm_is_read_and_proven(void **state)
{
	static const int colls[] = { TUTTI_ALL_REDUCE, TUTTI_ALL_GATHER, TUTTI_REDUCE_SCATTER,
				     TUTTI_BROADCAST,  TUTTI_REDUCE,     TUTTI_ALL_TO_ALL };
	size_t found = 0;

	(void)state;
	for (int kind = 0; kind < MSCCL_KINDS; kind++)
		for (size_t c = 0; c < sizeof(colls) / sizeof(colls[0]); c++)
			for (int n = 1; n <= 12; n++)
				for (int flavour = 0; flavour < 8; flavour++) {
					const struct msccl_spec spec = {
						.kind = (enum msccl_kind)kind,
						.coll = (tutti_collective)colls[c],
						.n = n,
						.channels = 1 + (flavour & 3),
						.root = kind == MSCCL_CHAIN ? n / 2 : 0,
						.group = 2 + (flavour & 1),
						.in_place = flavour & 4,
					};

					if (!msccl_exists(&spec))
						continue;
					read_and_prove(&spec);
					found++;
				}
	assert_in_range(found, 500, 1000);
}

/* What comes into scratch is reduced as it comes, copies vanish: nothing moves that
 * would not have to. */
static void nothing_is_moved_twice(void **state)
{
	const struct msccl_spec spec = {
		.kind = MSCCL_ALL_PAIRS, .coll = TUTTI_ALL_REDUCE, .n = 6, .channels = 2
	};
	char *text = msccl_text(&spec);
	struct tti_msccl_head head;
	struct tti_program *prog;

	(void)state;
	assert_int_equal(read_text(text, &head, &prog), TUTTI_OK);
	for (int rank = 0; rank < spec.n; rank++) {
		assert_int_equal(count(&prog[rank], TTI_SEND), 2 * 5 * 2);
		assert_int_equal(count(&prog[rank], TTI_RECV_REDUCE), 5 * 2);
		assert_int_equal(count(&prog[rank], TTI_RECV), 5 * 2);
		assert_int_equal(count(&prog[rank], TTI_COPY), 0);
	}
	release(prog, spec.n);
	free(text);
}

static void head_says_what_the_file_says(void **state)
{
	struct msccl_spec spec = { .kind = MSCCL_RING,
				   .coll = TUTTI_ALL_GATHER,
				   .n = 3,
				   .channels = 1,
				   .min_bytes = 4096 };

	(void)state;
	for (int limited = 0; limited < 2; limited++) {
		struct tti_msccl_head head;
		struct tti_program *prog;
		char *text;

		spec.max_bytes = limited ? 1 << 20 : 0;
		text = msccl_text(&spec);
		assert_int_equal(read_text(text, &head, &prog), TUTTI_OK);
		assert_string_equal(head.name, "my_ring");
		assert_string_equal(prog[2].algorithm, "my_ring");
		assert_int_equal(head.min_bytes, 4096);
		assert_true(head.max_bytes == (limited ? (size_t)1 << 20 : SIZE_MAX));
		release(prog, 3);
		free(text);
	}
}

/* -- Wrong ones -------------------------------------------------------------------- */

/* The n-th `from` of the text becomes `to`. */
static char *edit(const char *text, const char *from, int nth, const char *to)
{
	char *out = calloc(1, strlen(text) + strlen(to) + 1);
	const char *at = strstr(text, from);

	assert_non_null(out);
	while (at && nth-- > 0)
		at = strstr(at + 1, from);
	if (!at)
		fail_msg("\"%s\" is not in %s", from, text);
	memcpy(out, text, (size_t)(at - text));
	strcat(strcat(out, to), at + strlen(from));
	return out;
}

struct wrong {
	enum msccl_kind kind;
	const char *from, *to, *line, *reason;
	int nth;
};

static void refuses(const struct wrong *wrong)
{
	const struct msccl_spec spec = { .kind = wrong->kind,
					 .coll = TUTTI_ALL_REDUCE,
					 .n = 3,
					 .channels = 2,
					 .in_place = true };
	char *right = msccl_text(&spec), *text = edit(right, wrong->from, wrong->nth, wrong->to);
	struct tti_msccl_head head;
	struct tti_program *prog;

	if (read_text(text, &head, &prog) == TUTTI_OK)
		fail_msg("taken: \"%s\" for \"%s\" in %s", wrong->to, wrong->from, text);
	if (!strstr(tti_error_text(), wrong->line) || !strstr(tti_error_text(), wrong->reason))
		fail_msg("\"%s\" for \"%s\": %s\nmust say %s %s, in %s", wrong->to, wrong->from,
			 tti_error_text(), wrong->line, wrong->reason, text);
	free(right);
	free(text);
}

static const struct wrong wrongs[] = {
	/* Values of attributes. */
	{ 0, "<algo", "<graph", "a.xml:", "mismatched tag", 0 },
	/* What no file of elements has, said without a word of topologies. */
	{ 0, "<tb id", "word<tb id", "a.xml:3:", "text inside <gpu>: only elements and", 0 },
	{ 0, "<algo", "<!DOCTYPE algo><algo", "a.xml:1:", "<!DOCTYPE algo> is not read", 0 },
	{ 0, "<algo", "<?php?><algo", "a.xml:1:", "<?php?>: processing instructions are not", 0 },
	{ 0, "proto=\"Simple\"", "proto=\"Quick\"", "a.xml:1:", "Simple, LL, LL128", 0 },
	{ 0, "coll=\"allreduce\"", "coll=\"allsum\"", "a.xml:1:", "allreduce, allgather", 0 },
	{ 0, "coll=\"allreduce\"", "", "a.xml:1:", "coll is missing", 0 },
	{ 0, "name=\"my_ring\"", "name=\"my ring\"", "a.xml:1:", "letters, digits", 0 },
	{ 0, "ngpus=\"3\"", "ngpus=\"4\"", "a.xml:1:", "gpu 3 of ngpus 4 is missing", 0 },
	{ 0, "ngpus=\"3\"", "ngpus=\"2000\"", "a.xml:1:", "is not within 1 to 1024", 0 },
	{ 0, "outofplace=\"0\"", "outofplace=\"2\"", "a.xml:1:", "is not within 0 to 1", 0 },
	{ 0, "inplace=\"1\"", "inplace=\"0\"", "a.xml:1:", "for no call", 0 },
	{ 0, "minBytes=\"0\" maxBytes=\"0\"", "minBytes=\"9\" maxBytes=\"8\"",
	  "a.xml:1:", "less than minBytes", 0 },
	{ 0, "minBytes=\"0\"", "minBytes=\"-1\"", "a.xml:1:", "minBytes=\"-1\"", 0 },
	{ 0, "nchunksperloop=\"6\"", "nchunksperloop=\"70000\"",
	  "a.xml:1:", "is not within 1 to 65536", 0 },
	{ 0, "<gpu id=\"1\"", "<gpu id=\"0\"", "a.xml:18:", "was on line 2", 0 },
	{ 0, "i_chunks=\"6\"", "i_chunks=\"7\"", "a.xml:2:", "i_chunks is 7", 0 },
	{ 0, "s_chunks=\"0\"", "s_chunks=\"70000\"", "a.xml:2:", "is not within 0 to 65536", 0 },
	{ 0, "<tb id=\"1\"", "<tb id=\"0\"", "a.xml:10:", "has tb 0 on line 3", 0 },
	{ 0, "<tb id", "<block id", "a.xml:", "mismatched tag", 0 },
	{ 0, "send=\"1\"", "send=\"3\"", "a.xml:3:", "is not within -1 to 2", 0 },
	{ 0, "send=\"1\"", "send=\"0\"", "a.xml:3:", "talks to its own gpu", 0 },
	{ 0, "chan=\"0\"", "chan=\"3\"", "a.xml:3:", "is not within 0 to 2", 0 },
	{ 0, "s=\"1\"", "s=\"2\"", "a.xml:5:", "it is step 1 of tb 0", 0 },
	{ 0, "type=\"rrs\"", "type=\"rsr\"", "a.xml:5:", "nop, s, r, rcs, rrc, rrs, rrcs, cpy, re",
	  0 },
	{ 0, "srcbuf=\"i\"", "srcbuf=\"x\"", "a.xml:4:", "i, o, s", 0 },
	{ 0, "srcoff=\"0\"", "srcoff=\"6\"", "a.xml:4:", "out of range: gpu 0 has i_chunks", 0 },
	{ 0, "srcoff=\"0\"", "srcoff=\"-1\"", "a.xml:4:", "srcoff=\"-1\"", 0 },
	{ 0, "cnt=\"1\"", "cnt=\"0\"", "a.xml:4:", "cnt=\"0\"", 0 },
	{ 0, "cnt=\"1\"", "cnt=\"1000000\"", "a.xml:4:", "cnt=\"1000000\"", 0 },
	{ 0, "cnt=\"1\"", "", "a.xml:4:", "cnt is missing", 0 },
	{ 0, "cnt=\"1\"", "cnt=\"\"", "a.xml:4:", "cnt is empty", 0 },
	/* Messages. */
	{ 0, "send=\"1\"", "send=\"-1\"", "a.xml:4:", "has send=\"-1\"", 0 },
	{ 0, "recv=\"2\"", "recv=\"-1\"", "a.xml:5:", "has recv=\"-1\"", 0 },
	{ 0, "chan=\"0\"", "chan=\"2\"", "a.xml:4:", "nothing receives from gpu 0", 0 },
	{ 0, "chan=\"1\"", "chan=\"0\"", "a.xml:11:", "tb 0 already sends to gpu 1", 0 },
	{ 0, "type=\"s\" srcbuf=\"i\" srcoff=\"0\"", "type=\"nop\" srcbuf=\"i\" srcoff=\"0\"",
	  "a.xml:", "receives from gpu 0 over channel 0, where tb 0 sends fewer", 0 },
	{ 0, "cnt=\"1\"", "cnt=\"2\"", "a.xml:4:", "sends 2 chunks", 0 },
	/* Dependencies. */
	{ MSCCL_ALL_PAIRS, "depid=\"0\" deps=\"1\"", "depid=\"7\" deps=\"1\"",
	  "a.xml:16:", "depends on tb 7, which gpu 0 does not have", 0 },
	{ MSCCL_ALL_PAIRS, "depid=\"0\" deps=\"1\"", "depid=\"0\" deps=\"9\"",
	  "a.xml:16:", "depends on step 9 of tb 0, which has 4 steps", 0 },
	{ MSCCL_ALL_PAIRS, "depid=\"0\" deps=\"1\"", "depid=\"0\" deps=\"-1\"",
	  "a.xml:16:", "depends on step -1", 0 },
	{ MSCCL_ALL_PAIRS, "depid=\"0\" deps=\"1\"", "depid=\"2\" deps=\"0\"",
	  "a.xml:16:", "depends on itself", 0 },
	{ MSCCL_ALL_PAIRS, "depid=\"0\" deps=\"1\"", "depid=\"2\" deps=\"1\"",
	  "a.xml:16:", "a later step of its own thread block", 0 },
	{ MSCCL_ALL_PAIRS, "depid=\"-1\" deps=\"-1\" hasdep=\"1\"",
	  "depid=\"-1\" deps=\"-1\" hasdep=\"0\"",
	  "a.xml:16:", "depends on tb 0 step 1 (line 5), which says hasdep=\"0\"", 0 },
	{ MSCCL_ALL_PAIRS, "depid=\"-1\" deps=\"-1\" hasdep=\"0\"",
	  "depid=\"2\" deps=\"1\" hasdep=\"0\"", "a.xml:", "can never run: line", 0 },
	/* What it computes. */
	{ 0, "srcoff=\"0\" dstbuf=\"i\" dstoff=\"0\"", "srcoff=\"1\" dstbuf=\"i\" dstoff=\"0\"",
	  "a.xml:", "adds chunk 1 to chunk 0", 0 },
	{ 0, "type=\"rrcs\"", "type=\"rcs\"",
	  "a.xml:", "ends with chunk 2 of its output without what gpu", 0 },
	{ MSCCL_ALL_PAIRS, "type=\"re\"", "type=\"nop\"",
	  "a.xml:5:", "receives chunk 0, which nothing reads", 0 },
	{ MSCCL_ALL_PAIRS, "srcbuf=\"s\" srcoff=\"2\"", "srcbuf=\"s\" srcoff=\"0\"",
	  "a.xml:11:", "receives chunk 0, which nothing reads", 0 },
	{ MSCCL_ALL_PAIRS, "type=\"re\" srcbuf=\"s\" srcoff=\"0\" dstbuf=\"i\" dstoff=\"0\"",
	  "type=\"re\" srcbuf=\"s\" srcoff=\"0\" dstbuf=\"i\" dstoff=\"2\"",
	  "a.xml:16:", "adds chunk 0 to chunk 2", 0 },
};

static void what_is_wrong_is_said(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(wrongs) / sizeof(wrongs[0]); i++)
		refuses(&wrongs[i]);
}

#define STEP(s, type, src, dst, dep) \
	"<step s=\"" s "\" type=\"" type "\" " src " " dst " cnt=\"1\" " dep "/>\n"
#define SRC(buf, off) "srcbuf=\"" buf "\" srcoff=\"" off "\""
#define DST(buf, off) "dstbuf=\"" buf "\" dstoff=\"" off "\""
#define FREE          "depid=\"-1\" deps=\"-1\" hasdep=\"0\""

/* Both ranks need the sum and their own value after it: two values at once. */
static void two_values_of_a_chunk_are_refused(void **state)
{
#define RANK(id, peer)                                                                             \
	"<gpu id=\"" id                                                                            \
	"\" i_chunks=\"1\" o_chunks=\"1\" s_chunks=\"1\">\n<tb id=\"0\" send=\"" peer              \
	"\" recv=\"" peer "\" chan=\"0\">\n" STEP("0", "s", SRC("i", "0"), DST("s", "0"), FREE)    \
		STEP("1", "rrc", SRC("i", "0"), DST("o", "0"), FREE) STEP("2", "s", SRC("i", "0"), \
									  DST("s", "0"), FREE)     \
			STEP("3", "r", SRC("i", "0"), DST("s", "0"), FREE) "</tb>\n</gpu>\n"
	static const char text[] =
		"<algo name=\"a\" proto=\"Simple\" nchannels=\"1\" nchunksperloop=\"1\" "
		"ngpus=\"2\" coll=\"allreduce\" inplace=\"0\">\n" RANK("0", "1")
			RANK("1", "0") "</algo>";
	struct tti_msccl_head head;
	struct tti_program *prog;

	(void)state;
	assert_int_equal(read_text(text, &head, &prog), TUTTI_EINVAL);
	assert_non_null(strstr(tti_error_text(), "a.xml:5:"));
	assert_non_null(strstr(tti_error_text(), "gpu 0 needs two values of chunk 0 at once"));
}

/* -- Any ones ---------------------------------------------------------------------- */

static uint32_t draw(uint32_t *seed, uint32_t n)
{
	*seed = *seed * 1664525u + 1013904223u;
	return (*seed >> 8) % n;
}

/* One number or type of a right file becomes another: either it is refused, and where and
 * why is said, or what is read is proven. */
static void spoil(char *text, uint32_t *seed)
{
	const size_t len = strlen(text);
	size_t at = draw(seed, (uint32_t)len);

	while (text[at] < '0' || text[at] > '9')
		at = (at + 1) % len;
	text[at] = (char)('0' + draw(seed, 6));
}

static void spoilt_files_are_refused_or_right(void **state)
{
	const int rounds = SANITIZED ? 1000 : 3000;
	uint32_t seed = 1;
	int refused = 0, taken = 0;

	(void)state;
	for (int round = 0; round < rounds; round++) {
		const struct msccl_spec spec = { .kind = (enum msccl_kind)(round % MSCCL_CHAIN),
						 .coll = TUTTI_ALL_REDUCE,
						 .n = 4,
						 .channels = 1 + round % 2,
						 .group = 2,
						 .in_place = true };
		char *text = msccl_text(&spec);
		struct tti_msccl_head head;
		struct tti_program *prog;

		spoil(text, &seed);
		if (read_text(text, &head, &prog) == TUTTI_OK) {
			if (tti_program_check(prog, head.n, 1, TTI_ORDER_ANY) != TUTTI_OK)
				fail_msg("%s\nin %s", tti_error_text(), text);
			release(prog, head.n);
			taken++;
		} else {
			assert_ptr_equal(strstr(tti_error_text(), "a.xml:"), tti_error_text());
			refused++;
		}
		free(text);
	}
	assert_in_range(refused, rounds / 3, rounds - 1);
	assert_in_range(taken, 1, rounds * 2 / 3);
}

static void out_of_memory_is_survived(void **state)
{
	const struct msccl_spec spec = {
		.kind = MSCCL_EXCHANGE, .coll = TUTTI_ALL_REDUCE, .n = 3, .channels = 2
	};
	char *text = msccl_text(&spec), fault[32];
	struct tti_msccl_head head;
	struct tti_program *prog;
	tutti_status st = TUTTI_ENOMEM;
	int at = 0;

	(void)state;
	while (st != TUTTI_OK) {
		snprintf(fault, sizeof(fault), "mem:%d", ++at);
		tti_fault_set(fault);
		st = read_text(text, &head, &prog);
		tti_fault_set(NULL);
		assert_true(st == TUTTI_OK || st == TUTTI_ENOMEM);
	}
	assert_in_range(at, 20, 2000);
	release(prog, 3);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_algorithm_is_read_and_proven),
		cmocka_unit_test(nothing_is_moved_twice),
		cmocka_unit_test(head_says_what_the_file_says),
		cmocka_unit_test(what_is_wrong_is_said),
		cmocka_unit_test(two_values_of_a_chunk_are_refused),
		cmocka_unit_test(spoilt_files_are_refused_or_right),
		cmocka_unit_test(out_of_memory_is_survived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
