/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "insight/topo/gather.h"
#include "topo/detect/detect.h"
#include "unit/topo/capture.h"
#include "util/strbuf.h"

/* What is gathered of a machine is detected as the machine is. */

static struct tti_xml_doc *detect(const char *root, bool all)
{
	const struct tti_detect_config config = { .sysfs_root = root, .all = all };
	struct tti_xml_doc *doc;

	assert_int_equal(tti_detect_machine(&config, &doc), TUTTI_OK);
	return doc;
}

static void gather(const char *root, const char *to)
{
	struct tti_gather_report report;
	struct tti_sysfs sysfs;

	assert_int_equal(tti_sysfs_open(root, &sysfs), TUTTI_OK);
	assert_int_equal(tti_gather(&sysfs, to, &report), TUTTI_OK);
	tti_sysfs_close(&sysfs);
	assert_true(report.nfiles > 10);
}

static void assert_same(const char *name, const struct tti_xml_doc *machine,
			const struct tti_xml_doc *copy)
{
	struct tti_strbuf want = { 0 }, have = { 0 };

	tti_xml_write(machine, &want);
	tti_xml_write(copy, &have);
	assert_false(want.failed || have.failed);
	if (strcmp(want.text, have.text) != 0)
		print_error("%s\n", name);
	assert_string_equal(have.text, want.text);
	tti_strbuf_release(&want);
	tti_strbuf_release(&have);
}

static void captured_machines(void **state)
{
	(void)state;
	for (size_t i = 0; i < NCAPTURES; i++) {
		struct capture capture;
		struct tree copy;

		capture_unpack(&capture, captures[i]);
		tree_make(&copy);
		gather(capture.root, copy.top);
		for (int all = 0; all < 2; all++) {
			struct tti_xml_doc *const there = detect(capture.root, all);
			struct tti_xml_doc *const here = detect(copy.top, all);

			assert_same(captures[i], there, here);
			tti_xml_free(there);
			tti_xml_free(here);
		}
		tree_remove(&copy);
		capture_remove(&capture);
	}
}

/* What a machine says of itself but for files: its name, and what its CPUs answer. */
static void drop_what_is_live(struct tti_xml_doc *doc)
{
	static const char *const live[] = { "host_hash", "vendor", "familyid", "modelid" };

	for (struct tti_xml *cpu = doc->root->first; cpu; cpu = tti_xml_next(cpu, "cpu")) {
		uint32_t n = 0;

		for (uint32_t i = 0; i < cpu->nattrs; i++) {
			bool is_live = false;

			for (size_t j = 0; j < sizeof(live) / sizeof(live[0]); j++)
				is_live = is_live || !strcmp(cpu->attrs[i].name, live[j]);
			if (!is_live)
				cpu->attrs[n++] = cpu->attrs[i];
		}
		cpu->nattrs = n;
	}
}

static bool has_gpu(const struct tti_xml_doc *doc)
{
	for (const struct tti_xml *node = doc->root; node; node = tti_xml_walk(node))
		if (tti_xml_is(node, "gpu"))
			return true;
	return false;
}

static void this_machine(void **state)
{
	struct tti_xml_doc *here, *there;
	struct tree copy;

	(void)state;
	tree_make(&copy);
	gather("/", copy.top);
	here = detect("/", false);
	there = detect(copy.top, false);
	drop_what_is_live(here);
	drop_what_is_live(there);
	/* Of GPUs the driver knows more than any file. */
	if (!has_gpu(here))
		assert_same("this machine", here, there);
	tti_xml_free(here);
	tti_xml_free(there);
	tree_remove(&copy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(captured_machines),
		cmocka_unit_test(this_machine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
