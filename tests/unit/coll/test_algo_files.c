/* SPDX-License-Identifier: BSD-3-Clause */
/* Files with algorithms of a user's own: what is taken for which call, and what is said of
 * them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "coll/files/algo_files.h"
#include "support/msccl.h"
#include "tutti/algo_file.h"
#include "tutti/insight.h"
#include "util/error.h"

static char dir[] = "/tmp/tutti_files_XXXXXX";
static char path[3][64];

static void write_file(const char *to, char *text)
{
	FILE *file = fopen(to, "w");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
	free(text);
}

static int write_all(void **state)
{
	const struct msccl_spec small = {
		.kind = MSCCL_EXCHANGE, .n = 3, .channels = 1, .max_bytes = 1024
	};
	const struct msccl_spec rooted = {
		.kind = MSCCL_CHAIN, .coll = TUTTI_BROADCAST, .n = 3, .channels = 1, .root = 2
	};
	char *text;

	(void)state;
	assert_non_null(mkdtemp(dir));
	for (int i = 0; i < 3; i++)
		(void)snprintf(path[i], sizeof(path[i]), "%s/%d", dir, i);
	write_file(path[0], msccl_text(&small));
	assert_int_equal(tutti_program_print(TUTTI_ALL_REDUCE, "ring", 3, 0, -1, 0, &text),
			 TUTTI_OK);
	write_file(path[1], text);
	write_file(path[2], msccl_text(&rooted));
	return 0;
}

static int remove_all(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++)
		unlink(path[i]);
	return rmdir(dir);
}

/* The first that is for a call, in the order of the list, to the byte. */
static void files_are_found_by_call(void **state)
{
	struct tti_algo_files *files;
	char list[256];

	(void)state;
	(void)snprintf(list, sizeof(list), "%s:%s::%s", path[0], path[1], path[2]);
	assert_int_equal(tti_algo_files_read(list, &files), TUTTI_OK);
	assert_int_equal(tti_algo_files_find(files, TUTTI_ALL_REDUCE, 3, 0, 0), 0);
	assert_int_equal(tti_algo_files_find(files, TUTTI_ALL_REDUCE, 3, 0, 1024), 0);
	assert_int_equal(tti_algo_files_find(files, TUTTI_ALL_REDUCE, 3, 0, 1025), 1);
	assert_int_equal(tti_algo_files_find(files, TUTTI_ALL_REDUCE, 3, 2, SIZE_MAX), 1);
	assert_int_equal(tti_algo_files_find(files, TUTTI_ALL_REDUCE, 4, 0, 8), -1);
	assert_int_equal(tti_algo_files_find(files, TUTTI_REDUCE, 3, 0, 8), -1);
	assert_int_equal(tti_algo_files_find(files, TUTTI_BROADCAST, 3, 2, 8), 2);
	assert_int_equal(tti_algo_files_find(files, TUTTI_BROADCAST, 3, 0, 8), -1);
	assert_int_equal(tti_algo_files_find(NULL, TUTTI_BROADCAST, 3, 0, 8), -1);
	tti_algo_files_free(files);
}

static uint64_t hash_of(const char *list)
{
	struct tti_algo_files *files;
	uint64_t hash;

	assert_int_equal(tti_algo_files_read(list, &files), TUTTI_OK);
	hash = tti_algo_files_hash(files);
	tti_algo_files_free(files);
	return hash;
}

static void hashes_tell_files_apart(void **state)
{
	(void)state;
	assert_true(hash_of("") == 0 && tti_algo_files_hash(NULL) == 0);
	assert_true(hash_of(path[0]) != 0 && hash_of(path[0]) == hash_of(path[0]));
	assert_true(hash_of(path[0]) != hash_of(path[1]));
}

static void refused(const char *list, const char *expected)
{
	struct tti_algo_files *files;

	assert_int_equal(tti_algo_files_read(list, &files), TUTTI_EINVAL);
	if (!strstr(tti_error_text(), expected))
		fail_msg("expected \"%s\", is \"%s\"", expected, tti_error_text());
}

static void what_cannot_be_used_is_refused(void **state)
{
	char list[256];

	(void)state;
	refused("/nonexistent/file", "/nonexistent/file");
	(void)snprintf(list, sizeof(list), "%s:%s", path[1], path[1]);
	refused(list, "are both called ring, for all_reduce of 3 ranks");
}

