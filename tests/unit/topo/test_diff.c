/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>
#include <glob.h>

#include "support/random_topo.h"
#include "support/sanitizer.h"
#include "support/xml_edit.h"
#include "topo/graph/diff.h"
#include "topo/tree/schema.h"
#include "util/error.h"
#include "util/fault.h"

#define RANDOM_TOPOS (SANITIZED ? 40 : 150)

/* -- Helpers --------------------------------------------------------------------------- */

static struct tti_xml_doc *read_file(const char *name)
{
	struct tti_xml_doc *doc = NULL;
	char path[512];

	snprintf(path, sizeof(path), "%s/topologies/%s", TEST_DATA, name);
	if (tti_xml_read_file(path, &doc) != TUTTI_OK)
		fail_msg("%s: %s", name, tti_error_text());
	return doc;
}

static struct tti_graph *build(const struct tti_xml_doc *doc)
{
	struct tti_graph *graph = NULL;

	if (tti_schema_check(doc) != TUTTI_OK ||
	    tti_graph_build(doc, TTI_MODEL_TUTTI, &graph) != TUTTI_OK)
		fail_msg("%s: %s", doc->source, tti_error_text());
	return graph;
}

static size_t count_lines(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += *text == '\n';
	return n;
}

/* The text, to be freed; *n_out lines, which are counted here as well. */
static char *diff_graphs(const struct tti_graph *a, const struct tti_graph *b, size_t *n_out)
{
	struct tti_strbuf out = { 0 };
	char *text;

	assert_int_equal(tti_topo_diff(a, b, &out, n_out), TUTTI_OK);
	text = tti_strbuf_take(&out);
	assert_non_null(text);
	assert_int_equal(count_lines(text), *n_out);
	return text;
}

static char *diff_docs(const struct tti_xml_doc *a, const struct tti_xml_doc *b, size_t *n_out)
{
	struct tti_graph *of_a = build(a), *of_b = build(b);
	char *text = diff_graphs(of_a, of_b, n_out), *back;
	size_t n;

	back = diff_graphs(of_b, of_a, &n);
	if (n != *n_out)
		fail_msg("%s and %s: %zu lines, but %zu the other way round\n%s---\n%s", a->source,
			 b->source, *n_out, n, text, back);
	free(back);
	tti_graph_free(of_a);
	tti_graph_free(of_b);
	return text;
}

static struct tti_xml_doc *copy_of(const struct tti_xml_doc *doc)
{
	struct tti_xml_doc *copy = NULL;

	assert_int_equal(tti_xml_copy(doc, &copy), TUTTI_OK);
	return copy;
}

static struct tti_xml *nth(const struct tti_xml_doc *doc, const char *name, unsigned n)
{
	struct tti_xml *node = doc->root;

	for (; node; node = tti_xml_walk(node))
		if (tti_xml_is(node, name) && n-- == 0)
			return node;
	fail_msg("%s has too few <%s>", doc->source, name);
	return NULL;
}

static unsigned count(const struct tti_xml_doc *doc, const char *name)
{
	unsigned n = 0;

	for (struct tti_xml *node = doc->root; node; node = tti_xml_walk(node))
		n += tti_xml_is(node, name);
	return n;
}

static void expect_none(const char *what, char *text, size_t n)
{
	if (n)
		fail_msg("%s: differs:\n%s", what, text);
	free(text);
}

static void expect_word(const char *what, char *text, const char *word)
{
	if (!strstr(text, word))
		fail_msg("%s: '%s' is not in\n%s", what, word, text);
	free(text);
}

static const char h100[] = "azhpc-images__ndv5-topo.xml";
static const char a100[] = "aws-ofi-nccl__p4d-24xl-topo.xml";
static const char mesh[] = "rccl__topo_4p2h_2nic.xml";

/* -- Nothing differs -------------------------------------------------------------------- */

static void every_file_is_like_itself_and_never_like_others(void **state)
{
	struct tti_graph *graphs[64];
	size_t n = 0, ndiffs, back;
	glob_t files;
	char *text;

	(void)state;
	assert_int_equal(glob(TEST_DATA "/topologies/*.xml", 0, NULL, &files), 0);
	assert_true(files.gl_pathc > 20 && files.gl_pathc < 64);
	for (; n < files.gl_pathc; n++) {
		struct tti_xml_doc *doc = NULL;

		assert_int_equal(tti_xml_read_file(files.gl_pathv[n], &doc), TUTTI_OK);
		graphs[n] = build(doc);
		tti_xml_free(doc);
	}
	for (size_t i = 0; i < n; i++)
		for (size_t k = i; k < n; k += SANITIZED ? 3 : 1) {
			text = diff_graphs(graphs[i], graphs[k], &ndiffs);
			if (i == k)
				assert_int_equal(ndiffs, 0);
			free(text);
			text = diff_graphs(graphs[k], graphs[i], &back);
			assert_int_equal(ndiffs, back);
			free(text);
		}
	for (size_t i = 0; i < n; i++)
		tti_graph_free(graphs[i]);
	globfree(&files);
}

