/* SPDX-License-Identifier: BSD-3-Clause */
/* What a program asks of a topology: only the public header here. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tutti/insight.h"
#include "util/fault.h"

#define NDV4 TEST_DATA "/topologies/azhpc-images__ndv4-topo.xml"
#define NDV2 TEST_DATA "/topologies/Azure-azhpc-images__ndv2-topo.xml"

static tutti_topo_t load(const char *file)
{
	struct tutti_topo_config config = TUTTI_TOPO_CONFIG_INIT;
	tutti_topo_t topo = NULL;

	config.xml_file = file;
	if (tutti_topo_load(&config, &topo) != TUTTI_OK)
		fail_msg("%s", tutti_last_error(NULL));
	return topo;
}

/* Fails with this status, and the text says so. */
#define refused(call, wanted, words)                                                \
	do {                                                                        \
		assert_int_equal(call, wanted);                                     \
		if (!strstr(tutti_last_error(NULL), words))                         \
			fail_msg("'%s' lacks '%s'", tutti_last_error(NULL), words); \
	} while (0)

static int find(tutti_topo_t topo, const char *type, const char *name)
{
	const int index = tutti_topo_find(topo, type, name);

	assert_in_range(index, 0, tutti_topo_node_count(topo) - 1);
	return index;
}

static struct tutti_topo_path path_between(tutti_topo_t topo, int from, int to)
{
	struct tutti_topo_path path;

	if (tutti_topo_get_path(topo, from, to, &path) != TUTTI_OK)
		fail_msg("%s", tutti_last_error(NULL));
	return path;
}

static void nodes_are_what_the_file_says(void **state)
{
	tutti_topo_t topo = load(NDV4);
	struct tutti_topo_node node, parent;

	(void)state;
	assert_int_equal(tutti_topo_get_node(topo, find(topo, "GPU", "GPU3"), &node), TUTTI_OK);
	assert_string_equal(node.type, "GPU");
	assert_string_equal(node.host, "");
	assert_int_equal(node.rank, 3);
	assert_int_equal(node.sm, 80);
	assert_int_equal(tutti_topo_get_node(topo, node.parent, &parent), TUTTI_OK);
	assert_string_equal(parent.type, "DEV");
	assert_int_equal(parent.class_code, 0x030200);
	assert_int_equal(tutti_topo_get_node(topo, find(topo, "NET", "mlx5_5"), &node), TUTTI_OK);
	assert_true(node.net_gbps > 24.9 && node.net_gbps < 25.1);
	assert_int_equal(node.rank, -1);
	assert_int_equal(tutti_topo_get_node(topo, find(topo, "CPU", "CPU2"), &node), TUTTI_OK);
	assert_int_equal(node.numaid, 2);
	assert_int_equal(tutti_topo_find(topo, "GPU", "GPU8"), -1);
	assert_int_equal(tutti_topo_find(topo, "APU", "GPU0"), -1);
	assert_int_equal(tutti_topo_find(topo, NULL, "GPU0"), -1);
	tutti_topo_free(topo);
}

static void every_link_has_one_back(void **state)
{
	tutti_topo_t topo = load(NDV2);
	const int n = tutti_topo_link_count(topo);

	(void)state;
	assert_true(n > 40);
	for (int i = 0; i < n; i++) {
		struct tutti_topo_link link, back;
		int found = 0;

		assert_int_equal(tutti_topo_get_link(topo, i, &link), TUTTI_OK);
		assert_true(link.gbps > 0 && link.count > 0);
		for (int k = 0; k < n; k++) {
			assert_int_equal(tutti_topo_get_link(topo, k, &back), TUTTI_OK);
			found += back.from == link.to && back.to == link.from &&
				 !strcmp(back.type, link.type);
		}
		assert_int_equal(found, 1);
	}
	tutti_topo_free(topo);
}

