/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "util/error.h"
#include "util/fault.h"
#include "util/file.h"
#include "util/mem.h"

static char dir[] = "/tmp/tutti-file-XXXXXX";

static const char *path_of(const char *name)
{
	static char path[64];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static void write_file(const char *path, size_t nbytes)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	for (size_t i = 0; i < nbytes; i++)
		fputc((int)('a' + i % 26), file);
	assert_int_equal(fclose(file), 0);
}

static int set_up(void **state)
{
	(void)state;
	return mkdtemp(dir) ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	unlink(path_of("plain"));
	unlink(path_of("pipe"));
	return rmdir(dir);
}

static void whole_files(void **state)
{
	static const size_t sizes[] = { 0, 1, 4095, 4096, 100000 };

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		char *text = NULL;
		size_t n = 1;

		write_file(path_of("plain"), sizes[i]);
		assert_int_equal(tti_file_read(path_of("plain"), "it", 1 << 20, &text, &n),
				 TUTTI_OK);
		assert_int_equal(n, sizes[i]);
		assert_int_equal(strlen(text), n);
		for (size_t k = 0; k < n; k++)
			assert_int_equal(text[k], 'a' + k % 26);
		tti_free(text);
	}
	/* More than that: enough to see so, not all. */
	for (size_t most = 0; most < 100000; most += 9999) {
		char *text;
		size_t n;

		assert_int_equal(tti_file_read(path_of("plain"), "it", most, &text, &n), TUTTI_OK);
		assert_true(n > most);
		tti_free(text);
	}
}

static void refused(void **state)
{
	char *text;
	size_t n;

	(void)state;
	assert_int_equal(tti_file_read(path_of("none"), "a plan", 10, &text, &n), TUTTI_EINVAL);
	assert_non_null(strstr(tti_error_text(), "a plan"));
	assert_non_null(strstr(tti_error_text(), "none: No such file"));
	assert_int_equal(tti_file_read(dir, "a plan", 10, &text, &n), TUTTI_EINVAL);
	assert_non_null(strstr(tti_error_text(), "is a directory, not a file"));
	assert_int_equal(mkfifo(path_of("pipe"), 0600), 0);
	assert_int_equal(tti_file_read(path_of("pipe"), "a plan", 10, &text, &n), TUTTI_EINVAL);
	assert_non_null(strstr(tti_error_text(), "is a pipe, not a file"));
	write_file(path_of("plain"), 10);
	tti_fault_set("mem:1");
	assert_int_equal(tti_file_read(path_of("plain"), "it", 10, &text, &n), TUTTI_ENOMEM);
	tti_fault_set(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_files),
		cmocka_unit_test(refused),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
