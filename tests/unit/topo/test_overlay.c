/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/xml_edit.h"
#include "topo/tree/overlay.h"
#include "topo/tree/schema.h"
#include "util/error.h"
#include "util/fault.h"

static struct tti_xml_doc *read_text(const char *text, const char *source)
{
	struct tti_xml_doc *doc = NULL;

	if (tti_xml_read(text, strlen(text), source, &doc) != TUTTI_OK ||
	    tti_schema_check(doc) != TUTTI_OK)
		fail_msg("%s", tti_error_text());
	return doc;
}

static struct tti_xml_doc *read_data(const char *name)
{
	struct tti_xml_doc *doc = NULL;
	char path[400];

	snprintf(path, sizeof(path), "%s/topologies/%s", TEST_DATA, name);
	if (tti_xml_read_file(path, &doc) != TUTTI_OK)
		fail_msg("%s", tti_error_text());
	return doc;
}

static struct tti_xml_doc *lay(const struct tti_xml_doc *under, const struct tti_xml_doc *over)
{
	struct tti_xml_doc *out = NULL;

	if (tti_overlay(under, over, &out) != TUTTI_OK)
		fail_msg("%s", tti_error_text());
	return out;
}

/* The first element of that name with that attribute. */
static struct tti_xml *get(const struct tti_xml_doc *doc, const char *name, const char *attr,
			   const char *value)
{
	for (struct tti_xml *node = doc->root; node; node = tti_xml_walk(node)) {
		const char *have = tti_xml_get(node, attr);

		if (tti_xml_is(node, name) && have && strcmp(have, value) == 0)
			return node;
	}
	return NULL;
}

static size_t count(const struct tti_xml_doc *doc, const char *name)
{
	size_t n = 0;

	for (const struct tti_xml *node = doc->root; node; node = tti_xml_walk(node))
		n += tti_xml_is(node, name);
	return n;
}

/* What `under` and `over` give, written without indentation. */
static void expect(const char *under, const char *over, const char *want)
{
	struct tti_xml_doc *a = read_text(under, "this machine"), *b = read_text(over, "t.xml");
	struct tti_xml_doc *out = lay(a, b), *wanted = read_text(want, "wanted");

	if (!xml_same(out->root, wanted->root)) {
		struct tti_strbuf buf = { 0 };

		tti_xml_write(out, &buf);
		fail_msg("%s\nover %s\ngives %s\nnot %s", over, under, buf.text, want);
	}
	tti_xml_free(a);
	tti_xml_free(b);
	tti_xml_free(out);
	tti_xml_free(wanted);
}

/* -- Clouds ----------------------------------------------------------------------- */

/* All devices flat below one CPU of which the kernel knows no locality: how a VM of
 * that machine looks. */
static void flatten(struct tti_xml_doc *doc)
{
	struct tti_xml *flat = tti_xml_add(doc, doc->root, "cpu"), *next, *extra;

	assert_true(tti_xml_set(doc, flat, "host_hash", "0xabc") &&
		    tti_xml_set(doc, flat, "numaid", "-1") &&
		    tti_xml_set(doc, flat, "affinity", "ffffffff,ffffffff,ffffffff"));
	for (struct tti_xml *node = doc->root; node; node = next) {
		next = tti_xml_walk(node);
		if (!tti_xml_is(node, "pci") || node->parent == flat ||
		    strcmp(tti_xml_get(node, "class"), "0x060400") == 0)
			continue;
		assert_true(tti_xml_set(doc, node, "link_speed", "Unknown"));
		xml_move(node, flat);
		next = doc->root;
	}
	while (doc->root->first != flat)
		tti_xml_unlink(doc->root->first);
	extra = tti_xml_add(doc, flat, "nic");
	extra = tti_xml_add(doc, extra, "net");
	assert_true(tti_xml_set(doc, extra, "name", "eth0") && tti_xml_set(doc, extra, "dev", "8"));
	extra = tti_xml_add(doc, flat, "pci");
	assert_true(tti_xml_set(doc, extra, "busid", "aaaa:00:00.0"));
}

