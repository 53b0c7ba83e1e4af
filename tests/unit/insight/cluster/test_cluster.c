/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <glob.h>

#include "clusters.h"
#include "insight/cluster/canon.h"
#include "insight/cluster/cluster_report.h"
#include "support/random_topo.h"
#include "support/xml_edit.h"
#include "topo/tree/schema.h"
#include "topo/tree/strip.h"
#include "util/hash.h"
/* -- Words as numbers -------------------------------------------------------------------- */

/* Two strings of one hash, made by undoing what tti_hash_bytes() does with the second
 * word: equal hashes are not equal strings. */
static void equal_hashes_are_compared_whole(void **state)
{
	const uint64_t golden = UINT64_C(0x9e3779b97f4a7c15), seed = tti_hash_mix(17);
	uint64_t a[2] = { 1, 2 }, b[2] = { 3, 0 };
	struct tti_intern set = { 0 };

	(void)state;
	b[1] = a[1] + tti_hash_mix(seed + golden + a[0]) - tti_hash_mix(seed + golden + b[0]);
	assert_true(tti_hash_bytes(a, sizeof(a)) == tti_hash_bytes(b, sizeof(b)));
	assert_int_equal(tti_intern(&set, a, sizeof(a)), 0);
	assert_int_equal(tti_intern_find(&set, b, sizeof(b)), TTI_INTERN_NONE);
	assert_int_equal(tti_intern(&set, b, sizeof(b)), 1);
	assert_int_equal(tti_intern(&set, a, sizeof(a)), 0);
	assert_int_equal(tti_intern(&set, "", 0), 2);
	assert_int_equal(tti_intern(&set, "", 0), 2);
	for (unsigned i = 0; i < 5000; i++)
		assert_int_equal(tti_intern(&set, &i, sizeof(i)), 3 + i);
	for (unsigned i = 0; i < 5000; i++)
		assert_int_equal(tti_intern_find(&set, &i, sizeof(i)), 3 + i);
	tti_intern_release(&set);
}

/* -- Kinds ------------------------------------------------------------------------------- */

static void what_is_a_hosts_own_makes_no_kind(void **state)
{
	struct tti_xml_doc *doc = read_file(H100_FILE);
	struct tti_cluster *cluster = create();
	char name[16];

	(void)state;
	for (unsigned i = 0; i < 5; i++) {
		char guid[16], subnet[32], gbps[16];

		snprintf(guid, sizeof(guid), "0x%x0#", 5 + i);
		snprintf(subnet, sizeof(subnet), "10.%u.#.0/24", i);
		snprintf(gbps, sizeof(gbps), "20%u.#", i);
		set_all(doc, "net", "guid", guid);
		set_all(doc, "net", "tutti_subnet", subnet);
		set_all(doc, "gpu", "rank", "#");
		set_all(doc, "cpu", "tutti_mem_gbps", gbps);
		set_all(doc, "cpu", "tutti_mem_mib", guid + 2);
		/* One number, in the words of detection and in those of a file. */
		assert_true(tti_xml_setf(doc, nth(doc, "cpu", 0), "host_hash", "0x%016x", i));
		assert_true(tti_xml_setf(doc, nth(doc, "cpu", 1), "host_hash", "0x%x", i));
		assert_true(tti_xml_setf(doc, doc->root, "tutti_host", "node%u", i));
		snprintf(name, sizeof(name), "n%u", i);
		add(cluster, name, doc);
	}
	tti_xml_free(doc);
	seal(cluster);
	assert_int_equal(cluster->nkinds, 1);
	assert_int_equal(cluster->kinds[0].nhosts, 5);
	assert_null(tti_xml_get(nth(cluster->kinds[0].doc, "net", 0), "guid"));
	assert_null(tti_xml_get(nth(cluster->kinds[0].doc, "cpu", 0), "host_hash"));
	assert_true(nic_of(cluster, "n3", "mlx5_5")->guid == 0x805);
	assert_true(cluster->hosts[4].hash == 4);
	tti_cluster_free(cluster);
}

static void reverse(struct tti_xml *node)
{
	struct tti_xml *child = node->first, *last = NULL;

	for (uint32_t i = 0; i < node->nattrs / 2; i++) {
		const struct tti_xml_attr swap = node->attrs[i];

		node->attrs[i] = node->attrs[node->nattrs - 1 - i];
		node->attrs[node->nattrs - 1 - i] = swap;
	}
	node->last = child;
	while (child) {
		struct tti_xml *next = child->next;

		reverse(child);
		child->next = last;
		last = child;
		child = next;
	}
	node->first = last;
}