static void random_machines_are_like_themselves(void **state)
{
	struct tti_xml_doc *last = NULL;
	size_t n;

	(void)state;
	for (uint64_t seed = 1; seed <= RANDOM_TOPOS; seed++) {
		struct tti_xml_doc *doc = random_topo(seed);
		char *text;

		assert_non_null(doc);
		text = diff_docs(doc, doc, &n);
		expect_none("a random machine", text, n);
		if (last)
			free(diff_docs(last, doc, &n));
		tti_xml_free(last);
		last = doc;
	}
	tti_xml_free(last);
}

/* As another machine would count its buses: all move up, the order of none changes. */
static void renumber(struct tti_xml_doc *doc, unsigned by)
{
	static const char *const attrs[] = { "busid", "target" };
	char text[TTI_BUSID_TEXT];
	uint64_t busid;

	for (struct tti_xml *node = doc->root; node; node = tti_xml_walk(node))
		for (size_t i = 0; i < 2; i++) {
			const char *old = tti_xml_get(node, attrs[i]);

			if (!old || !tti_busid_parse(old, &busid) || busid >> 20 > 0xffff)
				continue;
			busid += (uint64_t)by << 12;
			assert_true(
				tti_xml_set(doc, node, attrs[i], tti_busid_format(busid, text)));
		}
}

static void other_bus_numbers_are_no_difference(void **state)
{
	static const char *const names[] = { h100, a100, mesh, "rccl__topo_8p1h.xml",
					     "SimAI-SimCCL__topo_8A100_4CX6.xml" };

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct tti_xml_doc *doc = read_file(names[i]), *other = copy_of(doc);
		size_t n;
		char *text;

		renumber(other, 1);
		text = diff_docs(doc, other, &n);
		expect_none(names[i], text, n);
		renumber(other, 7);
		text = diff_docs(doc, other, &n);
		expect_none(names[i], text, n);
		tti_xml_free(doc);
		tti_xml_free(other);
	}
}

/* -- One thing differs ------------------------------------------------------------------ */

/* Of each <gpu> and <net> of a file: without its function, that is named. */
static void what_is_missing_is_named(void **state)
{
	static const char *const names[] = { h100, a100, mesh };
	static const char *const parts[] = { "gpu", "net" };

	(void)state;
	for (size_t f = 0; f < sizeof(names) / sizeof(names[0]); f++) {
		struct tti_xml_doc *doc = read_file(names[f]);

		for (size_t p = 0; p < 2; p++)
			for (unsigned i = 0; i < count(doc, parts[p]); i++) {
				struct tti_xml_doc *other = copy_of(doc);
				struct tti_xml *node = nth(other, parts[p], i);
				char word[64];
				size_t n;
				char *text;

				snprintf(word, sizeof(word), "%s%s", p ? "" : "GPU",
					 tti_xml_get(node, p ? "name" : "dev"));
				while (!tti_xml_is(node, "pci"))
					node = node->parent;
				tti_xml_unlink(node);
				text = diff_docs(doc, other, &n);
				assert_non_null(strstr(text, "only in A"));
				assert_null(strstr(text, "only in B"));
				expect_word(names[f], text, word);
				tti_xml_free(other);
			}
		tti_xml_free(doc);
	}
}

static void a_link_of_other_width_is_named_with_its_speeds(void **state)
{
	struct tti_xml_doc *doc = read_file(h100);
	const unsigned npci = count(doc, "pci");

	(void)state;
	for (unsigned i = 0; i < npci; i++) {
		struct tti_xml_doc *other = copy_of(doc);
		struct tti_xml *pci = nth(other, "pci", i);
		size_t n;
		char *text;

		assert_true(tti_xml_set(other, pci, "link_width", "8"));
		text = diff_docs(doc, other, &n);
		assert_int_equal(n, 1);
		assert_non_null(strstr(text, tti_xml_get(pci, "busid")));
		assert_non_null(strstr(text, "x16"));
		assert_non_null(strstr(text, "x8"));
		expect_word("link_width", text, "GB/s");
		tti_xml_free(other);
	}
	tti_xml_free(doc);
}