/* Azure ships the switches and CPUs of an NDv4 without GPUs and NICs. */
static void a_cloud_file_gives_a_flat_machine_its_switches(void **state)
{
	struct tti_xml_doc *whole = read_data("azhpc-images__ndv4-topo.xml");
	struct tti_xml_doc *file = read_data("raw/azhpc-images__ndv4-topo.xml");
	struct tti_xml_doc *vm, *out;
	struct tti_xml *eth0;

	(void)state;
	assert_int_equal(tti_xml_copy(whole, &vm), TUTTI_OK);
	flatten(vm);
	assert_int_equal(count(vm, "cpu"), 1);
	assert_int_equal(count(vm, "pci"), 17);
	assert_int_equal(count(file, "gpu"), 0);
	out = lay(vm, file);
	assert_int_equal(count(out, "cpu"), 4);
	assert_int_equal(count(out, "gpu"), 8);
	assert_int_equal(count(out, "nic"), 9);
	assert_int_equal(count(out, "nvlink"), count(whole, "nvlink"));
	for (const struct tti_xml *want = whole->root; want; want = tti_xml_walk(want)) {
		const struct tti_xml *have;

		if (!tti_xml_is(want, "pci"))
			continue;
		have = get(out, "pci", "busid", tti_xml_get(want, "busid"));
		assert_non_null(have);
		assert_string_equal(tti_xml_get(have, "link_speed"), "16 GT/s");
		assert_string_equal(have->parent->name, want->parent->name);
		if (tti_xml_is(want->parent, "cpu"))
			assert_string_equal(tti_xml_get(have->parent, "numaid"),
					    tti_xml_get(want->parent, "numaid"));
		else
			assert_string_equal(tti_xml_get(have->parent, "busid"),
					    tti_xml_get(want->parent, "busid"));
		if (want->first && !tti_xml_is(want->first, "pci"))
			assert_true(xml_same(have->first, want->first));
	}
	for (const struct tti_xml *cpu = out->root->first; cpu; cpu = tti_xml_next(cpu, "cpu")) {
		assert_string_equal(tti_xml_get(cpu, "host_hash"), "0xabc");
		assert_string_not_equal(tti_xml_get(cpu, "affinity"), "ffffffff,ffffffff,ffffffff");
	}
	eth0 = get(out, "net", "name", "eth0");
	assert_ptr_equal(eth0->parent->parent, out->root->first);
	assert_ptr_equal(get(out, "pci", "busid", "aaaa:00:00.0")->parent, out->root->first);
	tti_xml_free(whole);
	tti_xml_free(file);
	tti_xml_free(vm);
	tti_xml_free(out);
}

static void every_file_over_itself_is_itself(void **state)
{
	static const char *const dirs[] = { TEST_DATA "/topologies/*.xml",
					    TEST_DATA "/topologies/raw/*.xml" };
	size_t n = 0;

	(void)state;
	for (int i = 0; i < 2; i++) {
		glob_t files;

		assert_int_equal(glob(dirs[i], 0, NULL, &files), 0);
		for (size_t f = 0; f < files.gl_pathc; f++) {
			struct tti_xml_doc *doc, *out;

			assert_int_equal(tti_xml_read_file(files.gl_pathv[f], &doc), TUTTI_OK);
			if (tti_schema_check(doc) == TUTTI_OK) {
				out = lay(doc, doc);
				if (!xml_same(doc->root, out->root))
					fail_msg("%s", files.gl_pathv[f]);
				tti_xml_free(out);
				n++;
			}
			tti_xml_free(doc);
		}
		globfree(&files);
	}
	assert_int_equal(n, 36);
}

/* -- One rule each ---------------------------------------------------------------- */

#define DOC(inside) "<system version='1'>" inside "</system>"
#define CPU(inside) DOC("<cpu numaid='0'>" inside "</cpu>")

static void the_empty_file_changes_nothing(void **state)
{
	(void)state;
	expect(CPU("<pci busid='0000:01:00.0'/><nic><net name='a'/></nic><foo/>"), DOC(""),
	       CPU("<pci busid='0000:01:00.0'/><nic><net name='a'/></nic><foo/>"));
	expect(DOC(""), CPU("<foo/>"), CPU("<foo/>"));
}

