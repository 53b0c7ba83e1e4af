/* SPDX-License-Identifier: BSD-3-Clause */
/* What detection writes of captured machines, NCCL can read. */
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
#include "support/topo.h"
#include "topo/detect/detect.h"
#include "util/error.h"

/* Of NCCL's own reader; ours has none. */
#define NCCL_ATTRS 16
#define NCCL_VALUE 255

static struct capture capture;

static int clean_up(void **state)
{
	(void)state;
	capture_remove(&capture);
	return 0;
}

static void expect_fits(const struct tti_xml *node, const char *machine)
{
	if (node->nattrs > NCCL_ATTRS)
		fail_msg("%s: <%s> has %u attributes", machine, node->name, node->nattrs);
	for (uint32_t i = 0; i < node->nattrs; i++)
		if (strlen(node->attrs[i].value) > NCCL_VALUE)
			fail_msg("%s: <%s %s=\"%s\">", machine, node->name, node->attrs[i].name,
				 node->attrs[i].value);
}

static void detected_machines_fit_nccl_and_come_back(void **state)
{
	(void)state;
	for (size_t i = 0; i < NCAPTURES; i++) {
		struct tti_detect_config config = { .all = i % 2 };
		struct tti_strbuf buf = { 0 };
		struct tti_xml_doc *doc;

		capture_unpack(&capture, captures[i]);
		config.sysfs_root = capture.root;
		assert_int_equal(tti_detect_machine(&config, &doc), TUTTI_OK);
		for (const struct tti_xml *node = doc->root; node; node = tti_xml_walk(node))
			expect_fits(node, captures[i]);
		tti_xml_write(doc, &buf);
		if (topo_use(buf.text, buf.len) != TUTTI_OK ||
		    topo_use_graph(buf.text, buf.len) != TUTTI_OK)
			fail_msg("%s: %s", captures[i], tti_error_text());
		tti_strbuf_release(&buf);
		tti_xml_free(doc);
		capture_remove(&capture);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(detected_machines_fit_nccl_and_come_back, clean_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