static void the_order_of_a_document_makes_no_kind(void **state)
{
	static const char *const names[] = { H100_FILE, A100_FILE, MI50_FILE };
	struct tti_cluster *cluster = create();
	char host[32];

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		struct tti_xml_doc *doc = read_file(names[i]);

		for (unsigned k = 0; k < 9; k++) {
			set_all(doc, "net", "guid", "0x0");
			for (struct tti_xml *net = doc->root; net; net = tti_xml_walk(net))
				if (tti_xml_is(net, "net"))
					tti_xml_setf(doc, net, "guid", "0x1%s",
						     tti_xml_get(net, "dev"));
			snprintf(host, sizeof(host), "h%u-%u", i, k);
			add(cluster, host, doc);
			reverse(doc->root);
			/* A third order, so that known ones do not help. */
			if (k > 2)
				xml_move(doc->root->first, doc->root);
		}
		tti_xml_free(doc);
	}
	seal(cluster);
	assert_int_equal(cluster->nkinds, 3);
	for (unsigned k = 0; k < 9; k++) {
		snprintf(host, sizeof(host), "h0-%u", k);
		assert_true(nic_of(cluster, host, "mlx5_0")->guid == 0x10);
		assert_true(nic_of(cluster, host, "mlx5_6")->guid == 0x16);
	}
	tti_cluster_free(cluster);
}

static void what_is_wired_otherwise_is_another_kind(void **state)
{
	static const struct {
		const char *element;
		unsigned n;
		const char *attr, *value;
	} changes[] = {
		{ "pci", 3, "link_width", "8" },
		{ "gpu", 2, "sm", "80" },
		{ "net", 1, "speed", "200000" },
		{ "nvlink", 5, "count", "17" },
		{ "net", 0, "rail", "3" },
		{ "cpu", 1, "modelid", "85" },
		{ "pci", 4, "busid", "0199:00:00.0" },
		{ "net", 7, "gdr", "0" },
	};
	struct tti_cluster *cluster = create();
	struct tti_xml_doc *doc = read_file(H100_FILE);
	char name[16];

	(void)state;
	add(cluster, "first", doc);
	for (unsigned i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		struct tti_xml *node = nth(doc, changes[i].element, changes[i].n);

		/* The same document, changed in between. */
		assert_true(tti_xml_set(doc, node, changes[i].attr, changes[i].value));
		snprintf(name, sizeof(name), "n%u", i);
		add(cluster, name, doc);
		assert_int_equal(cluster->nkinds, i + 2);
		assert_int_equal(cluster->hosts[i + 1].kind, i + 1);
	}
	tti_xml_free(doc);
	tti_cluster_free(cluster);
}

/* Canonical texts of all files are equal where the files are. */
static void canonical_texts_tell_files_apart(void **state)
{
	struct tti_intern seen = { 0 };
	struct tti_canon canon = { 0 };
	unsigned nsame = 0;
	glob_t files;

	(void)state;
	assert_int_equal(glob(TEST_DATA "/topologies/*.xml", 0, NULL, &files), 0);
	for (size_t i = 0; i < files.gl_pathc; i++) {
		struct tti_xml_doc *doc = NULL, *strip = NULL;
		uint32_t number;

		assert_int_equal(tti_xml_read_file(files.gl_pathv[i], &doc), TUTTI_OK);
		assert_int_equal(tti_canon_write(&canon, doc, TTI_CANON_SORTED), TUTTI_OK);
		number = tti_intern(&seen, canon.text.at, canon.text.n);
		nsame += number + 1 != seen.entries.n;
		reverse(doc->root);
		assert_int_equal(tti_canon_write(&canon, doc, TTI_CANON_SORTED), TUTTI_OK);
		assert_int_equal(tti_intern(&seen, canon.text.at, canon.text.n), number);
		assert_int_equal(tti_strip(doc, &strip), TUTTI_OK);
		assert_int_equal(tti_schema_check(strip), TUTTI_OK);
		assert_int_equal(tti_canon_write(&canon, strip, TTI_CANON_SORTED), TUTTI_OK);
		assert_int_equal(tti_intern(&seen, canon.text.at, canon.text.n), number);
		tti_xml_free(strip);
		tti_xml_free(doc);
	}
	assert_true(nsame <= 1); /* NCv4 is there twice */
	tti_canon_release(&canon);
	tti_intern_release(&seen);
	globfree(&files);
}

