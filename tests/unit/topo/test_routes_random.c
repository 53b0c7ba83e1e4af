/* SPDX-License-Identifier: BSD-3-Clause */
/* What holds of every route, whatever the machine and what is allowed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/random_topo.h"
#include "unit/topo/routed.h"

#define MACHINES 1000

struct pair {
	const struct machine *machine;
	const struct tti_routes_config *config;
	const struct tti_node *from, *to;
	const struct tti_path *path;
	const struct tti_route *route, *back;
	uint32_t a, b;
};

static const struct tti_path *path_of(const struct pair *pair, uint32_t from, uint32_t to)
{
	return tti_paths_get(pair->machine->paths, from, to);
}

static float least(float a, float b)
{
	return a < b ? a : b;
}

static bool is_gpu(const struct tti_node *node)
{
	return node->type == TTI_NODE_GPU;
}

static bool is_net(const struct tti_node *node)
{
	return node->type == TTI_NODE_NET;
}

static void expect_wired(const struct pair *pair)
{
	assert_int_equal(pair->route->type, pair->path->type);
	assert_int_equal(pair->route->via, TTI_NODE_NONE);
	assert_true(pair->route->bw_gbps == pair->path->bw_gbps);
	assert_true(pair->route->latency_ns == pair->path->latency_ns);
}

static void expect_joined(const struct pair *pair)
{
	const struct tti_path *first = path_of(pair, pair->a, pair->route->via);
	const struct tti_path *second = path_of(pair, pair->route->via, pair->b);

	assert_true(pair->route->bw_gbps == least(first->bw_gbps, second->bw_gbps));
	assert_true(pair->route->latency_ns == first->latency_ns + second->latency_ns);
}

static void expect_handed_over(const struct pair *pair)
{
	const struct tti_node *peer = &pair->machine->graph->nodes[pair->route->via];

	assert_true(is_gpu(pair->from) && is_net(pair->to) && is_gpu(peer));
	assert_false(pair->config->pxn_disable);
	assert_int_equal(peer->host, pair->from->host);
	assert_true(path_of(pair, pair->a, pair->route->via)->type <= TTI_PATH_NVL);
	assert_true(pair->path->type > TTI_PATH_PXN ||
		    path_of(pair, pair->route->via, pair->b)->bw_gbps > pair->path->bw_gbps);
	assert_true(pair->route->gdr && peer->gpu.gdr && pair->to->net.gdr);
	expect_joined(pair);
}

static void expect_bounced(const struct pair *pair)
{
	const struct tti_graph *graph = pair->machine->graph;

	assert_false(pair->route->p2p || pair->route->gdr);
	if (pair->route->via == TTI_NODE_NONE)
		return;
	assert_int_equal(graph->nodes[pair->route->via].type, TTI_NODE_HOST);
	if (pair->from->host == pair->to->host)
		assert_in_range(pair->route->type, TTI_PATH_C2C, TTI_PATH_SYS);
	else
		assert_in_range(pair->route->type, TTI_PATH_NET, TTI_PATH_DIS);
	expect_joined(pair);
}

static void expect_sense(const struct pair *pair)
{
	switch ((enum tti_route_why)pair->route->why) {
	case TTI_ROUTE_WIRED:
		expect_wired(pair);
		return;
	case TTI_ROUTE_NO_WAY:
		assert_int_equal(pair->path->type, TTI_PATH_DIS);
		return;
	case TTI_ROUTE_OVERHEAD:
		assert_true(pair->route->p2p);
		if (pair->path->type == TTI_PATH_NVB) /* which is off */
			return;
		assert_true(pair->route->bw_gbps < pair->path->bw_gbps);
		assert_true(pair->route->bw_gbps > pair->path->bw_gbps * 0.83F);
		return;
	case TTI_ROUTE_PXN:
		expect_handed_over(pair);
		return;
	case TTI_ROUTE_NVB_OFF:
		assert_int_equal(pair->path->type, TTI_PATH_NVB);
		assert_true(pair->config->nvb_disable && pair->route->p2p);
		return;
	case TTI_ROUTE_P2P_FAR:
	case TTI_ROUTE_P2P_OFF:
		assert_true(is_gpu(pair->from) && is_gpu(pair->to));
		expect_bounced(pair);
		return;
	case TTI_ROUTE_GDR_FAR:
	case TTI_ROUTE_GDR_NO_GPU:
	case TTI_ROUTE_GDR_NO_NIC:
		assert_true(is_net(pair->from) || is_net(pair->to));
		expect_bounced(pair);
		return;
	case TTI_ROUTE_GDR_READ_OFF:
		assert_true(is_gpu(pair->from));
		expect_bounced(pair);
		return;
	}
	fail_msg("no reason");
}

/* What is allowed in one direction is so in the other, but for what NICs may read. */
static void expect_symmetry(const struct pair *pair)
{
	assert_int_equal(pair->route->p2p, pair->back->p2p);
	if (is_net(pair->from) && is_gpu(pair->to) && !pair->route->gdr &&
	    pair->back->why != TTI_ROUTE_PXN)
		assert_false(pair->back->gdr);
	if (is_gpu(pair->from) && is_gpu(pair->to) && pair->route->why != TTI_ROUTE_OVERHEAD &&
	    pair->back->why != TTI_ROUTE_OVERHEAD)
		assert_int_equal(pair->route->why, pair->back->why);
}

static void try_machine(const struct machine *machine, const struct tti_routes_config *config)
{
	const struct tti_paths *paths = machine->paths;

	for (uint32_t i = 0; i < paths->n; i++)
		for (uint32_t j = 0; j < paths->n; j++) {
			const uint32_t a = paths->endpoints[i], b = paths->endpoints[j];
			const struct pair pair = {
				.machine = machine,
				.config = config,
				.a = a,
				.b = b,
				.from = &machine->graph->nodes[a],
				.to = &machine->graph->nodes[b],
				.path = tti_paths_get(paths, a, b),
				.route = tti_routes_get(machine->routes, a, b),
				.back = tti_routes_get(machine->routes, b, a),
			};

			expect_sense(&pair);
			expect_symmetry(&pair);
		}
}

static void routes_of_random_machines_make_sense(void **state)
{
	static const enum tti_path_type levels[] = { TTI_PATH_LOC, TTI_PATH_NVL, TTI_PATH_PIX,
						     TTI_PATH_PXB, TTI_PATH_PHB, TTI_PATH_SYS };

	(void)state;
	for (uint64_t seed = 1; seed <= MACHINES; seed++) {
		const struct tti_routes_config config = {
			.p2p_level = levels[seed % 6],
			.p2p_auto = seed % 5 == 0,
			.p2p_disable = seed % 11 == 0,
			.gdr_level = levels[seed / 6 % 6],
			.gdr_read = (int)(seed % 3) - 1,
			.pxn_disable = seed % 13 == 0,
			.nvb_disable = seed % 4 == 0,
		};
		struct tti_xml_doc *doc = random_topo(seed);
		struct machine machine;

		assert_non_null(doc);
		machine = machine_of_doc(doc, config);
		try_machine(&machine, &config);
		machine_end(&machine);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(routes_of_random_machines_make_sense),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
