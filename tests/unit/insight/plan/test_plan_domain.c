/* SPDX-License-Identifier: BSD-3-Clause */
/* Plans over an NVLink domain of several hosts, whose devices have the same names: printed,
 * saved, read again, checked, written for NCCL. */
#include "unit/plan/domain.h"

static const struct tray pair[] = { { "0x1b", NULL, "mlx5_" }, { "0x2a", NULL, "mlx5_" } };

static tutti_plan_t make(tutti_topo_t topo, int nnodes)
{
	tutti_topo_t nodes[2] = { topo, topo };
	struct tutti_plan_config config = TUTTI_PLAN_CONFIG_INIT;
	tutti_plan_t plan = NULL;

	config.patterns = "ring,tree";
	if (tutti_plan_make(nodes, nnodes, &config, &plan) != TUTTI_OK)
		fail_msg("%s", tti_error_text());
	return plan;
}

static tutti_status read_text(const char *text, tutti_topo_t topo, int nnodes, tutti_plan_t *out)
{
	tutti_topo_t nodes[2] = { topo, topo };
	tutti_status status;
	char path[32];
	FILE *file = domain_create(path);

	assert_true(fputs(text, file) >= 0 && fclose(file) == 0);
	status = tutti_plan_read(path, nodes, nnodes, NULL, out);
	unlink(path);
	return status;
}

static void saved_plans_are_read_and_carried(void **state)
{
	tutti_topo_t topo = domain_load(pair, 2);

	(void)state;
	for (int nnodes = 1; nnodes <= 2; nnodes++) {
		tutti_plan_t plan = make(topo, nnodes), again = NULL;
		char *text = plan_text(plan, TUTTI_PLAN_JSON), *twice, *differences = NULL;
		int ndiffs = -1;

		assert_non_null(strstr(text, "\"0x1b/GPU0\",\"0x1b/GPU1\",\"0x2a/GPU0\","));
		assert_non_null(strstr(text, "\"0x1b/mlx5_0\",\"0x1b/mlx5_1\",\"0x2a/mlx5_0\","));
		if (read_text(text, topo, nnodes, &again) != TUTTI_OK)
			fail_msg("%d nodes: %s", nnodes, tti_error_text());
		domain_expect_carried(again);
		twice = plan_text(again, TUTTI_PLAN_JSON);
		assert_string_equal(text, twice);
		assert_int_equal(tutti_plan_diff(plan, again, &differences, &ndiffs), TUTTI_OK);
		assert_int_equal(ndiffs, 0);
		domain_expect(again, TUTTI_PLAN_DOT, "0x2a/GPU1");
		free(differences);
		free(text);
		free(twice);
		tutti_plan_free(plan);
		tutti_plan_free(again);
	}
	tutti_topo_free(topo);
}

/* The host is said where it changes. */
static void tables_name_hosts(void **state)
{
	tutti_topo_t topo = domain_load(pair, 2);
	tutti_plan_t one = make(topo, 1), two = make(topo, 2);

	(void)state;
	domain_expect(one, TUTTI_PLAN_TABLE, " GPU\n");
	domain_expect(one, TUTTI_PLAN_TABLE, " 0x1b/0 1 0x2a/0 1\n");
	domain_expect(one, TUTTI_PLAN_TABLE, " 0x1b/0-1-0x2a/0-1\n");
	domain_expect(two, TUTTI_PLAN_TABLE,
		      "  2 x 4 ranks, 4 NICs, 2 hosts of one NVLink domain: 0x1b, 0x2a\n");
	domain_expect(two, TUTTI_PLAN_EXPLAIN, "0x1b/mlx5_0");
	tutti_plan_free(one);
	tutti_plan_free(two);
	tutti_topo_free(topo);
}

/* As NCCL numbers devices of several hosts: the host in the upper byte. */
static void graph_files_tell_hosts_apart(void **state)
{
	tutti_topo_t topo = domain_load(pair, 2);

	(void)state;
	for (int nnodes = 1; nnodes <= 2; nnodes++) {
		tutti_plan_t plan = make(topo, nnodes), again = NULL;
		char *text = plan_text(plan, TUTTI_PLAN_NCCL);

		assert_non_null(strstr(text, "<gpu dev=\"1\"/>"));
		assert_non_null(strstr(text, "<gpu dev=\"100000000000001\"/>"));
		assert_int_equal(strstr(text, "<net dev=\"100000000000001\"/>") != NULL,
				 nnodes == 2);
		if (read_text(text, topo, nnodes, &again) != TUTTI_OK)
			fail_msg("%d nodes: %s", nnodes, tti_error_text());
		domain_expect_carried(again);
		domain_expect(again, TUTTI_PLAN_TABLE,
			      nnodes == 1 ? " 0x1b/0 1 0x2a/0 1\n" : " 0x1b/1 0x2a/0 1 0x1b/0\n");
		free(text);
		tutti_plan_free(plan);
		tutti_plan_free(again);
	}
	tutti_topo_free(topo);
}

