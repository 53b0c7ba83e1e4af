/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <glob.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/xml_edit.h"
#include "topo/tree/busid.h"
#include "topo/tree/xml.h"
#include "util/error.h"
#include "util/fault.h"

static struct tti_xml_doc *read_text(const char *text)
{
	struct tti_xml_doc *doc = NULL;

	if (tti_xml_read(text, strlen(text), "t.xml", &doc) != TUTTI_OK)
		fail_msg("%s", tti_error_text());
	return doc;
}

static char *written(const struct tti_xml_doc *doc)
{
	struct tti_strbuf buf = { 0 };
	char *text;

	tti_xml_write(doc, &buf);
	text = tti_strbuf_take(&buf);
	assert_non_null(text);
	return text;
}

/* -- Bus ids ---------------------------------------------------------------------- */

static void bus_ids_keep_their_value(void **state)
{
	static const struct {
		const char *text, *again;
		uint64_t value;
	} good[] = {
		{ "0000:3b:00.0", "0000:3b:00.0", 0x3b000 },
		{ "0000:3B:1F.7", "0000:3b:1f.7", 0x3b1f7 },
		{ "00000000:3b:00.0", "0000:3b:00.0", 0x3b000 },
		{ "fffffff:ff:ff.0", "fffffff:ff:ff.0", UINT64_C(0xfffffffffff0) },
		{ "ffff:ff:01.0", "ffff:ff:01.0", UINT64_C(0xffffff010) },
		{ "10000:e1:00.0", "10000:e1:00.0", UINT64_C(0x10000) << 20 | 0xe1000 },
		{ "ffffffff:00:00.f", "ffffffff:00:00.f", UINT64_C(0xffffffff0000f) },
	};
	char buf[TTI_BUSID_TEXT];
	uint64_t value;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_true(tti_busid_parse(good[i].text, &value));
		assert_true(value == good[i].value);
		assert_string_equal(tti_busid_format(value, buf), good[i].again);
	}
	assert_true(TTI_BUSID_CARD(UINT64_C(0x3b001)) == 0x3b000);
}

static void what_is_no_bus_id(void **state)
{
	static const char *const bad[] = {
		"",
		"0",
		"3b:00.0",
		"000:3b:00.0",
		"000000000:3b:00.0",
		"0000:3b:00",
		"0000:3b:00.",
		"0000:3b:00.00",
		"0000:3b:0.0",
		"0000:3b:000.0",
		"0000:3:00.0",
		"0000:3g:00.0",
		" 0000:3b:00.0",
		"0000:3b:00.0 ",
		"-000:3b:00.0",
		"0x00:3b:00.0",
		"0000.3b.00.0",
	};
	uint64_t value;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (tti_busid_parse(bad[i], &value))
			fail_msg("%s is none", bad[i]);
}

/* -- Reading and writing ---------------------------------------------------------- */

static void a_tree_is_read_as_it_stands(void **state)
{
	struct tti_xml_doc *doc = read_text("<!-- a --><!--b-->\n"
					    "<system version='1'>\n"
					    "  <!-- c -->\n"
					    "  <cpu numaid=\"0\" x=\"&lt;&#65;&amp;\">\n"
					    "\t<odd/><pci busid=\"0000:01:00.0\"></pci>\n"
					    "  </cpu>\n"
					    "</system><!--z-->\n");
	const struct tti_xml *cpu = tti_xml_find(doc->root, "cpu", NULL, NULL);
	const struct tti_xml *pci;

	(void)state;
	assert_string_equal(doc->prolog->comment, " a ");
	assert_string_equal(doc->prolog->next->comment, "b");
	assert_string_equal(doc->root->next->comment, "z");
	assert_true(tti_xml_is(doc->root, "system"));
	assert_int_equal(doc->root->line, 2);
	assert_string_equal(doc->root->first->comment, " c ");
	assert_int_equal(cpu->line, 4);
	assert_int_equal(cpu->column, 3);
	assert_string_equal(tti_xml_get(cpu, "x"), "<A&");
	assert_null(tti_xml_get(cpu, "y"));
	pci = tti_xml_next(cpu->first, NULL);
	assert_true(tti_xml_is(pci, "pci") && !pci->first && pci->parent == cpu);
	assert_ptr_equal(tti_xml_find(cpu, NULL, "busid", "0000:01:00.0"), pci);
	assert_null(tti_xml_find(cpu, "odd", "busid", "0000:01:00.0"));
	assert_ptr_equal(tti_xml_walk(doc->root), cpu);
	assert_ptr_equal(tti_xml_walk(cpu), cpu->first);
	assert_ptr_equal(tti_xml_walk(cpu->first), pci);
	assert_null(tti_xml_walk(pci));
	tti_xml_free(doc);
}