static void reports_add_up(void **state)
{
	char *text;
	double before = 0;

	(void)state;
	assert_int_equal(tutti_program_print(TUTTI_ALL_REDUCE, "ring", 4, 0, -1, 0, &text),
			 TUTTI_OK);
	for (size_t nbytes = 64; nbytes <= (size_t)1 << 30; nbytes *= 4) {
		struct tutti_algo_report report = TUTTI_ALGO_REPORT_INIT;
		uint64_t *link;

		assert_int_equal(tutti_algo_file_check(text, strlen(text), "ring.txt", nbytes,
						       &report, &link),
				 TUTTI_OK);
		assert_int_equal(report.steps, 4 * 12);
		assert_int_equal(report.most_steps, 12);
		assert_int_equal(report.links, 4);
		/* 2 (n - 1) / n of the vector, all to the next rank. */
		assert_int_equal(report.most_sent_bytes, 6 * nbytes / 4);
		assert_int_equal(report.most_link_bytes, 6 * nbytes / 4);
		assert_int_equal(link[3 * 4 + 0], 6 * nbytes / 4);
		assert_int_equal(link[0 * 4 + 2], 0);
		assert_true(report.predicted_us > before);
		before = report.predicted_us;
		free(link);
	}
	free(text);
}

/* What is read from a rank's memory leaves it as what is sent does. */
static void reports_of_memory_add_up(void **state)
{
	struct tutti_algo_report report = TUTTI_ALGO_REPORT_INIT;
	uint64_t *link;
	char *text;
	double before;

	(void)state;
	assert_int_equal(tutti_program_print(TUTTI_ALL_REDUCE, "memory", 4, 0, -1, 0, &text),
			 TUTTI_OK);
	assert_int_equal(
		tutti_algo_file_check(text, strlen(text), "memory.txt", 4096, &report, &link),
		TUTTI_OK);
	assert_int_equal(report.most_steps, 4 * 3 + 3 + 3);
	assert_int_equal(report.links, 4 * 3);
	/* One chunk is read by each peer, one is written to each. */
	for (int from = 0; from < 4; from++)
		for (int to = 0; to < 4; to++)
			assert_int_equal(link[from * 4 + to], from == to ? 0 : 2 * 1024);
	assert_int_equal(report.most_sent_bytes, 6 * 1024);
	before = report.predicted_us;
	free(link);
	assert_int_equal(
		tutti_algo_file_check(text, strlen(text), "memory.txt", 1 << 20, &report, &link),
		TUTTI_OK);
	assert_true(report.predicted_us > before);
	free(link);
	free(text);
}

/* A file may be used in place, so it must be right there, too. */
static void files_are_proven_in_place(void **state)
{
	static const char *const text = "program all_reduce algorithm racing n 2 root 0 chunks 1\n"
					"rank 0\n notify to 1\n wait for 1\n"
					" get_reduce chunk 0 from 1 final\n notify to 1\n"
					" wait for 1\n"
					"rank 1\n notify to 0\n wait for 0\n"
					" get_reduce chunk 0 from 0 final\n notify to 0\n"
					" wait for 0\n";
	struct tti_algo_file *file;
	char *good;

	(void)state;
	assert_int_equal(tutti_program_verify(text), TUTTI_OK);
	assert_int_equal(tti_algo_file_read(text, strlen(text), "racing.txt", &file), TUTTI_EINVAL);
	assert_non_null(strstr(tti_error_text(), "racing.txt: as programs, in place: rank "));
	assert_int_equal(tutti_program_print(TUTTI_ALL_REDUCE, "memory", 2, 0, -1, 0, &good),
			 TUTTI_OK);
	assert_int_equal(tti_algo_file_read(good, strlen(good), "memory.txt", &file), TUTTI_OK);
	assert_true(file->algo.needs_memory);
	assert_int_equal(file->algo.order, TTI_ORDER_ONE_PASS);
	tti_algo_file_free(file);
	free(good);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files_are_found_by_call),
		cmocka_unit_test(hashes_tell_files_apart),
		cmocka_unit_test(what_cannot_be_used_is_refused),
		cmocka_unit_test(files_are_proven_in_place),
		cmocka_unit_test(reports_add_up),
		cmocka_unit_test(reports_of_memory_add_up),
	};

	return cmocka_run_group_tests(tests, write_all, remove_all);
}
