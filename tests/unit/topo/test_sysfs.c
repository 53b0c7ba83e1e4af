/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "topo/detect/sysfs.h"
#include "tree.h"
#include "util/error.h"
#include "util/fault.h"

/* A captured machine that means harm, and beside it what it is after. */

static struct tree tree;
static struct tti_sysfs root;

static int set_up(void **state)
{
	(void)state;
	tree_make(&tree);
	tree_file(&tree, "outside/secret", "secret\n");
	tree_dir(&tree, "top/sys");
	tree_file(&tree, "top/sys/one", "first line\nsecond\n");
	assert_int_equal(tti_sysfs_open(tree_path(&tree, "top"), &root), TUTTI_OK);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	tti_fault_set(NULL);
	tti_sysfs_close(&root);
	tree_remove(&tree);
	return 0;
}

static const char *line(const char *path)
{
	static char buf[256];

	return tti_sysfs_line(&root, buf, sizeof(buf), "%s", path) ? buf : NULL;
}

static const char *real(const char *path)
{
	static char buf[256];

	return tti_sysfs_real(&root, buf, sizeof(buf), "%s", path) ? buf : NULL;
}

static void reads_lines_bytes_and_numbers(void **state)
{
	char small[4] = "";
	int64_t value = 0;

	(void)state;
	tree_file(&tree, "top/sys/hex", "0x10de\n");
	tree_file(&tree, "top/sys/minus", "-1\n");
	tree_file(&tree, "top/sys/zero", "010\n");
	tree_file(&tree, "top/sys/junk", "12 apples\n");
	tree_file(&tree, "top/sys/huge", "99999999999999999999\n");
	tree_file(&tree, "top/sys/empty", "");
	assert_string_equal(line("sys/one"), "first line");
	assert_true(tti_sysfs_line(&root, small, sizeof(small), "sys/%s", "one"));
	assert_string_equal(small, "fir");
	assert_int_equal(tti_sysfs_bytes(&root, small, sizeof(small), "sys/one"), 4);
	assert_memory_equal(small, "firs", 4);
	assert_true(tti_sysfs_int(&root, &value, "sys/hex") && value == 0x10de);
	assert_true(tti_sysfs_int(&root, &value, "sys/minus") && value == -1);
	assert_true(tti_sysfs_int(&root, &value, "sys/zero") && value == 10);
	assert_false(tti_sysfs_int(&root, &value, "sys/junk"));
	assert_false(tti_sysfs_int(&root, &value, "sys/huge"));
	assert_false(tti_sysfs_int(&root, &value, "sys/empty"));
	assert_string_equal(line("sys/empty"), "");
	assert_false(tti_sysfs_line(&root, small, sizeof(small), "sys/none"));
	assert_string_equal(small, "");
	assert_int_equal(tti_sysfs_bytes(&root, small, sizeof(small), "sys/none"), -1);
}

static void links_inside_are_followed(void **state)
{
	(void)state;
	tree_file(&tree, "top/sys/devices/pci0000:00/0000:00:01.0/class", "0x030000\n");
	tree_link(&tree, "top/sys/bus/pci/devices/0000:00:01.0",
		  "../../../devices/pci0000:00/0000:00:01.0");
	tree_link(&tree, "top/sys/absolute", "/sys/devices/pci0000:00");
	assert_string_equal(line("sys/bus/pci/devices/0000:00:01.0/class"), "0x030000");
	assert_string_equal(real("sys/bus/pci/devices/0000:00:01.0"),
			    "sys/devices/pci0000:00/0000:00:01.0");
	assert_string_equal(real("/sys/absolute/./0000:00:01.0//class"),
			    "sys/devices/pci0000:00/0000:00:01.0/class");
	assert_string_equal(real("sys/absolute/.."), "sys/devices");
	assert_string_equal(real("sys/../.."), ".");
	assert_true(tti_sysfs_exists(&root, "sys/absolute"));
	assert_null(real("sys/absolute/none"));
}

static void nothing_leads_out(void **state)
{
	char target[2048];

	(void)state;
	tree_link(&tree, "top/sys/up", "../../outside/secret");
	tree_link(&tree, "top/sys/far", "../../../../../../../../../../etc/passwd");
	tree_link(&tree, "top/sys/dir", "../../outside");
	snprintf(target, sizeof(target), "%s", tree_path(&tree, "outside/secret"));
	tree_link(&tree, "top/sys/absolute", target);
	tree_link(&tree, "top/sys/proc", "/proc/self/root");
	assert_null(line("sys/up"));
	assert_null(line("sys/far"));
	assert_null(line("sys/dir/secret"));
	assert_null(line("sys/absolute"));
	assert_null(line("sys/proc/etc/passwd"));
	assert_null(line("../outside/secret"));
	assert_null(line("sys/../../outside/secret"));
	assert_false(tti_sysfs_exists(&root, "sys/up"));
	assert_null(real("sys/dir"));
}

