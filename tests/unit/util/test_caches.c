/* SPDX-License-Identifier: BSD-3-Clause */
/* What the kernel tells of caches: those of the last level, how many of them; and what is told
 * by nobody, or is nonsense. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/caches.h"

#define CPUS "sys/devices/system/cpu"

static void put(const char *root, const char *name, const char *text)
{
	char path[512];
	FILE *file;

	snprintf(path, sizeof(path), "mkdir -p \"$(dirname '%s/" CPUS "/%s')\"", root, name);
	assert_int_equal(system(path), 0);
	snprintf(path, sizeof(path), "%s/" CPUS "/%s", root, name);
	file = fopen(path, "w");
	assert_non_null(file);
	fprintf(file, "%s\n", text);
	assert_int_equal(fclose(file), 0);
}

static void put_cache(const char *root, int index, const char *level, const char *size,
		      const char *sharers)
{
	char name[128];

	snprintf(name, sizeof(name), "cpu0/cache/index%d/level", index);
	put(root, name, level);
	snprintf(name, sizeof(name), "cpu0/cache/index%d/size", index);
	put(root, name, size);
	snprintf(name, sizeof(name), "cpu0/cache/index%d/shared_cpu_list", index);
	put(root, name, sharers);
}

/* A host with L1 caches and, of the texts given, L3 caches; NULL: none of them. */
static struct tti_caches of_host(const char *online, const char *size, const char *sharers)
{
	char root[] = "/tmp/tutti-caches-XXXXXX", command[64];
	struct tti_caches caches;

	assert_non_null(mkdtemp(root));
	if (online)
		put(root, "online", online);
	put_cache(root, 0, "1", "32K", "0");
	put_cache(root, 1, "1", "32K", "0");
	if (size)
		put_cache(root, 3, "3", size, sharers);
	tti_caches_read(root, &caches);
	snprintf(command, sizeof(command), "rm -r '%s'", root);
	assert_int_equal(system(command), 0);
	return caches;
}

static void the_last_level_counts(void **state)
{
	struct tti_caches caches = of_host("0-1", "32768K", "0-1");

	(void)state;
	assert_int_equal(caches.bytes, 32 << 20);
	assert_int_equal(caches.n, 1);
	/* Of eight, one CPU has been switched off. */
	caches = of_host("0-126", "96M", "0-7,64-71");
	assert_int_equal(caches.bytes, 96 << 20);
	assert_int_equal(caches.n, 8);
	/* There is no level 2 or 3. */
	caches = of_host("0-3", NULL, NULL);
	assert_int_equal(caches.bytes, 32 << 10);
	assert_int_equal(caches.n, 4);
}

static void nonsense_is_not_counted(void **state)
{
	static const char *const wrong[][3] = {
		{ NULL, "32M", "0-1" },          { "", "32M", "0-1" },
		{ "0-", "32M", "0-1" },          { "1-0", "32M", "0-1" },
		{ "0-99999999999", "32M", "0" }, { "0-1x", "32M", "0" },
	};
	static const char *const unfit[][2] = {
		{ "32G", "0-1" }, { "", "0-1" },    { "M", "0-1" },
		{ "32M", "" },    { "32M", "0;1" }, { "99999999999999999999K", "0-1" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		const struct tti_caches caches = of_host(wrong[i][0], wrong[i][1], wrong[i][2]);

		assert_int_equal(caches.bytes, 32 << 20);
		assert_int_equal(caches.n, 1);
	}
	/* What can be read of the levels below is. */
	for (size_t i = 0; i < sizeof(unfit) / sizeof(*unfit); i++) {
		const struct tti_caches caches = of_host("0-1", unfit[i][0], unfit[i][1]);

		assert_int_equal(caches.bytes, 32 << 10);
		assert_int_equal(caches.n, 2);
	}
}

static void ranks_share_what_there_is(void **state)
{
	struct tti_caches own;

	(void)state;
	tti_caches_read("", &own);
	assert_true(own.bytes > 0 && own.n > 0);
	assert_int_equal(tti_cache_bytes(0), own.bytes);
	assert_int_equal(tti_cache_bytes(1), own.bytes);
	assert_int_equal(tti_cache_bytes(1 << 20), own.bytes * own.n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_last_level_counts),
		cmocka_unit_test(nonsense_is_not_counted),
		cmocka_unit_test(ranks_share_what_there_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