static void other_nvlink_counts_are_named(void **state)
{
	static const char *const names[] = { h100, mesh };

	(void)state;
	for (size_t f = 0; f < sizeof(names) / sizeof(names[0]); f++) {
		struct tti_xml_doc *doc = read_file(names[f]), *other = copy_of(doc);
		struct tti_xml *nvlink = nth(other, "nvlink", 1);
		char word[64];
		size_t n;
		char *text;

		assert_true(tti_xml_set(other, nvlink, "count", "7"));
		snprintf(word, sizeof(word), "GPU%s", tti_xml_get(nvlink->parent, "dev"));
		text = diff_docs(doc, other, &n);
		assert_true(n >= 1);
		assert_non_null(strstr(text, "NVLink between"));
		assert_non_null(strstr(text, "7 links"));
		expect_word(names[f], text, word);
		tti_xml_free(other);
		tti_xml_free(doc);
	}
}

static void a_nic_on_the_other_socket_is_said_to_be_moved(void **state)
{
	struct tti_xml_doc *doc = read_file(h100);
	const unsigned nnets = count(doc, "net");

	(void)state;
	for (unsigned i = 0; i < nnets; i++) {
		struct tti_xml_doc *other = copy_of(doc);
		struct tti_xml *net = nth(other, "net", i), *pci = net->parent->parent;
		const bool first = tti_xml_get(pci->parent->parent, "numaid")[0] == '0';
		size_t n;
		char *text;

		xml_move(pci, nth(other, "cpu", first));
		text = diff_docs(doc, other, &n);
		assert_int_equal(n, 1);
		assert_non_null(strstr(text, "moved: NIC "));
		assert_non_null(strstr(text, "CPU0"));
		assert_non_null(strstr(text, "CPU1"));
		expect_word("moved", text, tti_xml_get(net, "name"));
		tti_xml_free(other);
	}
	tti_xml_free(doc);
}

static void check_change(const char *element, unsigned i, const char *attr, const char *value,
			 const char *word)
{
	struct tti_xml_doc *doc = read_file(h100), *other = copy_of(doc);
	size_t n;
	char *text;

	assert_true(tti_xml_set(other, nth(other, element, i), attr, value));
	text = diff_docs(doc, other, &n);
	if (n == 0)
		fail_msg("<%s %s=\"%s\"> is no difference", element, attr, value);
	expect_word(attr, text, word);
	tti_xml_free(doc);
	tti_xml_free(other);
}

static void what_a_node_is_counts(void **state)
{
	(void)state;
	check_change("cpu", 1, "modelid", "85", "CPU1: model Intel");
	check_change("cpu", 0, "vendor", "AuthenticAMD", "AuthenticAMD");
	check_change("cpu", 1, "affinity", "0000ffff", "CPU1: cores");
	check_change("gpu", 3, "sm", "80", "GPU3: architecture sm90 in A, sm80 in B");
	check_change("gpu", 5, "gdr", "0", "GPU5: GPUDirect RDMA yes in A, no in B");
	check_change("net", 2, "speed", "200000", "NET mlx5_2: speed 400 Gb/s in A, 200 Gb/s in B");
	check_change("net", 2, "gdr", "0", "NET mlx5_2: GPUDirect RDMA");
	check_change("net", 6, "rail", "4", "NET mlx5_6: rail not stated in A, 4 in B");
	check_change("net", 6, "name", "ibs1", "mlx5_6 is called ibs1 in B");
	check_change("pci", 0, "vendor", "0x1000", "ffff:ff:01.0: device");
	check_change("pci", 0, "link_speed", "16.0 GT/s PCIe", "ffff:ff:01.0: link");
	check_change("pci", 1, "subsystem_vendor", "0x10de", "GPU0 (0001:00:00.0): subsystem");
}

/* -- Random changes --------------------------------------------------------------------- */

