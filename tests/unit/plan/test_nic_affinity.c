/* SPDX-License-Identifier: BSD-3-Clause */
/* NICs for ranks, beside all assignments there are: on random machines, with ranks that
 * share endpoints, and with partners on another node. */
#include "machines.h"

#include "plan/connect/nic_affinity.h"
#include "support/random_topo.h"
#include "util/error.h"

#define MOST 64

static uint64_t next(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return *state >> 33;
}

/* What an assignment is worth, the most important first. */
struct worth {
	double load[MOST]; /* of all ranks: the first of its NIC, the second ...; descending */
	uint32_t unreached;
	int64_t types;
	int64_t parts;
	uint32_t amiss;
};

struct given {
	struct machine m;
	uint32_t members[MOST], nets[MOST];
	uint64_t rail[MOST];
	struct tti_nic_affinity_node node;
};

static const struct tti_route *route_of(const struct given *g, uint32_t rank, uint32_t net)
{
	return tti_routes_get(g->m.routes, g->members[rank], g->nets[net]);
}

static bool reached(const struct tti_route *route)
{
	return route->type < TTI_PATH_NET && route->bw_gbps > 0;
}

static double gbps(const struct given *g, uint32_t net)
{
	const struct tti_graph *graph = g->m.graph;

	for (uint32_t i = 0; i < graph->nlinks; i++)
		if (graph->links[i].to == g->nets[net] && graph->links[i].type == TTI_LINK_NET)
			return (double)graph->links[i].bw_gbps;
	return 1e-3;
}

static void insert(double *sorted, uint32_t n, double value)
{
	for (; n > 0 && sorted[n - 1] < value; n--)
		sorted[n] = sorted[n - 1];
	sorted[n] = value;
}

static struct worth weigh(const struct given *g, const uint32_t *own, const struct given *first,
			  const uint32_t *first_own)
{
	struct worth worth = { 0 };
	uint32_t count[MOST] = { 0 }, n = 0;
	double widest = 0;

	for (uint32_t rank = 0; rank < g->node.nranks; rank++)
		for (uint32_t net = 0; net < g->node.nnets; net++)
			if (reached(route_of(g, rank, net)) &&
			    (double)route_of(g, rank, net)->bw_gbps > widest)
				widest = (double)route_of(g, rank, net)->bw_gbps;
	for (uint32_t rank = 0; rank < g->node.nranks; rank++) {
		const struct tti_route *route = route_of(g, rank, own[rank]);

		count[own[rank]]++;
		if (first && rank < first->node.nranks)
			worth.amiss += !tti_nic_affinity_same_rail(&g->node, own[rank],
								   &first->node, first_own[rank]);
		if (!reached(route)) {
			worth.unreached++;
			continue;
		}
		worth.types += route->type;
		worth.parts += (int64_t)(1000 * (1 - (double)route->bw_gbps / widest));
	}
	for (uint32_t net = 0; net < g->node.nnets; net++)
		for (uint32_t k = 1; k <= count[net]; k++)
			insert(worth.load, n++, k / gbps(g, net));
	return worth;
}

/* < 0: a is better. */
static int compare(const struct worth *a, const struct worth *b)
{
	for (uint32_t i = 0; i < MOST; i++)
		if (a->load[i] < b->load[i] * (1 - 1e-9) || b->load[i] < a->load[i] * (1 - 1e-9))
			return a->load[i] < b->load[i] ? -1 : 1;
	if (a->unreached != b->unreached)
		return a->unreached < b->unreached ? -1 : 1;
	if (a->types != b->types)
		return a->types < b->types ? -1 : 1;
	if (a->parts != b->parts)
		return a->parts < b->parts ? -1 : 1;
	return (a->amiss > b->amiss) - (a->amiss < b->amiss);
}

/* Of all assignments there are. */
static struct worth best_of_all(const struct given *g, const struct given *first,
				const uint32_t *first_own)
{
	uint32_t own[MOST] = { 0 }, rank = 0;
	struct worth best = weigh(g, own, first, first_own);

	while (rank < g->node.nranks) {
		struct worth worth;

		for (rank = 0; rank < g->node.nranks && ++own[rank] == g->node.nnets; rank++)
			own[rank] = 0;
		worth = weigh(g, own, first, first_own);
		if (compare(&worth, &best) < 0)
			best = worth;
	}
	return best;
}