static void random_machines_in_any_order_are_one_kind(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 100; seed++) {
		struct tti_xml_doc *doc = random_topo(seed);
		struct tti_cluster *cluster = create();
		bool several = false;

		assert_non_null(doc);
		for (struct tti_xml *cpu = doc->root->first; cpu; cpu = cpu->next)
			several |= cpu->name &&
				   tti_schema_host(cpu) != tti_schema_host(doc->root->first);
		add(cluster, "a", doc);
		/* Where a document holds several hosts, their order counts. */
		if (!several)
			reverse(doc->root);
		add(cluster, "b", doc);
		seal(cluster);
		assert_int_equal(cluster->nkinds, 1);
		for (uint32_t i = 0; i < cluster->kinds[0].nports; i++)
			assert_true(cluster->nics[i].guid ==
				    cluster->nics[cluster->hosts[1].first_nic + i].guid);
		free(print(cluster));
		tti_cluster_free(cluster);
		tti_xml_free(doc);
	}
}

static void names_are_checked(void **state)
{
	static const char *const bad[] = { "", "two words", "tab\t", "caf\xc3\xa9", "new\nline" };
	struct tti_xml_doc *doc = read_file(H100_FILE);
	struct tti_cluster *cluster = create();
	char longest[300];

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(tti_cluster_add(cluster, bad[i], doc), TUTTI_EINVAL);
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	assert_int_equal(tti_cluster_add(cluster, longest, doc), TUTTI_EINVAL);
	add(cluster, "node1", doc);
	assert_int_equal(tti_cluster_add(cluster, "node1", doc), TUTTI_EINVAL);
	assert_non_null(strstr(tti_error_text(), "node1"));
	assert_int_equal(tti_cluster_add_many(cluster, "node", 3, doc), TUTTI_EINVAL);
	assert_int_equal(cluster->nhosts, 1);
	assert_int_equal(tti_cluster_add_many(cluster, "node", 0, doc), TUTTI_EINVAL);
	assert_int_equal(tti_cluster_add_many(cluster, "other", 3, doc), TUTTI_OK);
	assert_string_equal(cluster->hosts[3].name, "other2");
	seal(cluster);
	assert_int_equal(tti_cluster_add(cluster, "late", doc), TUTTI_EUSAGE);
	assert_int_equal(tti_cluster_read_rails(cluster, "x"), TUTTI_EUSAGE);
	assert_int_equal(tti_cluster_seal(cluster), TUTTI_EUSAGE);
	tti_cluster_free(cluster);
	tti_xml_free(doc);
}