static void paths_say_what_traffic_does(void **state)
{
	tutti_topo_t topo = load(NDV4);
	const int gpu0 = find(topo, "GPU", "GPU0"), gpu7 = find(topo, "GPU", "GPU7");
	const int near = find(topo, "NET", "mlx5_0"), far = find(topo, "NET", "mlx5_7");
	struct tutti_topo_path path = path_between(topo, gpu0, gpu7);

	(void)state;
	assert_string_equal(path.type, "NVL");
	assert_true(path.gbps > 239 && path.gbps < 241);
	path = path_between(topo, gpu0, near);
	assert_string_equal(path.type, "PIX");
	assert_int_equal(path.gdr, 1);
	assert_int_equal(path.via, -1);
	path = path_between(topo, gpu0, far);
	assert_string_equal(path.type, "SYS");
	assert_string_equal(path.route, "PXN");
	assert_true(path.gbps > path.wire_gbps);
	/* It is led through a GPU, which has a name and a reason. */
	assert_true(path.via == gpu7 || path.via == find(topo, "GPU", "GPU6"));
	assert_non_null(strstr(path.why, "GPU"));
	path = path_between(topo, gpu0, gpu0);
	assert_string_equal(path.type, "LOC");
	assert_int_equal(path.nhops, 0);
	tutti_topo_free(topo);
}

static void findings_have_all_parts(void **state)
{
	tutti_topo_t topo = load(NDV2);
	struct tutti_topo_finding finding;

	(void)state;
	/* The file that gives both sockets one CPU mask. */
	assert_true(tutti_topo_finding_count(topo) > 0);
	assert_int_equal(tutti_topo_get_finding(topo, 0, &finding), TUTTI_OK);
	assert_string_equal(finding.rule, "numa-same-mask");
	assert_string_equal(finding.severity, "error");
	assert_non_null(strstr(finding.place, "ndv2-topo.xml:9"));
	assert_true(finding.what[0] && finding.consequence[0] && finding.remedy[0]);
	tutti_topo_free(topo);
}

static void what_is_not_there_is_named(void **state)
{
	tutti_topo_t topo = load(NDV4);
	struct tutti_topo_finding finding;
	struct tutti_topo_node node;
	struct tutti_topo_link link;
	struct tutti_topo_path path;
	char *text = (char *)1;
	int n = 0;

	(void)state;
	refused(tutti_topo_get_node(topo, -1, &node), TUTTI_EINVAL, "no node -1");
	refused(tutti_topo_get_node(topo, tutti_topo_node_count(topo), &node), TUTTI_EINVAL,
		"this topology has");
	refused(tutti_topo_get_node(topo, 0, NULL), TUTTI_EINVAL, "out is NULL");
	refused(tutti_topo_get_link(topo, 99999, &link), TUTTI_EINVAL, "no link 99999");
	refused(tutti_topo_get_finding(topo, 999, &finding), TUTTI_EINVAL, "no finding 999");
	refused(tutti_topo_get_path(topo, find(topo, "CPU", "CPU0"), 0, &path), TUTTI_EINVAL,
		"paths lead between GPU, HOST and NET");
	refused(tutti_topo_get_path(topo, find(topo, "GPU", "GPU0"), -5, &path), TUTTI_EINVAL,
		"no node -5");
	refused(tutti_topo_get_path(NULL, 0, 0, &path), TUTTI_EINVAL, "NULL");
	refused(tutti_topo_print(topo, (tutti_topo_format)99, 0, &text), TUTTI_EINVAL,
		"no format 99");
	assert_null(text);
	refused(tutti_topo_print(NULL, TUTTI_TOPO_TREE, 0, &text), TUTTI_EINVAL, "NULL");
	refused(tutti_topo_diff(topo, NULL, &text, &n), TUTTI_EINVAL, "NULL");
	assert_int_equal(tutti_topo_node_count(NULL), 0);
	assert_int_equal(tutti_topo_link_count(NULL), 0);
	assert_int_equal(tutti_topo_finding_count(NULL), 0);
	tutti_topo_free(topo);
	tutti_topo_free(NULL);
}

static void loading_is_refused_with_a_reason(void **state)
{
	struct tutti_topo_config config = TUTTI_TOPO_CONFIG_INIT;
	tutti_topo_t topo = (tutti_topo_t)1;

	(void)state;
	refused(tutti_topo_load(&config, NULL), TUTTI_EINVAL, "out is NULL");
	config.xml_file = "/nonexistent.xml";
	refused(tutti_topo_load(&config, &topo), TUTTI_EINVAL, "/nonexistent.xml");
	assert_null(topo);
	config.xml_file = TEST_DATA "/topologies/raw/azhpc-images__ncv4-graph.xml";
	refused(tutti_topo_load(&config, &topo), TUTTI_EINVAL, "ncv4-graph.xml:1:1");
	config.sysfs_root = "/";
	refused(tutti_topo_load(&config, &topo), TUTTI_EINVAL, "set detect");
	config = (struct tutti_topo_config)TUTTI_TOPO_CONFIG_INIT;
	config.size = 8;
	refused(tutti_topo_load(&config, &topo), TUTTI_EINVAL, "TUTTI_TOPO_CONFIG_INIT");
}