/* `text` without a word, wherever it is. */
static void erase(char *text, const char *word)
{
	const size_t len = strlen(word);

	for (char *at = text; (at = strstr(at, word));)
		memmove(at, at + len, strlen(at + len) + 1);
}

/* Files that were written before names had hosts. */
static void names_without_hosts(void **state)
{
	static const struct tray apart[] = { { "0x1b", NULL, "a" }, { "0x2a", NULL, "b" } };
	tutti_topo_t topo = domain_load(apart, 2), same = domain_load(pair, 2);
	tutti_plan_t plan = make(topo, 2), again = NULL;
	char *text = plan_text(plan, TUTTI_PLAN_JSON);

	(void)state;
	erase(text, "0x1b/");
	erase(text, "0x2a/");
	if (read_text(text, topo, 2, &again) != TUTTI_OK)
		fail_msg("%s", tti_error_text());
	domain_expect_carried(again);
	tutti_plan_free(again);
	tutti_plan_free(plan);
	free(text);

	plan = make(same, 2);
	text = plan_text(plan, TUTTI_PLAN_JSON);
	erase(text, "0x1b/");
	erase(text, "0x2a/");
	assert_int_equal(read_text(text, same, 2, &again), TUTTI_EINVAL);
	assert_non_null(strstr(tti_error_text(), "node node0 has 2 NICs mlx5_"));
	assert_non_null(strstr(tti_error_text(), "name them as HOST/mlx5_"));
	tutti_plan_free(plan);
	free(text);
	tutti_topo_free(topo);
	tutti_topo_free(same);
}

/* A name that hosts share names none of them. */
static void shared_names_are_not_found(void **state)
{
	tutti_topo_t topo = domain_load(pair, 2);
	struct tutti_topo_node node;
	const int found = tutti_topo_find(topo, "GPU", "0x2a/GPU1");

	(void)state;
	assert_int_equal(tutti_topo_get_node(topo, found, &node), TUTTI_OK);
	assert_string_equal(node.name, "GPU1");
	assert_string_equal(node.host, "0x2a");
	assert_int_equal(tutti_topo_find(topo, "GPU", "GPU1"), -1);
	assert_int_equal(tutti_topo_find(topo, "GPU", "0x3a/GPU1"), -1);
	tutti_topo_free(topo);
}

/* -- Hosts that name their domain --------------------------------------------------------- */

#define RACK "3143b15b-0000.7"

static tutti_plan_t make_of(const tutti_topo_t *nodes, int nnodes, const int *node_of_rank,
			    int nranks)
{
	struct tutti_plan_config config = TUTTI_PLAN_CONFIG_INIT;
	tutti_plan_t plan = NULL;

	config.patterns = "ring,tree";
	config.node_of_rank = node_of_rank;
	config.nranks = nranks;
	if (tutti_plan_make(nodes, nnodes, &config, &plan) != TUTTI_OK)
		fail_msg("%s", tti_error_text());
	return plan;
}

static double ring_of(tutti_plan_t plan)
{
	struct tutti_plan_pattern pattern;

	assert_int_equal(tutti_plan_get_pattern(plan, 0, &pattern), TUTTI_OK);
	assert_string_equal(pattern.name, "ring");
	return pattern.total_gbps;
}

/* One tray, several times, is what the trays are in one file. */
static void trays_of_one_domain_are_one_node(void **state)
{
	static const struct tray alone = { "0x1b", RACK, "mlx5_" };
	static const int cyclic[] = { 0, 1, 0, 1 };
	const tutti_topo_t whole = domain_load(pair, 2), tray = domain_load(&alone, 1);
	const tutti_topo_t trays[] = { tray, tray };
	tutti_plan_t expected = make(whole, 1), plan = make_of(trays, 2, NULL, 0), again = NULL;
	char *text = plan_text(plan, TUTTI_PLAN_JSON);

	(void)state;
	assert_float_equal(ring_of(plan), ring_of(expected), 1e-3);
	domain_expect(plan, TUTTI_PLAN_TABLE, "4 ranks on 1 node\n");
	domain_expect(plan, TUTTI_PLAN_TABLE, "2 hosts of one NVLink domain: node0-1\n");
	domain_expect(plan, TUTTI_PLAN_TABLE, " node0/0 1 node1/0 1\n");
	domain_expect_carried(plan);
	if (read_text(text, tray, 2, &again) != TUTTI_OK)
		fail_msg("%s", tti_error_text());
	domain_expect_carried(again);
	tutti_plan_free(again);
	free(text);
	tutti_plan_free(plan);
	tutti_plan_free(expected);

	plan = make_of(trays, 2, cyclic, 4);
	domain_expect(
		plan, TUTTI_PLAN_JSON,
		"\"endpoints\":[\"node0/GPU0\",\"node1/GPU0\",\"node0/GPU1\",\"node1/GPU1\"]");
	tutti_plan_free(plan);
	tutti_topo_free(whole);
	tutti_topo_free(tray);
}