/* Also where the document is of a known kind, so that its kind need not be checked. */
static void bad_documents_are_refused(void **state)
{
	static const struct {
		const char *element, *attr, *value;
	} changes[] = {
		{ "net", "guid", "0xzz" },          { "gpu", "rank", "many" },
		{ "cpu", "numaid", "me" },          { "cpu", "tutti_mem_gbps", "nan" },
		{ "pci", "link_width", "-1" },      { "gpu", "dev", "first" },
		{ "pci", "busid", "not-a-bus-id" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		struct tti_cluster *cluster = create();
		struct tti_xml_doc *doc = read_file(H100_FILE);
		struct tti_xml *node = nth(doc, changes[i].element, 1);
		char line[16];

		add(cluster, "good", doc);
		assert_true(tti_xml_set(doc, node, changes[i].attr, changes[i].value));
		assert_int_equal(tti_cluster_add(cluster, "bad", doc), TUTTI_EINVAL);
		snprintf(line, sizeof(line), ":%u:", node->line);
		assert_non_null(strstr(tti_error_text(), line));
		assert_int_equal(cluster->nhosts, 1);
		assert_int_equal(cluster->nkinds, 1);
		seal(cluster);
		free(print(cluster));
		tti_cluster_free(cluster);
		tti_xml_free(doc);
	}
}

/* -- NVLink domains -------------------------------------------------------------------------- */

static void a_rack_is_one_domain_and_one_graph(void **state)
{
	struct tti_xml_doc *doc = gb200(), *fused = NULL;
	struct tti_cluster *cluster = create();
	struct tti_graph *graph = NULL;
	struct tti_paths *paths = NULL;
	const struct tti_path *path;
	uint32_t first, last, hosts[18];

	(void)state;
	assert_int_equal(tti_cluster_add_many(cluster, "rack0-", 18, doc), TUTTI_OK);
	set_all(doc, "gpu", "tutti_fabric", "11111111-0000.7");
	add(cluster, "alone", doc);
	set_all(doc, "gpu", "tutti_fabric", "00000000-0000-0000-0000-000000000000.0");
	add(cluster, "none", doc);
	add(cluster, "none2", doc);
	tti_xml_free(doc);
	seal(cluster);
	assert_int_equal(cluster->nkinds, 1);
	assert_int_equal(cluster->ndomains, 1);
	assert_int_equal(cluster->domains[0].nhosts, 18);
	assert_int_equal(cluster->domains[0].ngpus, 72);
	assert_int_equal(cluster->hosts[17].domain, 0);
	assert_int_equal(cluster->hosts[18].domain, -1);
	assert_int_equal(cluster->hosts[20].domain, -1);
	expect(cluster, "18 hosts with 72 GPUs\n     rack0-0-17\n");

	for (uint32_t i = 0; i < 18; i++)
		hosts[i] = i;
	assert_int_equal(tti_cluster_fuse(cluster, hosts, 18, &fused), TUTTI_OK);
	if (tti_schema_check(fused) != TUTTI_OK ||
	    tti_graph_build(fused, TTI_MODEL_TUTTI, &graph) != TUTTI_OK ||
	    tti_paths_build(graph, &paths) != TUTTI_OK)
		fail_msg("%s", tti_error_text());
	assert_int_equal(graph->nhosts, 18);
	assert_string_equal(graph->hosts[17], "rack0-17");
	assert_int_equal(graph->ntype[TTI_NODE_GPU], 72);
	assert_int_equal(graph->ntype[TTI_NODE_NET], 72);
	first = graph->by_type[TTI_NODE_GPU][0];
	last = graph->by_type[TTI_NODE_GPU][71];
	assert_int_not_equal(graph->nodes[first].host, graph->nodes[last].host);
	path = tti_paths_get(paths, first, last);
	assert_int_equal(path->type, TTI_PATH_NVL);
	assert_float_equal(path->bw_gbps, 18 * 40.1F, 0.1F);
	tti_paths_free(paths);
	tti_graph_free(graph);
	tti_xml_free(fused);
	tti_cluster_free(cluster);
}

static void fused_hosts_keep_what_is_theirs(void **state)
{
	struct tti_xml_doc *doc = read_file(H100_FILE), *fused = NULL;
	struct tti_cluster *cluster = create();
	const uint32_t both[] = { 1, 0 }, wrong[] = { 5 };

	(void)state;
	set_all(doc, "cpu", "host_hash", "0xa");
	set_all(doc, "net", "guid", "0xa#");
	add(cluster, "a", doc);
	assert_int_equal(tti_cluster_fuse(cluster, both, 1, &fused), TUTTI_EUSAGE);
	set_all(doc, "net", "guid", "0xb#");
	add(cluster, "b", doc); /* with the host_hash of a */
	seal(cluster);
	assert_int_equal(tti_cluster_fuse(cluster, both, 2, &fused), TUTTI_OK);
	assert_int_equal(tti_schema_check(fused), TUTTI_OK);
	assert_string_equal(tti_xml_get(nth(fused, "net", 3), "guid"), "0xb3");
	assert_string_equal(tti_xml_get(nth(fused, "net", 11), "guid"), "0xa3");
	assert_string_equal(tti_xml_get(nth(fused, "cpu", 1), "host_hash"), "0xa");
	assert_string_not_equal(tti_xml_get(nth(fused, "cpu", 2), "host_hash"), "0xa");
	assert_string_equal(tti_xml_get(nth(fused, "cpu", 2), "host_hash"),
			    tti_xml_get(nth(fused, "cpu", 3), "host_hash"));
	tti_xml_free(fused);
	assert_int_equal(tti_cluster_fuse(cluster, wrong, 1, &fused), TUTTI_EINVAL);
	tti_cluster_free(cluster);
	tti_xml_free(doc);
}

static void gpus_of_one_host_in_two_domains_are_refused(void **state)
{
	struct tti_xml_doc *doc = gb200();
	struct tti_cluster *cluster = create();

	(void)state;
	tti_xml_set(doc, nth(doc, "gpu", 2), "tutti_fabric", "other.1");
	assert_int_equal(tti_cluster_add(cluster, "a", doc), TUTTI_EINVAL);
	assert_non_null(strstr(tti_error_text(), "other.1"));
	tti_cluster_free(cluster);
	tti_xml_free(doc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_hashes_are_compared_whole),
		cmocka_unit_test(what_is_a_hosts_own_makes_no_kind),
		cmocka_unit_test(the_order_of_a_document_makes_no_kind),
		cmocka_unit_test(what_is_wired_otherwise_is_another_kind),
		cmocka_unit_test(canonical_texts_tell_files_apart),
		cmocka_unit_test(random_machines_in_any_order_are_one_kind),
		cmocka_unit_test(names_are_checked),
		cmocka_unit_test(bad_documents_are_refused),
		cmocka_unit_test(a_rack_is_one_domain_and_one_graph),
		cmocka_unit_test(fused_hosts_keep_what_is_theirs),
		cmocka_unit_test(gpus_of_one_host_in_two_domains_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