/* A program that was compiled when the struct was shorter. */
static void an_older_config_is_understood(void **state)
{
	struct tutti_topo_config config = TUTTI_TOPO_CONFIG_INIT;
	tutti_topo_t topo = NULL;
	char *text = NULL;

	(void)state;
	config.size = offsetof(struct tutti_topo_config, name);
	config.xml_file = NDV4;
	config.name = "what an older program has behind its struct";
	assert_int_equal(tutti_topo_load(&config, &topo), TUTTI_OK);
	assert_int_equal(tutti_topo_print(topo, TUTTI_TOPO_TREE, 0, &text), TUTTI_OK);
	assert_non_null(strstr(text, "ndv4-topo.xml: 2 sockets (assumed), 4 NUMA nodes, 8 GPUs"));
	free(text);
	tutti_topo_free(topo);
	config.size = sizeof(config);
	config.name = "node17";
	assert_int_equal(tutti_topo_load(&config, &topo), TUTTI_OK);
	assert_int_equal(tutti_topo_print(topo, TUTTI_TOPO_TREE, 0, &text), TUTTI_OK);
	assert_ptr_equal(strstr(text, "node17: "), text);
	free(text);
	tutti_topo_free(topo);
}

static void other_figures_on_demand(void **state)
{
	struct tutti_topo_config config = TUTTI_TOPO_CONFIG_INIT;
	tutti_topo_t ours = load(NDV4), theirs = NULL;

	(void)state;
	config.xml_file = NDV4;
	config.nccl_model = 1;
	assert_int_equal(tutti_topo_load(&config, &theirs), TUTTI_OK);
	/* NCCL knows no sockets, only NUMA nodes. */
	assert_true(tutti_topo_find(ours, "PKG", "PKG0") >= 0);
	assert_int_equal(tutti_topo_find(theirs, "PKG", "PKG0"), -1);
	tutti_topo_free(ours);
	tutti_topo_free(theirs);
}

static void every_format_prints(void **state)
{
	tutti_topo_t topo = load(NDV4);
	const unsigned flags = TUTTI_TOPO_COLOR | TUTTI_TOPO_UTF8;

	(void)state;
#define X(name, value, text)                                                             \
	{                                                                                \
		char *out = NULL;                                                        \
		assert_int_equal(tutti_topo_print(topo, TUTTI_TOPO_##name, flags, &out), \
				 TUTTI_OK);                                              \
		assert_true(strlen(out) > 20);                                           \
		free(out);                                                               \
	}
	TUTTI_TOPO_FORMAT_MAP(X)
#undef X
	tutti_topo_free(topo);
}

/* What is written as XML is the same topology. */
static void xml_reads_as_the_same(void **state)
{
	struct tutti_topo_config config = TUTTI_TOPO_CONFIG_INIT;
	char name[] = "/tmp/tutti-topo-api-XXXXXX";
	tutti_topo_t topo = load(NDV2), again = NULL;
	char *text = NULL, *diff = NULL;
	const int fd = mkstemp(name);
	FILE *file;
	int n = -1;

	(void)state;
	assert_true(fd >= 0);
	file = fdopen(fd, "w");
	assert_non_null(file);
	assert_int_equal(tutti_topo_print(topo, TUTTI_TOPO_XML, 0, &text), TUTTI_OK);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
	config.xml_file = name;
	assert_int_equal(tutti_topo_load(&config, &again), TUTTI_OK);
	remove(name);
	assert_int_equal(tutti_topo_diff(topo, again, &diff, &n), TUTTI_OK);
	assert_int_equal(n, 0);
	assert_string_equal(diff, "");
	free(diff);
	free(text);
	tutti_topo_free(again);
	again = load(NDV4);
	assert_int_equal(tutti_topo_diff(topo, again, &diff, &n), TUTTI_OK);
	assert_true(n > 0 && diff[0]);
	free(diff);
	tutti_topo_free(again);
	tutti_topo_free(topo);
}

static void this_machine_loads(void **state)
{
	tutti_topo_t topo = NULL;

	(void)state;
	if (tutti_topo_load(NULL, &topo) != TUTTI_OK)
		fail_msg("%s", tutti_last_error(NULL));
	assert_true(tutti_topo_find(topo, "CPU", "CPU0") >= 0 || tutti_topo_node_count(topo) > 0);
	tutti_topo_free(topo);
}

static void *read_all(void *arg)
{
	tutti_topo_t topo = arg;
	char *text = NULL;

	for (int round = 0; round < 3; round++) {
		if (tutti_topo_print(topo, TUTTI_TOPO_JSON, 0, &text) != TUTTI_OK ||
		    tutti_topo_find(topo, "GPU", "GPU7") < 0)
			return arg;
		free(text);
		if (tutti_topo_print(topo, TUTTI_TOPO_PATHS, 0, &text) != TUTTI_OK)
			return arg;
		free(text);
	}
	return NULL;
}

static void threads_may_read_one(void **state)
{
	tutti_topo_t topo = load(NDV4);
	pthread_t threads[4];
	void *wrong;

	(void)state;
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, read_all, topo), 0);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(pthread_join(threads[i], &wrong), 0);
		assert_null(wrong);
	}
	tutti_topo_free(topo);
}