static void what_the_file_states_wins(void **state)
{
	(void)state;
	expect(DOC("<cpu numaid='0' affinity='ff' arch='x86_64'><pci busid='0000:01:00.0' "
		   "class='0x030200' link_width='8' vendor='0x10de'/></cpu>"),
	       DOC("<cpu affinity='0f' numaid='0'><pci link_width='16' busid='00000000:01:00.0' "
		   "class=''/></cpu>"),
	       DOC("<cpu affinity='0f' numaid='0' arch='x86_64'><pci link_width='16' "
		   "busid='00000000:01:00.0' class='' vendor='0x10de'/></cpu>"));
}

static void the_file_decides_where_a_function_hangs(void **state)
{
	(void)state;
	/* ... and what hangs below it comes along; where there was a switch, it stays. */
	expect(CPU("<pci busid='0000:01:00.0'><pci busid='0000:02:00.0'><gpu dev='0'/>"
		   "<pci busid='0000:09:00.0'/></pci><pci busid='0000:03:00.0'/></pci>"),
	       DOC("<cpu numaid='1'><pci busid='0000:05:00.0'><pci busid='0000:02:00.0'/></pci>"
		   "</cpu>"),
	       DOC("<cpu numaid='1'><pci busid='0000:05:00.0'><pci busid='0000:02:00.0'>"
		   "<gpu dev='0'/><pci busid='0000:09:00.0'/></pci></pci></cpu>"
		   "<cpu numaid='0'><pci busid='0000:01:00.0'><pci busid='0000:03:00.0'/></pci>"
		   "</cpu>"));
	/* Upside down. */
	expect(CPU("<pci busid='0000:01:00.0'><pci busid='0000:02:00.0'/></pci>"),
	       CPU("<pci busid='0000:02:00.0'><pci busid='0000:01:00.0'/></pci>"),
	       CPU("<pci busid='0000:02:00.0'><pci busid='0000:01:00.0'/></pci>"));
}

static void cpus_are_kept_or_dissolved(void **state)
{
	(void)state;
	expect(DOC("<cpu numaid='-1' arch='x86_64' vendor='GenuineIntel' familyid='6' "
		   "affinity='ff'><pci busid='0000:01:00.0'/></cpu>"),
	       DOC("<cpu numaid='0'/><cpu numaid='1' vendor='AuthenticAMD'/>"),
	       DOC("<cpu numaid='0' arch='x86_64' vendor='GenuineIntel' familyid='6'>"
		   "<pci busid='0000:01:00.0'/></cpu>"
		   "<cpu numaid='1' vendor='AuthenticAMD' arch='x86_64'/>"));
	expect(DOC("<cpu numaid='-1'><pci busid='0000:01:00.0'/></cpu>"),
	       DOC("<cpu numaid='-1' arch='arm64'/>"),
	       DOC("<cpu numaid='-1' arch='arm64'><pci busid='0000:01:00.0'/></cpu>"));
	expect(DOC("<cpu numaid='0' familyid='6' vendor='GenuineIntel'/>"),
	       DOC("<cpu numaid='0' vendor='AuthenticAMD'/>"),
	       DOC("<cpu numaid='0' vendor='AuthenticAMD'/>"));
}