/* XML does not allow them, but files of AMD have lines of them. */
static void dashes_in_comments_are_read(void **state)
{
	static const struct {
		const char *text, *comment;
	} as[] = {
		{ "<!------ a ------><s/>", "==== a ====" },
		{ "<!-- b--c - d --><s/>", " b==c - d " },
		{ "<!-- e - f ---><s/>", " e - f =" },
		{ "<!---g--><s/>", "-g" },
		{ "<!--\n-----\n--><s/>", "\n=====\n" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(as) / sizeof(as[0]); i++) {
		struct tti_xml_doc *doc = read_text(as[i].text);

		assert_string_equal(doc->prolog->comment, as[i].comment);
		tti_xml_free(doc);
	}
}

static void what_is_written_is_plain(void **state)
{
	struct tti_xml_doc *doc =
		read_text("<?xml version='1.0' encoding='utf-8'?><!-- a\n b --><system version='1' "
			  "q='&quot;&apos;&lt;&gt;&amp;'>"
			  "<cpu t='&#9;&#10;&#13; \n'><!--in--></cpu><n/></system><!-- z -->");
	char *text = written(doc);

	(void)state;
	assert_string_equal(text, "<!-- a\n b -->\n"
				  "<system version=\"1\" q=\"&quot;'&lt;&gt;&amp;\">\n"
				  "  <cpu t=\"&#9;&#10;&#13;  \">\n"
				  "    <!--in-->\n"
				  "  </cpu>\n"
				  "  <n/>\n"
				  "</system>\n"
				  "<!-- z -->\n");
	free(text);
	tti_xml_free(doc);
}

static size_t round_trip(const char *path)
{
	struct tti_xml_doc *doc, *again;
	char *first, *second;
	size_t n = 0;

	if (tti_xml_read_file(path, &doc) != TUTTI_OK)
		fail_msg("%s", tti_error_text());
	first = written(doc);
	again = read_text(first);
	second = written(again);
	assert_true(xml_same(doc->root, again->root));
	assert_string_equal(first, second);
	for (const struct tti_xml *node = doc->root; node; node = tti_xml_walk(node))
		n++;
	free(first);
	free(second);
	tti_xml_free(doc);
	tti_xml_free(again);
	return n;
}

static void every_file_survives_a_round_trip(void **state)
{
	static const char *const dirs[] = { TEST_DATA "/topologies/*.xml",
					    TEST_DATA "/topologies/raw/*.xml" };
	static const size_t want[] = { 30, 8 };

	(void)state;
	for (int i = 0; i < 2; i++) {
		glob_t files;

		assert_int_equal(glob(dirs[i], 0, NULL, &files), 0);
		assert_int_equal(files.gl_pathc, want[i]);
		for (size_t f = 0; f < files.gl_pathc; f++)
			assert_true(round_trip(files.gl_pathv[f]) > 5);
		globfree(&files);
	}
}

/* What the reader makes of a file, set beside what its text holds. */
static void nothing_of_a_file_is_lost(void **state)
{
	struct tti_xml_doc *doc;
	size_t nnets = 0, nlinks = 0, nattrs = 0;

	(void)state;
	assert_int_equal(
		tti_xml_read_file(TEST_DATA "/topologies/azhpc-images__ndv4-topo.xml", &doc),
		TUTTI_OK);
	for (const struct tti_xml *node = doc->root; node; node = tti_xml_walk(node)) {
		nnets += tti_xml_is(node, "net");
		nlinks += tti_xml_is(node, "nvlink");
		nattrs += node->nattrs;
	}
	assert_int_equal(nnets, 8);
	assert_int_equal(nlinks, 8);
	assert_true(nattrs > 200);
	tti_xml_free(doc);
}

/* -- Building --------------------------------------------------------------------- */

static void a_tree_is_built(void **state)
{
	struct tti_xml_doc *doc, *copy;
	struct tti_xml *cpu, *pci, *gpu, *twin;
	char *text;

	(void)state;
	assert_int_equal(tti_xml_create("this machine", &doc), TUTTI_OK);
	cpu = tti_xml_add(doc, doc->root, "cpu");
	pci = tti_xml_add(doc, cpu, "pci");
	gpu = tti_xml_add(doc, pci, "gpu");
	assert_true(tti_xml_setf(doc, cpu, "numaid", "%d", 0));
	assert_true(tti_xml_set(doc, cpu, "numaid", "1"));
	assert_true(tti_xml_set(doc, pci, "gone", "1"));
	assert_true(tti_xml_set(doc, pci, "busid", "0000:01:00.0"));
	xml_unset(pci, "gone");
	xml_unset(pci, "gone");
	assert_true(tti_xml_set(doc, gpu, "name", "a\x01\xff\xc3\xa4\xed\xa0\x80<"));
	twin = tti_xml_add_copy(doc, doc->root, cpu);
	xml_move(gpu, doc->root);
	tti_xml_unlink(twin->first);
	assert_int_equal(tti_xml_copy(doc, &copy), TUTTI_OK);
	assert_true(xml_same(doc->root, copy->root));
	assert_true(tti_xml_set(copy, copy->root->first, "numaid", "2"));
	assert_false(xml_same(doc->root, copy->root));
	tti_xml_free(copy);
	text = written(doc);
	assert_string_equal(text, "<system version=\"1\">\n"
				  "  <cpu numaid=\"1\">\n"
				  "    <pci busid=\"0000:01:00.0\"/>\n"
				  "  </cpu>\n"
				  "  <cpu numaid=\"1\"/>\n"
				  "  <gpu name=\"a??\xc3\xa4???&lt;\"/>\n"
				  "</system>\n");
	free(text);
	tti_xml_free(doc);
}

static void sameness_sees_every_difference(void **state)
{
	static const char *const other[] = {
		"<a b='1' c='2'><d/><e/></a>",        "<x b='1' c='2'><d/><e><f/></e></x>",
		"<a c='2' b='1'><d/><e><f/></e></a>", "<a b='1'><d/><e><f/></e></a>",
		"<a b='1' c='3'><d/><e><f/></e></a>", "<a b='1' c='2'><d/><e><f/></e><g/></a>",
		"<a b='1' c='2'><d><e/><f/></d></a>", "<a b='1' c='2'><d/><e/><f/></a>",
	};
	struct tti_xml_doc *doc = read_text("<a b='1' c='2'><d/><e><!-- --><f/></e></a>");
	struct tti_xml_doc *twin = read_text("<!-- --><a b='1' c='2'><d/><e><f/></e></a>");

	(void)state;
	assert_true(xml_same(doc->root, twin->root));
	assert_true(xml_same(twin->root, doc->root));
	for (size_t i = 0; i < sizeof(other) / sizeof(other[0]); i++) {
		struct tti_xml_doc *not = read_text(other[i]);

		assert_false(xml_same(doc->root, not ->root));
		assert_false(xml_same(not ->root, doc->root));
		tti_xml_free(not );
	}
	tti_xml_free(doc);
	tti_xml_free(twin);
}

/* -- Typed attributes ------------------------------------------------------------- */

static void expect_int(const char *value, int64_t want)
{
	struct tti_xml_doc *doc;
	int64_t out;

	assert_int_equal(tti_xml_create("t", &doc), TUTTI_OK);
	assert_true(tti_xml_set(doc, doc->root, "n", value));
	assert_int_equal(tti_xml_int(doc, doc->root, "n", -5, 1000, 77, &out), TUTTI_OK);
	assert_true(out == want);
	tti_xml_free(doc);
}

static void numbers_are_what_they_say(void **state)
{
	static const char *const no_int[] = { "x",   "1x",   " 1", "1 ",
					      "--1", "1.0",  "-6", "1001",
					      "0x",  "0x1g", "+1", "nan",
					      "inf", "1e3",  "-",  "99999999999999999999" };
	static const char *const no_hex[] = { "-1", "0x100000000", "g", "0x0x1", " 1", "+1" };
	static const char *const no_real[] = { "nan",  "inf", "-1",   "-0.5", "1e999", "0x10",
					       "1.5x", ".",   "1001", "-inf", " 1" };
	struct tti_xml_doc *doc;
	uint64_t hex;
	double real;
	int64_t out;

	(void)state;
	expect_int("-5", -5);
	expect_int("1000", 1000);
	expect_int("0x1F", 31);
	expect_int("007", 7);
	expect_int("", 77);
	assert_int_equal(tti_xml_create("t", &doc), TUTTI_OK);
	assert_int_equal(tti_xml_int(doc, doc->root, "n", 0, 9, 3, &out), TUTTI_OK);
	assert_int_equal(out, 3);
	for (size_t i = 0; i < sizeof(no_int) / sizeof(no_int[0]); i++) {
		assert_true(tti_xml_set(doc, doc->root, "n", no_int[i]));
		assert_int_equal(tti_xml_int(doc, doc->root, "n", -5, 1000, 0, &out), TUTTI_EINVAL);
		assert_non_null(strstr(tti_error_text(), no_int[i]));
	}
	for (size_t i = 0; i < sizeof(no_hex) / sizeof(no_hex[0]); i++) {
		assert_true(tti_xml_set(doc, doc->root, "n", no_hex[i]));
		assert_int_equal(tti_xml_hex(doc, doc->root, "n", UINT32_MAX, 0, &hex),
				 TUTTI_EINVAL);
	}
	for (size_t i = 0; i < sizeof(no_real) / sizeof(no_real[0]); i++) {
		assert_true(tti_xml_set(doc, doc->root, "n", no_real[i]));
		assert_int_equal(tti_xml_real(doc, doc->root, "n", 1000, 0, &real), TUTTI_EINVAL);
	}
	assert_true(tti_xml_set(doc, doc->root, "n", "0xd3524fac75ffbc89"));
	assert_int_equal(tti_xml_hex(doc, doc->root, "n", UINT64_MAX, 0, &hex), TUTTI_OK);
	assert_true(hex == UINT64_C(0xd3524fac75ffbc89));
	assert_true(tti_xml_set(doc, doc->root, "n", "0.000000"));
	assert_int_equal(tti_xml_real(doc, doc->root, "n", 1000, 5, &real), TUTTI_OK);
	assert_true(fabs(real) <= 0);
	assert_int_equal(tti_xml_real(doc, doc->root, "absent", 1000, 5, &real), TUTTI_OK);
	assert_true(fabs(real - 5) <= 0);
	tti_xml_free(doc);
}

static void a_message_shows_the_place_and_never_too_much(void **state)
{
	struct tti_xml_doc *doc =
		read_text("<system>\n <pci busid='0000:01:00.0' n='z'/>\n</system>");
	struct tti_xml *pci = tti_xml_find(doc->root, "pci", NULL, NULL);
	char large[400];
	int64_t out;

	(void)state;
	assert_int_equal(tti_xml_int(doc, pci, "n", 0, 9, 0, &out), TUTTI_EINVAL);
	assert_string_equal(tti_error_text(), "t.xml:2:2: <pci busid=\"0000:01:00.0\">: n=\"z\" is "
					      "not a number from 0 to 9: correct it, or delete the "
					      "attribute, which then counts as not known");
	memset(large, 'y', sizeof(large) - 1);
	large[sizeof(large) - 1] = '\0';
	large[10] = '\n';
	assert_true(tti_xml_set(doc, pci, "busid", large));
	assert_true(tti_xml_set(doc, pci, "n", large));
	assert_int_equal(tti_xml_int(doc, pci, "n", 0, 9, 0, &out), TUTTI_EINVAL);
	assert_true(strlen(tti_error_text()) < 300);
	assert_null(strchr(tti_error_text(), '\n'));
	tti_xml_free(doc);
}

/* -- Out of memory ---------------------------------------------------------------- */

static tutti_status read_copy_write(const char *text)
{
	struct tti_xml_doc *doc = NULL, *copy = NULL;
	struct tti_strbuf buf = { 0 };
	tutti_status st = tti_xml_read(text, strlen(text), "t.xml", &doc);

	if (st == TUTTI_OK)
		st = tti_xml_copy(doc, &copy);
	if (st == TUTTI_OK) {
		tti_xml_write(copy, &buf);
		if (buf.failed)
			st = TUTTI_ENOMEM;
	}
	tti_strbuf_release(&buf);
	tti_xml_free(doc);
	tti_xml_free(copy);
	return st;
}

static void every_allocation_may_fail(void **state)
{
	char text[9000], fault[20];
	int failed = 0;

	(void)state;
	snprintf(text, sizeof(text), "<!--a--><s v='%08000d'><c d='1'/><!--b--><e/></s><!--z-->",
		 1);
	for (int i = 1; i < 200; i++) {
		tutti_status st;

		snprintf(fault, sizeof(fault), "mem:%d", i);
		tti_fault_set(fault);
		st = read_copy_write(text);
		tti_fault_set(NULL);
		if (st == TUTTI_OK)
			break;
		assert_int_equal(st, TUTTI_ENOMEM);
		failed++;
	}
	assert_in_range(failed, 10, 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bus_ids_keep_their_value),
		cmocka_unit_test(what_is_no_bus_id),
		cmocka_unit_test(a_tree_is_read_as_it_stands),
		cmocka_unit_test(dashes_in_comments_are_read),
		cmocka_unit_test(what_is_written_is_plain),
		cmocka_unit_test(every_file_survives_a_round_trip),
		cmocka_unit_test(nothing_of_a_file_is_lost),
		cmocka_unit_test(a_tree_is_built),
		cmocka_unit_test(sameness_sees_every_difference),
		cmocka_unit_test(numbers_are_what_they_say),
		cmocka_unit_test(a_message_shows_the_place_and_never_too_much),
		cmocka_unit_test(every_allocation_may_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
