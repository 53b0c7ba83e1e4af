/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture.h"
#include "made.h"
#include "topo/tree/schema.h"
#include "util/clock.h"
#include "util/hash.h"

/* Captured machines as they are, and with damage done to their files. */

static struct capture capture;

static int clean_up(void **state)
{
	(void)state;
	capture_remove(&capture);
	return 0;
}

static void assert_capture(size_t index, const char *want)
{
	struct tti_xml_doc *doc;
	const struct tti_detect_config config = { .sysfs_root = capture.root };
	char *shape;

	capture_unpack(&capture, captures[index]);
	assert_int_equal(tti_detect_machine(&config, &doc), TUTTI_OK);
	assert_int_equal(tti_schema_check(doc), TUTTI_OK);
	shape = made_shape(doc);
	assert_string_equal(shape, want);
	free(shape);
	tti_xml_free(doc);
	capture_remove(&capture);
}

static void machines_have_their_shape(void **state)
{
	/* Without `all` the functions of a card with several ports are one. */
	static const char *const shapes[NCAPTURES] = {
		"cpu0 cpu1 cpu2 cpu3",
		"cpu0(0000:18:00.0(0000:1a:00.0 0000:1b:00.0 0000:1c:00.0 0000:1d:00.0 "
		"0000:1e:00.0) 0000:3b:00.0(0000:3d:00.0 0000:3e:00.0 0000:3f:00.0 0000:40:00.0 "
		"0000:41:00.0) 0000:5e:00.0(0000:60:00.0)) cpu1",
		"cpu0(0000:02:00.0 0000:03:00.0 0000:09:03.0) cpu1 "
		"cpu2(0000:43:00.0) cpu3",
		"cpu0 cpu1 cpu2 cpu3",
		"cpu0(0000:01:00.2(0000:03:00.0 0000:06:00.0 0000:08:00.0) "
		"0000:0a:00.0)",
		"cpu0(0000:04:00.0 0000:05:00.0 0000:06:00.0)",
		"cpu0",
		"cpu0(0004:05:00.0 0004:06:00.0 0006:00:00.0) "
		"cpu8(0007:00:00.0 0035:04:00.0 0035:05:00.0)",
		/* Two nodes with a switch each, a second level of switches at the other. */
		"cpu0(0000:41:00.0(0000:43:00.0 0000:44:00.0 0000:45:00.0 0000:46:00.0) "
		"0000:47:00.0) "
		"cpu1(0000:81:00.0(0000:83:00.0 0000:84:00.0 0000:85:00.0 0000:86:00.0) "
		"0000:87:00.0 0000:88:00.0(0000:8a:00.0(0000:8c:00.0 0000:8d:00.0) "
		"0000:8e:00.0))",
	};

	(void)state;
	for (size_t i = 0; i < NCAPTURES; i++)
		assert_capture(i, shapes[i]);
}

/* -- Damage ------------------------------------------------------------------------- */

/* The files of a machine: they are what is hit. */
static struct {
	char *at[40000];
	size_t n;
} files;

static int add_file(const char *path, const struct stat *info, int kind, struct FTW *place)
{
	(void)info;
	(void)place;
	if (kind == FTW_F && files.n < sizeof(files.at) / sizeof(files.at[0]) &&
	    (strstr(path, "/pci") || strstr(path, "/node") || strstr(path, "/net/") ||
	     strstr(path, "/topology/") || strstr(path, "/proc/") || strstr(path, "/online")))
		files.at[files.n++] = strdup(path);
	return 0;
}

static int by_path(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static uint64_t next(uint64_t *seed)
{
	*seed = tti_hash_combine(*seed, 1);
	return *seed;
}

static void write_junk(const char *path, uint64_t *seed)
{
	static const char *const junk[] = { "",      "-1",         "0x060400\n", "0x030200\n",
					    "99999", "\xff\x01<&", "0-\n",       ",,,",
					    "1 2 3", "\n" };
	char noise[512];
	FILE *file = fopen(path, "we");

	if (!file)
		return; /* something else is there by now */
	for (size_t i = 0; i < sizeof(noise); i++)
		noise[i] = (char)next(seed);
	if (next(seed) % 3 == 0)
		fwrite(noise, 1, sizeof(noise), file);
	else
		fputs(junk[next(seed) % (sizeof(junk) / sizeof(junk[0]))], file);
	fclose(file);
}

static void damage(uint64_t *seed)
{
	const char *path = files.at[next(seed) % files.n];
	struct stat info;

	if (lstat(path, &info) < 0 || !S_ISREG(info.st_mode))
		return;
	switch (next(seed) % 8) {
	case 0:
		unlink(path);
		break;
	case 1:
		unlink(path);
		assert_int_equal(mkfifo(path, 0600), 0);
		break;
	case 2:
		unlink(path);
		assert_int_equal(mkdir(path, 0700), 0);
		break;
	case 3:
		unlink(path);
		assert_int_equal(symlink(next(seed) % 2 ? "../.." : "/proc/self/mem", path), 0);
		break;
	default:
		write_junk(path, seed);
	}
}

static void damage_and_detect(const char *root, uint64_t *seed, int nrounds)
{
	for (int round = 0; round < nrounds; round++) {
		const struct tti_detect_config config = { .sysfs_root = root, .all = round % 2 };
		const int64_t begun = tti_now_ns();
		struct tti_xml_doc *doc;
		tutti_status st;

		for (int hit = 0; hit < 20; hit++)
			damage(seed);
		st = tti_detect_machine(&config, &doc);
		assert_int_equal(st, TUTTI_OK);
		st = tti_schema_check(doc);
		tti_xml_free(doc);
		assert_int_equal(st, TUTTI_OK);
		assert_true(tti_now_ns() - begun < 60 * INT64_C(1000000000));
	}
}

static void damaged_machines_are_detected(void **state)
{
	static const size_t hit[] = { 1, 2, 7, 8 };
	uint64_t seed = 42;

	(void)state;
	for (size_t i = 0; i < sizeof(hit) / sizeof(hit[0]); i++) {
		capture_unpack(&capture, captures[hit[i]]);
		files.n = 0;
		assert_int_equal(nftw(capture.root, add_file, 32, FTW_PHYS), 0);
		qsort(files.at, files.n, sizeof(files.at[0]), by_path); /* to repeat a failure */
		print_message("%s: %zu files\n", captures[hit[i]], files.n);
		assert_true(files.n > 100);
		damage_and_detect(capture.root, &seed, 100);
		for (size_t file = 0; file < files.n; file++)
			free(files.at[file]);
		capture_remove(&capture);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(machines_have_their_shape, clean_up),
		cmocka_unit_test_teardown(damaged_machines_are_detected, clean_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