/* Up to so many ranks and NICs of a random machine; false: it has none. */
static bool draw(struct given *g, uint64_t seed, uint32_t nranks, uint32_t nnets)
{
	struct tti_xml_doc *doc = random_topo(seed % 97 + seed / 97);
	uint32_t ends[256], nends = 0;
	uint64_t state = seed;

	assert_non_null(doc);
	machine_build(&g->m, doc, TTI_MODEL_TUTTI);
	for (int type = TTI_NODE_GPU; type <= TTI_NODE_HOST; type++)
		for (uint32_t i = 0; i < g->m.graph->ntype[type] && nends < 256; i++)
			ends[nends++] = g->m.graph->by_type[type][i];
	if (nends == 0 || g->m.graph->ntype[TTI_NODE_NET] == 0) {
		machine_release(&g->m);
		return false;
	}
	nranks = 1 + (uint32_t)(next(&state) % nranks);
	nnets = 1 + (uint32_t)(next(&state) % nnets);
	if (nnets > g->m.graph->ntype[TTI_NODE_NET])
		nnets = g->m.graph->ntype[TTI_NODE_NET];
	for (uint32_t rank = 0; rank < nranks; rank++)
		g->members[rank] = ends[next(&state) % nends];
	for (uint32_t net = 0; net < nnets; net++) {
		g->nets[net] = g->m.graph->by_type[TTI_NODE_NET][net];
		g->rail[net] = 1 + next(&state) % 5;
	}
	g->node = (struct tti_nic_affinity_node){
		g->m.routes, g->members, nranks, g->nets, nnets, seed % 2 ? g->rail : NULL
	};
	return true;
}

static void check_order(const struct given *g, const uint32_t *order, uint32_t *own)
{
	for (uint32_t rank = 0; rank < g->node.nranks; rank++) {
		const uint32_t *list = order + rank * g->node.nnets;
		bool seen[MOST] = { false };

		own[rank] = list[0];
		for (uint32_t k = 0; k < g->node.nnets; k++) {
			assert_true(list[k] < g->node.nnets && !seen[list[k]]);
			seen[list[k]] = true;
			/* Behind the own one, none that is nearer comes later. */
			if (k > 1 && reached(route_of(g, rank, list[k])))
				assert_true(route_of(g, rank, list[k - 1])->type <=
					    route_of(g, rank, list[k])->type);
		}
	}
}

static void beside_all(void **state)
{
	uint32_t n = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= 400; seed++) {
		struct given g[2];
		struct tti_nic_affinity_node nodes[2];
		struct tti_arena arena = { NULL };
		uint32_t own[2][MOST], **order;

		if (!draw(&g[0], seed, 5, 4))
			continue;
		if (!draw(&g[1], seed * 31 + 7, 5, 4)) {
			machine_release(&g[0].m);
			continue;
		}
		nodes[0] = g[0].node;
		nodes[1] = g[1].node;
		assert_int_equal(tti_nic_affinity_assign(nodes, 2, &arena, &order), TUTTI_OK);
		for (int i = 0; i < 2; i++) {
			const struct given *first = i ? &g[0] : NULL;
			struct worth found, best;

			check_order(&g[i], order[i], own[i]);
			found = weigh(&g[i], own[i], first, own[0]);
			best = best_of_all(&g[i], first, own[0]);
			if (compare(&best, &found) != 0)
				fail_msg("seed %lu, node %d: there is a better assignment",
					 (unsigned long)seed, i);
			n++;
		}
		tti_arena_release(&arena);
		machine_release(&g[0].m);
		machine_release(&g[1].m);
	}
	assert_true(n > 300);
}

/* What follows for many ranks: no NIC could take a rank from one with more. */
static void fair(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 300; seed++) {
		struct given g;
		struct tti_arena arena = { NULL };
		uint32_t own[MOST], **order, count[MOST] = { 0 };
		bool all_reached = true;

		if (!draw(&g, seed, 60, 16))
			continue;
		assert_int_equal(tti_nic_affinity_assign(&g.node, 1, &arena, &order), TUTTI_OK);
		check_order(&g, order[0], own);
		for (uint32_t rank = 0; rank < g.node.nranks; rank++) {
			count[own[rank]]++;
			for (uint32_t net = 0; net < g.node.nnets; net++)
				all_reached &= reached(route_of(&g, rank, net));
		}
		for (uint32_t a = 0; all_reached && a < g.node.nnets; a++)
			for (uint32_t b = 0; b < g.node.nnets; b++)
				if (count[a] && a != b)
					assert_true(count[a] / gbps(&g, a) <=
						    (count[b] + 1) / gbps(&g, b) * (1 + 1e-9));
		tti_arena_release(&arena);
		machine_release(&g.m);
	}
}