/* Some allocation fails: an error and nothing is kept, or all is well. */
static void out_of_memory_is_an_error(void **state)
{
	struct tutti_topo_config config = TUTTI_TOPO_CONFIG_INIT;
	tutti_status status = TUTTI_ENOMEM;
	int failed = 0;

	(void)state;
	config.xml_file = TEST_DATA "/topologies/Azure-azhpc-images__ncv4-topo.xml";
	for (int n = 1; status != TUTTI_OK; n += 1 + n / 16) {
		tutti_topo_t topo = NULL;
		char fault[24];

		snprintf(fault, sizeof(fault), "mem:%d", n);
		tti_fault_set(fault);
		status = tutti_topo_load(&config, &topo);
		tti_fault_set(NULL);
		if (status != TUTTI_OK) {
			assert_int_equal(status, TUTTI_ENOMEM);
			assert_null(topo);
			failed++;
		}
		tutti_topo_free(topo);
		assert_true(n < 1000000);
	}
	assert_true(failed > 10);
}

/* The same for each way to print. */
static void printing_without_memory_is_an_error(void **state)
{
	tutti_topo_t topo = load(TEST_DATA "/topologies/Azure-azhpc-images__ncv4-topo.xml");

	(void)state;
	for (int format = TUTTI_TOPO_TREE; format <= TUTTI_TOPO_LINT_JSON; format++) {
		tutti_status status = TUTTI_ENOMEM;

		for (int n = 1; status != TUTTI_OK; n += 1 + n / 8) {
			char *text = NULL;
			char fault[24];

			snprintf(fault, sizeof(fault), "mem:%d", n);
			tti_fault_set(fault);
			status = tutti_topo_print(topo, (tutti_topo_format)format, 0, &text);
			tti_fault_set(NULL);
			if (status != TUTTI_OK) {
				assert_int_equal(status, TUTTI_ENOMEM);
				assert_null(text);
			}
			free(text);
			assert_true(n < 1000000);
		}
	}
	tutti_topo_free(topo);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nodes_are_what_the_file_says),
		cmocka_unit_test(every_link_has_one_back),
		cmocka_unit_test(paths_say_what_traffic_does),
		cmocka_unit_test(findings_have_all_parts),
		cmocka_unit_test(what_is_not_there_is_named),
		cmocka_unit_test(loading_is_refused_with_a_reason),
		cmocka_unit_test(an_older_config_is_understood),
		cmocka_unit_test(other_figures_on_demand),
		cmocka_unit_test(every_format_prints),
		cmocka_unit_test(xml_reads_as_the_same),
		cmocka_unit_test(this_machine_loads),
		cmocka_unit_test(threads_may_read_one),
		cmocka_unit_test(out_of_memory_is_an_error),
		cmocka_unit_test(printing_without_memory_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