static uint64_t next(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

/* Take a function with all below away; what is to be named, "" if nothing was done. */
static void remove_one(struct tti_xml_doc *doc, uint64_t *seed, char *word, size_t size)
{
	const unsigned n = count(doc, "pci");
	struct tti_xml *pci = n ? nth(doc, "pci", (unsigned)(next(seed) % n)) : NULL;
	uint64_t busid;

	word[0] = '\0';
	if (!pci || !tti_busid_parse(tti_xml_get(pci, "busid"), &busid))
		return;
	tti_busid_format(busid, word);
	(void)size;
	tti_xml_unlink(pci);
}

static void any_function_that_is_gone_makes_a_line(void **state)
{
	uint64_t seed = 42;
	size_t n, found = 0;

	(void)state;
	for (uint64_t i = 1; i <= RANDOM_TOPOS; i++) {
		struct tti_xml_doc *doc = random_topo(i), *other = copy_of(doc);
		char word[TTI_BUSID_TEXT], *text;

		remove_one(other, &seed, word, sizeof(word));
		text = diff_docs(doc, other, &n);
		/* The second function of a card is no node of its own, and its ports need not
		 * be the ones that are told: they are alike. */
		if (word[0] && word[strlen(word) - 1] == '0') {
			if (n == 0)
				fail_msg("machine %llu without %s does not differ",
					 (unsigned long long)i, word);
			found++;
		}
		free(text);
		tti_xml_free(doc);
		tti_xml_free(other);
	}
	assert_true(found > RANDOM_TOPOS / 2);
}

/* -- Large and short of memory ------------------------------------------------------------ */

/* One switch with n NICs that are all alike; every other one is of another speed in B. */
static struct tti_graph *wide(unsigned n, bool other)
{
	struct tti_xml_doc *doc = NULL;
	struct tti_xml *cpu, *up, *pci, *net;
	struct tti_graph *graph;

	assert_int_equal(tti_xml_create("wide", &doc), TUTTI_OK);
	cpu = tti_xml_add(doc, doc->root, "cpu");
	assert_true(tti_xml_set(doc, cpu, "numaid", "0"));
	up = tti_xml_add(doc, cpu, "pci");
	assert_true(tti_xml_set(doc, up, "busid", "ffff:ff:1f.0"));
	assert_true(tti_xml_set(doc, up, "class", "0x060400"));
	for (unsigned i = 0; i < n; i++) {
		pci = tti_xml_add(doc, up, "pci");
		assert_true(tti_xml_setf(doc, pci, "busid", "%04x:%02x:%02x.0", i >> 12,
					 i >> 4 & 0xff, i & 0xf));
		assert_true(tti_xml_set(doc, pci, "class", "0x020000"));
		net = tti_xml_add(doc, tti_xml_add(doc, pci, "nic"), "net");
		assert_true(tti_xml_setf(doc, net, "name", "mlx5_%u", i));
		assert_true(tti_xml_setf(doc, net, "dev", "%u", i));
		assert_true(tti_xml_set(doc, net, "speed", other && i % 2 ? "200000" : "400000"));
	}
	graph = build(doc);
	tti_xml_free(doc);
	return graph;
}

static void twenty_thousand_siblings_take_no_time(void **state)
{
	const unsigned n = 20000;
	struct tti_graph *a = wide(n, false), *b = wide(n, true), *c = wide(n - 1, false);
	const clock_t start = clock();
	size_t ndiffs;

	(void)state;
	free(diff_graphs(a, a, &ndiffs));
	assert_int_equal(ndiffs, 0);
	free(diff_graphs(a, b, &ndiffs));
	assert_int_equal(ndiffs, n / 2);
	free(diff_graphs(c, a, &ndiffs));
	assert_int_equal(ndiffs, 1);
	/* Of our own time: quadratic would be minutes, this leaves room for sanitizers. */
	assert_true((clock() - start) / CLOCKS_PER_SEC < 20);
	tti_graph_free(a);
	tti_graph_free(b);
	tti_graph_free(c);
}

static void out_of_memory_is_told(void **state)
{
	struct tti_xml_doc *of_a = read_file(h100), *of_b = read_file(a100);
	struct tti_graph *a = build(of_a), *b = build(of_b);
	struct tti_strbuf out = { 0 };
	tutti_status status = TUTTI_ENOMEM;
	size_t n = 0;
	unsigned at;

	(void)state;
	for (at = 1; status == TUTTI_ENOMEM && at < 10000; at++) {
		char spec[32];

		snprintf(spec, sizeof(spec), "mem:%u", at);
		tti_fault_set(spec);
		status = tti_topo_diff(a, b, &out, &n);
		tti_fault_set(NULL);
		tti_strbuf_release(&out);
	}
	assert_int_equal(status, TUTTI_OK);
	assert_true(at > 20 && n > 0);
	tti_graph_free(a);
	tti_graph_free(b);
	tti_xml_free(of_a);
	tti_xml_free(of_b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_file_is_like_itself_and_never_like_others),
		cmocka_unit_test(random_machines_are_like_themselves),
		cmocka_unit_test(other_bus_numbers_are_no_difference),
		cmocka_unit_test(what_is_missing_is_named),
		cmocka_unit_test(a_link_of_other_width_is_named_with_its_speeds),
		cmocka_unit_test(other_nvlink_counts_are_named),
		cmocka_unit_test(a_nic_on_the_other_socket_is_said_to_be_moved),
		cmocka_unit_test(what_a_node_is_counts),
		cmocka_unit_test(any_function_that_is_gone_makes_a_line),
		cmocka_unit_test(twenty_thousand_siblings_take_no_time),
		cmocka_unit_test(out_of_memory_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
