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

#include "made.h"
#include "unit/util/child.h"
#include "util/error.h"

#define GPU "pci0000:00/0000:00:01.0"

static struct tree tree;
static struct child child;
static char variables[4][4096];
static const char *env[5];
static size_t nenv;

static int set_up(void **state)
{
	(void)state;
	tree_make(&tree);
	made_node(&tree, 0, "0f", "10 20");
	made_node(&tree, 1, "f0", "20 10");
	made_pci(&tree, GPU, "0x030200");
	made_attr(&tree, GPU, "numa_node", "1");
	nenv = 0;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	tree_remove(&tree);
	return 0;
}

static void set(const char *name, const char *path)
{
	snprintf(variables[nenv], sizeof(variables[0]), "%s=%s", name, path);
	env[nenv] = variables[nenv];
	env[++nenv] = NULL;
}

/* In the child: the status, the shape or the text of the error as messages. */
static void show(void)
{
	struct tti_xml_doc *doc;
	const tutti_status st = tti_detect_this_machine(&doc);
	char *shape;

	dprintf(STDERR_FILENO, "status %s", tutti_status_name(st));
	if (st != TUTTI_OK) {
		dprintf(STDERR_FILENO, "error %s", tti_error_text());
		return;
	}
	shape = made_shape(doc);
	dprintf(STDERR_FILENO, "shape %s", shape);
	free(shape);
	tti_xml_free(doc);
}

static void run(void)
{
	child_run(&child, env, show);
	assert_int_equal(child.status, 0);
}

/* Of the message that begins so. */
static const char *said(const char *what)
{
	for (int i = 0; i < child.n; i++)
		if (strncmp(child.messages[i], what, strlen(what)) == 0)
			return child.messages[i] + strlen(what);
	return "";
}

static void assert_fails(const char *status, const char *a, const char *b)
{
	run();
	assert_string_equal(said("status "), status);
	assert_non_null(strstr(said("error "), a));
	assert_non_null(strstr(said("error "), b));
}

static void a_captured_root_is_detected(void **state)
{
	(void)state;
	set("TUTTI_SYSFS_ROOT", tree.top);
	run();
	assert_string_equal(said("status "), "TUTTI_OK");
	assert_string_equal(said("shape "), "cpu0 cpu1(0000:00:01.0)");
}

static void this_machine_is_detected(void **state)
{
	(void)state;
	set("HOME", "/");
	run();
	assert_string_equal(said("status "), "TUTTI_OK");
	assert_int_equal(strncmp(said("shape "), "cpu", 3), 0);
}

static void a_file_is_laid_over_and_written(void **state)
{
	static const char *const names[] = { "TUTTI_TOPO_FILE", "NCCL_TOPO_FILE" };
	char text[4096] = "";
	FILE *file;

	(void)state;
	tree_file(&tree, "over.xml",
		  "<system version=\"1\"><cpu numaid=\"0\">"
		  "<pci busid=\"0000:00:01.0\" link_width=\"8\"/>"
		  "<pci busid=\"0000:00:02.0\" class=\"0x020000\"/></cpu></system>");
	for (size_t i = 0; i < 2; i++) {
		nenv = 0;
		set("TUTTI_SYSFS_ROOT", tree.top);
		set(names[i], tree_path(&tree, "over.xml"));
		set("TUTTI_TOPO_DUMP_FILE", tree_path(&tree, "dump.xml"));
		run();
		assert_string_equal(said("shape "), "cpu0(0000:00:01.0 0000:00:02.0) cpu1");
		file = fopen(tree_path(&tree, "dump.xml"), "re");
		assert_non_null(file);
		assert_true(fread(text, 1, sizeof(text) - 1, file) > 0);
		fclose(file);
		assert_non_null(strstr(text, "link_width=\"8\""));
		assert_int_equal(unlink(tree.path), 0);
	}
}

static void what_is_named_and_cannot_be_used_is_an_error(void **state)
{
	(void)state;
	set("TUTTI_SYSFS_ROOT", tree_path(&tree, "none"));
	assert_fails("TUTTI_EINVAL", "/none", "TUTTI_SYSFS_ROOT");
	nenv = 0;
	set("TUTTI_SYSFS_ROOT", tree.top);
	set("NCCL_TOPO_FILE", tree_path(&tree, "none.xml"));
	assert_fails("TUTTI_EINVAL", "none.xml", "NCCL_TOPO_FILE");
	tree_file(&tree, "none.xml", "<system version=\"1\"><cpu>");
	assert_fails("TUTTI_EINVAL", "none.xml:1:", "TUTTI_TOPO_FILE");
	tree_file(&tree, "none.xml", "<system version=\"1\">\n<gpu/></system>");
	assert_fails("TUTTI_EINVAL", "none.xml:2:1", "TUTTI_TOPO_FILE");
	nenv = 1;
	set("NCCL_TOPO_DUMP_FILE", tree_path(&tree, "no/such/dump.xml"));
	assert_fails("TUTTI_ESYS", "no/such/dump.xml", "TUTTI_TOPO_DUMP_FILE");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(a_captured_root_is_detected),
		TEST(this_machine_is_detected),
		TEST(a_file_is_laid_over_and_written),
		TEST(what_is_named_and_cannot_be_used_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