static void loops_end(void **state)
{
	char **names;
	size_t n;

	(void)state;
	tree_link(&tree, "top/sys/self", "self");
	tree_link(&tree, "top/sys/a", "b");
	tree_link(&tree, "top/sys/b", "a");
	tree_link(&tree, "top/sys/deeper", "deeper/deeper");
	assert_null(line("sys/self"));
	assert_null(line("sys/a"));
	assert_null(line("sys/deeper"));
	assert_int_equal(tti_sysfs_list(&root, &names, &n, "sys/a"), TUTTI_OK);
	assert_null(names);
	assert_int_equal(n, 0);
}

static void only_regular_files_are_read(void **state)
{
	(void)state;
	assert_int_equal(mkfifo(tree_path(&tree, "top/sys/fifo"), 0600), 0);
	tree_dir(&tree, "top/sys/directory");
	alarm(10); /* a FIFO without a writer blocks who opens it for reading */
	assert_null(line("sys/fifo"));
	assert_null(line("sys/directory"));
	assert_null(line("sys/one/below"));
	alarm(0);
	assert_true(tti_sysfs_exists(&root, "sys/fifo"));
}

static void size_is_bounded(void **state)
{
	char longest[5000];
	char small[8];
	int fd;

	(void)state;
	fd = open(tree_path(&tree, "top/sys/huge"), O_CREAT | O_WRONLY, 0600);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)1 << 40), 0);
	close(fd);
	memset(small, 1, sizeof(small));
	assert_int_equal(tti_sysfs_bytes(&root, small, sizeof(small), "sys/huge"), sizeof(small));
	assert_string_equal(line("sys/huge"), "");
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	assert_null(line(longest));
	assert_true(tti_sysfs_real(&root, small, sizeof("sys/one"), "sys/one"));
	assert_false(tti_sysfs_real(&root, small, sizeof("sys/one") - 1, "sys/one"));
}

static void lists_are_sorted(void **state)
{
	char **names;
	size_t n;

	(void)state;
	tree_file(&tree, "top/sys/list/b", "");
	tree_file(&tree, "top/sys/list/a", "");
	tree_dir(&tree, "top/sys/list/.hidden");
	assert_int_equal(tti_sysfs_list(&root, &names, &n, "sys/%s", "list"), TUTTI_OK);
	assert_int_equal(n, 3);
	assert_string_equal(names[0], ".hidden");
	assert_string_equal(names[1], "a");
	assert_string_equal(names[2], "b");
	free(names);
	assert_int_equal(tti_sysfs_list(&root, &names, &n, "sys/list/.hidden"), TUTTI_OK);
	assert_int_equal(n, 0);
	free(names);
	assert_int_equal(tti_sysfs_list(&root, &names, &n, "sys/one"), TUTTI_OK);
	assert_null(names);
	tti_fault_set("mem:1");
	assert_int_equal(tti_sysfs_list(&root, &names, &n, "sys/list"), TUTTI_ENOMEM);
	assert_null(names);
}

static void a_root_is_a_directory_with_sys(void **state)
{
	struct tti_sysfs other;

	(void)state;
	assert_true(root.captured);
	assert_int_equal(tti_sysfs_open(tree_path(&tree, "none"), &other), TUTTI_EINVAL);
	assert_non_null(strstr(tti_error_text(), "none"));
	assert_non_null(strstr(tti_error_text(), strerror(ENOENT)));
	assert_int_equal(tti_sysfs_open(tree_path(&tree, "outside/secret"), &other), TUTTI_EINVAL);
	assert_int_equal(tti_sysfs_open(tree_path(&tree, "outside"), &other), TUTTI_EINVAL);
	assert_non_null(strstr(tti_error_text(), "sys/"));
	tree_file(&tree, "file/sys", "no directory");
	assert_int_equal(tti_sysfs_open(tree_path(&tree, "file"), &other), TUTTI_EINVAL);
	assert_int_equal(tti_sysfs_open(NULL, &other), TUTTI_OK);
	assert_false(other.captured);
	tti_sysfs_close(&other);
	assert_int_equal(tti_sysfs_open("/../.", &other), TUTTI_OK);
	assert_false(other.captured);
	tti_sysfs_close(&other);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(reads_lines_bytes_and_numbers),
		TEST(links_inside_are_followed),
		TEST(nothing_leads_out),
		TEST(loops_end),
		TEST(only_regular_files_are_read),
		TEST(size_is_bounded),
		TEST(lists_are_sorted),
		TEST(a_root_is_a_directory_with_sys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