static void nets_are_known_by_name_wherever_they_hang(void **state)
{
	(void)state;
	expect(CPU("<nic><net name='a' dev='0' speed='100'/><net name='b' dev='1'/></nic>"
		   "<nic><net name='c'/></nic>"),
	       CPU("<pci busid='0000:01:00.0'><nic><net name='a' dev='5'/><net name='c'/></nic>"
		   "</pci>"),
	       CPU("<pci busid='0000:01:00.0'><nic><net name='a' dev='5' speed='100'/>"
		   "<net name='c'/></nic></pci><nic><net name='b' dev='1'/></nic>"));
	/* Two ports of one name; a port that is not stated; a name that is not. */
	expect(CPU("<nic><net name='a' port='1' speed='1'/><net name='a' port='2' "
		   "speed='2'/></nic>"),
	       CPU("<nic><net name='a' port='2'/></nic>"),
	       CPU("<nic><net name='a' port='2' speed='2'/><net name='a' port='1' "
		   "speed='1'/></nic>"));
	expect(CPU("<nic><net name='a' port='1' speed='1'/></nic>"),
	       CPU("<nic><net name='a'/></nic>"),
	       CPU("<nic><net name='a' port='1' speed='1'/></nic>"));
	expect(CPU("<nic><net name='a' dev='3' speed='1'/></nic>"),
	       CPU("<nic><net dev='3'/></nic>"),
	       CPU("<nic><net dev='3' name='a' speed='1'/></nic>"));
	/* Another net of that number. */
	expect(CPU("<nic><net name='b' dev='0'/><net name='c' dev='4'/></nic>"),
	       CPU("<nic><net name='a' dev='0'/></nic>"),
	       CPU("<nic><net name='a' dev='0'/></nic>"
		   "<nic><net name='b' dev='5'/><net name='c' dev='4'/></nic>"));
}

static void links_are_known_by_target(void **state)
{
	(void)state;
	expect(CPU("<pci busid='0000:01:00.0'><gpu dev='0' sm='90'>"
		   "<nvlink target='0000:02:00.0' count='2' tclass='0x030200'/>"
		   "<nvlink target='0000:03:00.0' count='2'/><c2c bw='1'/></gpu></pci>"),
	       CPU("<pci busid='0000:01:00.0'><gpu dev='7'>"
		   "<nvlink target='0000:02:00.0' count='4'/></gpu></pci>"),
	       CPU("<pci busid='0000:01:00.0'><gpu dev='7' sm='90'>"
		   "<nvlink target='0000:02:00.0' count='4' tclass='0x030200'/>"
		   "<nvlink target='0000:03:00.0' count='2'/><c2c bw='1'/></gpu></pci>"));
}

static void hosts_are_told_apart(void **state)
{
	(void)state;
	/* One here, one there: the file may come from another machine of that kind. */
	expect(DOC("<cpu host_hash='0x1' numaid='0' arch='a'/>"),
	       DOC("<cpu host_hash='0x2' numaid='0'/><cpu host_hash='0x2' numaid='1'/>"),
	       DOC("<cpu host_hash='0x1' numaid='0' arch='a'/>"
		   "<cpu host_hash='0x1' numaid='1' arch='a'/>"));
	expect(DOC("<cpu numaid='0'/>"), DOC("<cpu host_hash='0x2' numaid='1'/>"),
	       DOC("<cpu host_hash='0x2' numaid='1'/><cpu numaid='0' host_hash='0x2'/>"));
	/* One number in several words. */
	expect(DOC("<cpu host_hash='0x10' numaid='0'/>"),
	       DOC("<cpu host_hash='16' numaid='0'/><cpu host_hash='0x010' numaid='1'/>"),
	       DOC("<cpu host_hash='16' numaid='0'/><cpu host_hash='0x010' numaid='1'/>"));
	expect(DOC("<cpu host_hash='' numaid='0'/>"), DOC("<cpu numaid='1'/>"),
	       DOC("<cpu numaid='1'/><cpu host_hash='' numaid='0'/>"));
	/* A redacted one is one as well. */
	expect(DOC("<cpu host_hash='0xHASH_A' numaid='0'/><cpu host_hash='0x1' numaid='0'/>"),
	       DOC("<cpu host_hash='0xHASH_A' numaid='0' arch='a'/>"),
	       DOC("<cpu host_hash='0xHASH_A' numaid='0' arch='a'/>"
		   "<cpu host_hash='0x1' numaid='0'/>"));
	/* Several. */
	expect(DOC("<cpu host_hash='0x1' numaid='0'><nic><net name='a' dev='0'/></nic></cpu>"
		   "<cpu host_hash='0x3' numaid='0'><nic><net name='b' dev='0'/></nic></cpu>"),
	       DOC("<cpu host_hash='0x2' numaid='0'><nic><net name='a' dev='0'/></nic></cpu>"
		   "<cpu host_hash='1' numaid='0'><nic><net name='a' speed='5'/></nic></cpu>"),
	       DOC("<cpu host_hash='0x2' numaid='0'><nic><net name='a' dev='0'/></nic></cpu>"
		   "<cpu host_hash='1' numaid='0'><nic><net name='a' speed='5' dev='0'/></nic>"
		   "</cpu><cpu host_hash='0x3' numaid='0'><nic><net name='b' "
		   "dev='0'/></nic></cpu>"));
}