/* Two nodes alike are straight; and where NICs come in another order, but their networks
 * are known. */
static void straight(void **state)
{
	static const uint64_t rails[2][8] = { { 1, 2, 3, 4, 5, 6, 7, 8 },
					      { 4, 3, 2, 1, 8, 7, 6, 5 } };
	struct machine m;
	struct tti_nic_affinity_node nodes[2];
	struct tti_arena arena = { NULL };
	uint32_t members[16], nets[2][8], **order;

	(void)state;
	machine_read(&m, TEST_DATA "/topologies/azhpc-images__ndv4-topo.xml", TTI_MODEL_TUTTI);
	for (uint32_t i = 0; i < 16; i++)
		members[i] = m.graph->by_type[TTI_NODE_GPU][i % 8];
	for (uint32_t i = 0; i < 8; i++) {
		nets[0][i] = m.graph->by_type[TTI_NODE_NET][i];
		nets[1][i] = m.graph->by_type[TTI_NODE_NET][rails[1][i] - 1];
	}
	for (int known = 0; known < 2; known++) {
		for (int i = 0; i < 2; i++)
			nodes[i] = (struct tti_nic_affinity_node){
				m.routes, members, 16, nets[known * i], 8, known ? rails[i] : NULL
			};
		assert_int_equal(tti_nic_affinity_assign(nodes, 2, &arena, &order), TUTTI_OK);
		for (uint32_t rank = 0; rank < 16; rank++) {
			const uint32_t a = order[0][rank * 8], b = order[1][rank * 8];

			assert_true(tti_nic_affinity_same_rail(&nodes[0], a, &nodes[1], b));
			assert_int_equal(tti_routes_get(m.routes, members[rank], nets[0][a])->type,
					 TTI_PATH_PIX);
		}
		tti_arena_release(&arena);
	}
	machine_release(&m);
}

/* A NIC of a quarter of the speed has a quarter of the ranks, a node without NICs none. */
static void by_speed(void **state)
{
	static const char text[] =
		"<system version=\"1\"><cpu numaid=\"0\" affinity=\"ff\" arch=\"x86_64\" "
		"vendor=\"AuthenticAMD\"><nic><net name=\"a\" dev=\"0\" speed=\"100000\" "
		"port=\"1\" guid=\"0x1\"/></nic><nic><net name=\"b\" dev=\"1\" speed=\"25000\" "
		"port=\"1\" guid=\"0x2\"/></nic></cpu></system>";
	struct tti_xml_doc *doc = NULL;
	struct machine m;
	struct tti_arena arena = { NULL };
	uint32_t members[10], **order, n = 0;
	struct tti_nic_affinity_node nodes[2];

	(void)state;
	assert_int_equal(tti_xml_read(text, sizeof(text) - 1, "two NICs", &doc), TUTTI_OK);
	machine_build(&m, doc, TTI_MODEL_TUTTI);
	for (uint32_t i = 0; i < 10; i++)
		members[i] = m.graph->by_type[TTI_NODE_HOST][0];
	nodes[0] = (struct tti_nic_affinity_node){ m.routes, members, 10, NULL, 0, NULL };
	nodes[1] = (struct tti_nic_affinity_node){ m.routes, members,
						   10,       m.graph->by_type[TTI_NODE_NET],
						   2,        NULL };
	assert_int_equal(tti_nic_affinity_assign(nodes, 2, &arena, &order), TUTTI_OK);
	assert_null(order[0]);
	for (uint32_t i = 0; i < 10; i++)
		n += order[1][2 * i] == 1;
	assert_int_equal(n, 2);
	tti_arena_release(&arena);
	machine_release(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(beside_all),
		cmocka_unit_test(fair),
		cmocka_unit_test(straight),
		cmocka_unit_test(by_speed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
