/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "insight/topo/pci_ids.h"
#include "topo/graph/words.h"
#include "unit/topo/graphs.h"
#include "unit/topo/tree.h"

#define FUNCTION(busid, id) "<pci busid='" busid "' class='0x030200' " id "><gpu dev='0'/></pci>"

static const char list[] = "# a list\n"
			   "\n"
			   "10de  NVIDIA Corporation\n"
			   "\t2330  GH100 [H100 of the list]\n"
			   "\t7777  GX100 [X100 SXM]\n"
			   "\t\t10de 1234  a subsystem\n"
			   "\t7778  GX102\033[31m red\n"
			   "\t7779  [] \n"
			   "\tnone  of it\n"
			   "4321  A vendor\n"
			   "\t7777  A card of a length that no column of a tree could ever hold\n"
			   "C 03  Display controller\n"
			   "\t7778  no device\n";

static struct tree tree;

static int set_up(void **state)
{
	(void)state;
	tree_make(&tree);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	tree_remove(&tree);
	return 0;
}

static void expect_name(const char *id, const char *path, const char *want)
{
	char text[256], buf[TTI_WORDS_MAX];
	struct tti_graph *graph;

	snprintf(text, sizeof(text), "<cpu numaid='0'>" FUNCTION("0000:01:00.0", "%s") "</cpu>",
		 id);
	graph = graph_of(doc_of_text(text), TTI_MODEL_TUTTI);
	assert_int_equal(tti_pci_ids_name(graph, path), TUTTI_OK);
	tti_words_pci(&graph->nodes[graph->by_type[TTI_NODE_DEV][0]].pci, buf);
	assert_string_equal(buf, want);
	tti_graph_free(graph);
}

static void what_the_table_lacks_is_named_by_the_list(void **state)
{
	char path[4096];

	(void)state;
	tree_file(&tree, "pci.ids", list);
	snprintf(path, sizeof(path), "%s/pci.ids", tree.top);
	expect_name("vendor='0x10de' device='0x7777'", path, "NVIDIA X100 SXM");
	expect_name("vendor='0x10de' device='0x2330'", path, "NVIDIA H100 SXM"); /* our own */
	expect_name("vendor='0x10de' device='0x7778'", path, "NVIDIA GX102");
	expect_name("vendor='0x10de' device='0x7779'", path, "NVIDIA []");
	expect_name("vendor='0x10de' device='0x9999'", path, "NVIDIA GPU");
	expect_name("vendor='0x4321' device='0x7777'", path, "A card of a length that no colu");
	expect_name("vendor='0x1002' device='0x7778'", path, "AMD GPU");
}

static void without_a_list_nothing_is_named(void **state)
{
	char path[4096];

	(void)state;
	/* Whether or not this machine has a list: no such device is in it. */
	expect_name("vendor='0x10de' device='0x0001'", NULL, "NVIDIA GPU");
	snprintf(path, sizeof(path), "%s/none", tree.top);
	expect_name("vendor='0x10de' device='0x7777'", path, "NVIDIA GPU");
	expect_name("vendor='0x10de' device='0x7777'", tree.top, "NVIDIA GPU"); /* a folder */
	tree_file(&tree, "pci.ids", "\t7777  first\n10de\n\t7777  x\n");
	snprintf(path, sizeof(path), "%s/pci.ids", tree.top);
	expect_name("vendor='0x10de' device='0x7777'", path, "NVIDIA GPU");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_the_table_lacks_is_named_by_the_list, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(without_a_list_nothing_is_named, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