/* Two racks, and a host that is in none, which stands where it did. */
static void several_domains(void **state)
{
	static const struct tray trays[] = { { "0x1", RACK, "mlx5_" },
					     { "0x2", "other.1", "mlx5_" },
					     { "0x3", "third.1", "mlx5_" } };
	tutti_topo_t a = domain_load(&trays[0], 1), b = domain_load(&trays[1], 1);
	tutti_topo_t c = domain_load(&trays[2], 1);
	const tutti_topo_t nodes[] = { a, b, c, a, b, a };
	tutti_plan_t plan = make_of(nodes, 6, NULL, 0);

	(void)state;
	domain_expect(plan, TUTTI_PLAN_TABLE, "12 ranks on 3 nodes of 3 kinds\n");
	domain_expect(plan, TUTTI_PLAN_TABLE,
		      "3 hosts of one NVLink domain: node0, node3, node5\n");
	domain_expect(plan, TUTTI_PLAN_TABLE, "2 hosts of one NVLink domain: node1, node4\n");
	domain_expect(plan, TUTTI_PLAN_JSON,
		      "{\"name\":\"node0..node5\",\"kind\":0,\"ranks\":[0,1,6,7,10,11],");
	domain_expect(plan, TUTTI_PLAN_JSON, "{\"name\":\"node2\",\"kind\":2,\"ranks\":[4,5],");
	domain_expect_carried(plan);
	tutti_plan_free(plan);
	tutti_topo_free(a);
	tutti_topo_free(b);
	tutti_topo_free(c);
}

static void a_domain_that_is_not_named(void **state)
{
	static const char words[] = "NVLink between nodes is not counted: trays.xml does not name";
	static const struct tray trays[] = { { "0x1b", NULL, "mlx5_" }, { "0x1b", RACK, "mlx5_" } };
	tutti_topo_t unnamed = domain_load(&trays[0], 1), named = domain_load(&trays[1], 1);
	const tutti_topo_t nodes[] = { unnamed, unnamed, named };
	tutti_plan_t one = make_of(nodes, 1, NULL, 0), two = make_of(nodes, 2, NULL, 0);
	tutti_plan_t mixed = make_of(nodes + 1, 2, NULL, 0),
		     single = make_of(nodes + 2, 1, NULL, 0);
	char *text = plan_text(one, TUTTI_PLAN_TABLE);

	(void)state;
	assert_null(strstr(text, "NVLink between"));
	domain_expect(two, TUTTI_PLAN_TABLE, "4 ranks on 2 nodes\n");
	domain_expect(two, TUTTI_PLAN_TABLE, words);
	domain_expect(two, TUTTI_PLAN_TABLE, "give each <gpu> of the file tutti_fabric=");
	domain_expect(mixed, TUTTI_PLAN_TABLE, words);
	free(text);
	tutti_plan_free(one);
	tutti_plan_free(two);
	tutti_plan_free(mixed);
	tutti_plan_free(single);
	tutti_topo_free(unnamed);
	tutti_topo_free(named);
}

static void more_gpus_than_nvlink_connects(void **state)
{
	static const struct tray alone = { "0x1b", RACK, "mlx5_" };
	tutti_topo_t tray = domain_load(&alone, 1), *nodes = calloc(300, sizeof(*nodes));
	tutti_plan_t plan = NULL;

	(void)state;
	assert_non_null(nodes);
	for (int i = 0; i < 300; i++)
		nodes[i] = tray;
	assert_int_equal(tutti_plan_make(nodes, 300, NULL, &plan), TUTTI_EINVAL);
	assert_non_null(
		strstr(tti_error_text(), "300 hosts with 600 GPUs name the NVLink domain " RACK));
	free(nodes);
	tutti_topo_free(tray);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(saved_plans_are_read_and_carried),
		cmocka_unit_test(tables_name_hosts),
		cmocka_unit_test(graph_files_tell_hosts_apart),
		cmocka_unit_test(names_without_hosts),
		cmocka_unit_test(shared_names_are_not_found),
		cmocka_unit_test(trays_of_one_domain_are_one_node),
		cmocka_unit_test(several_domains),
		cmocka_unit_test(a_domain_that_is_not_named),
		cmocka_unit_test(more_gpus_than_nvlink_connects),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