static void what_nobody_knows_is_taken_over(void **state)
{
	struct tti_xml_doc *a = read_text(CPU("<foo b='2'><x/></foo><bar/>"), "this machine");
	struct tti_xml_doc *b =
		read_text("<!--p-->" CPU("<!--c--><foo a='1'/>") "<!--e-->", "t.xml");
	struct tti_xml_doc *out = lay(a, b);
	struct tti_strbuf buf = { 0 };

	(void)state;
	tti_xml_write(out, &buf);
	assert_string_equal(buf.text, "<!--p-->\n<system version=\"1\">\n  <cpu numaid=\"0\">\n"
				      "    <!--c-->\n    <foo a=\"1\"/>\n    <bar/>\n  </cpu>\n"
				      "</system>\n<!--e-->\n");
	tti_strbuf_release(&buf);
	tti_xml_free(a);
	tti_xml_free(b);
	tti_xml_free(out);
}

static void what_together_is_none_is_refused(void **state)
{
	struct tti_xml_doc *a =
		read_text(CPU("<pci busid='0000:01:00.0'><pcilink target='0000:02:00.0'/></pci>"
			      "<pci busid='0000:02:00.0'/>"),
			  "this machine");
	struct tti_xml_doc *b = read_text(
		CPU("<pci busid='0000:01:00.0'><pci busid='0000:02:00.0'/></pci>"), "t.xml");
	struct tti_xml_doc *out = NULL;

	(void)state;
	assert_int_equal(tti_overlay(a, b, &out), TUTTI_EINVAL);
	assert_non_null(strstr(tti_error_text(), "a cycle"));
	assert_null(out);
	tti_xml_free(a);
	tti_xml_free(b);
}

static void every_allocation_may_fail(void **state)
{
	struct tti_xml_doc *over = read_data("raw/azhpc-images__ndv4-topo.xml");
	struct tti_xml_doc *under = read_data("azhpc-images__ndv4-topo.xml");
	char fault[20];
	int failed = 0;

	(void)state;
	flatten(under);
	for (int i = 1; i < 2000; i++) {
		struct tti_xml_doc *out = NULL;
		tutti_status st;

		snprintf(fault, sizeof(fault), "mem:%d", i);
		tti_fault_set(fault);
		st = tti_overlay(under, over, &out);
		tti_fault_set(NULL);
		if (st == TUTTI_OK) {
			tti_xml_free(out);
			break;
		}
		assert_int_equal(st, TUTTI_ENOMEM);
		failed++;
	}
	assert_in_range(failed, 50, 1500);
	tti_xml_free(over);
	tti_xml_free(under);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_cloud_file_gives_a_flat_machine_its_switches),
		cmocka_unit_test(every_file_over_itself_is_itself),
		cmocka_unit_test(the_empty_file_changes_nothing),
		cmocka_unit_test(what_the_file_states_wins),
		cmocka_unit_test(the_file_decides_where_a_function_hangs),
		cmocka_unit_test(cpus_are_kept_or_dissolved),
		cmocka_unit_test(nets_are_known_by_name_wherever_they_hang),
		cmocka_unit_test(links_are_known_by_target),
		cmocka_unit_test(hosts_are_told_apart),
		cmocka_unit_test(what_nobody_knows_is_taken_over),
		cmocka_unit_test(what_together_is_none_is_refused),
		cmocka_unit_test(every_allocation_may_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
