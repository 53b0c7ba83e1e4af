/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/paths/routes.h"

#include <pthread.h>
#include <string.h>

#include "topo/paths/route_rules.h"
#include "util/error.h"
#include "util/mem.h"
#include "util/params.h"
#include "util/params_read.h"

struct tti_routes_lazy {
	pthread_mutex_t lock; /* of all below, where there is no table */
	struct tti_route_rules rules;
	/* A row for each endpoint, NULL: not asked for. A route that was made has a bandwidth
	 * or a type that is not 0, and does not change any more. */
	struct tti_route **row;
};

/* -- Parameters ---------------------------------------------------------------------------- */

/* The levels in the order of the parameters' lists. */
static enum tti_path_type level_of(int value)
{
	static const enum tti_path_type levels[] = { TTI_PATH_LOC, TTI_PATH_NVL, TTI_PATH_PIX,
						     TTI_PATH_PXB, TTI_PATH_PHB, TTI_PATH_SYS };

	tti_assert(value >= 0 && (size_t)value < sizeof(levels) / sizeof(levels[0]));
	return levels[value];
}

static bool is_set(const char *variable)
{
	const struct tti_param_desc *desc;
	bool set = false;

	for (int i = 0; (desc = tti_param_desc(i)) != NULL; i++)
		if (strcmp(desc->variable, variable) == 0)
			(void)tti_param_text(i, &set);
	return set;
}

struct tti_routes_config tti_routes_config_from_params(void)
{
	const struct tti_param_values *params = tti_params();

	return (struct tti_routes_config){
		.p2p_level = level_of(params->p2p_level),
		.p2p_auto = !is_set("TUTTI_P2P_LEVEL"),
		.p2p_disable = params->p2p_disable,
		.gdr_level = level_of(params->net_gdr_level),
		.gdr_read = (int)params->net_gdr_read,
		.pxn_disable = params->pxn_disable,
		.nvb_disable = params->nvb_disable,
	};
}

/* -- Routes -------------------------------------------------------------------------------- */

static tutti_status out_of_memory(const struct tti_paths *paths)
{
	return tti_fail(TUTTI_ENOMEM, "no memory for the routes of %u endpoints", paths->n);
}

static tutti_status fill_table(struct tti_routes *routes)
{
	const struct tti_paths *paths = routes->paths;

	routes->at = tti_calloc((size_t)paths->n * paths->n, sizeof(*routes->at));
	if (!routes->at)
		return out_of_memory(paths);
	for (uint32_t i = 0; i < paths->n; i++)
		for (uint32_t j = 0; j < paths->n; j++)
			if (!tti_route_rules_apply(&routes->lazy->rules, paths->endpoints[i],
						   paths->endpoints[j],
						   &routes->at[(size_t)i * paths->n + j]))
				return TUTTI_ENOMEM;
	return TUTTI_OK;
}

static tutti_status make_routes(struct tti_routes *routes, const struct tti_routes_config *config)
{
	struct tti_routes_lazy *lazy = tti_zalloc(sizeof(*lazy));

	if (!lazy)
		return out_of_memory(routes->paths);
	routes->lazy = lazy;
	pthread_mutex_init(&lazy->lock, NULL);
	TTI_TRY(tti_route_rules_init(&lazy->rules, routes->paths, config));
	if (routes->paths->at)
		return fill_table(routes);
	lazy->row = tti_calloc(routes->paths->n, sizeof(struct tti_route *));
	return lazy->row ? TUTTI_OK : out_of_memory(routes->paths);
}

tutti_status tti_routes_build(const struct tti_paths *paths, const struct tti_routes_config *config,
			      struct tti_routes **out)
{
	const struct tti_routes_config usual = tti_routes_config_from_params();
	struct tti_routes *routes = tti_zalloc(sizeof(*routes));
	tutti_status status;

	if (!routes)
		return out_of_memory(paths);
	routes->paths = paths;
	status = make_routes(routes, config ? config : &usual);
	if (status == TUTTI_OK)
		*out = routes;
	else
		tti_routes_free(routes);
	return status;
}

void tti_routes_free(struct tti_routes *routes)
{
	struct tti_routes_lazy *lazy = routes ? routes->lazy : NULL;

	if (!routes)
		return;
	if (lazy) {
		for (uint32_t i = 0; lazy->row && i < routes->paths->n; i++)
			tti_free(lazy->row[i]);
		tti_free(lazy->row);
		tti_route_rules_release(&lazy->rules);
		pthread_mutex_destroy(&lazy->lock);
		tti_free(lazy);
	}
	tti_free(routes->at);
	tti_free(routes);
}

tutti_status tti_routes_want_all(const struct tti_routes *routes)
{
	const struct tti_paths *paths = routes->paths;

	if (routes->at)
		return TUTTI_OK;
	return tti_fail(TUTTI_EUNSUPPORTED,
			"%s has %u GPUs, NUMA nodes and nets, too many to know the routes between "
			"all of them in %zu MiB: take fewer hosts at once",
			paths->graph->source ? paths->graph->source : "the topology", paths->n,
			TTI_PATHS_BYTES >> 20);
}

/* With the lock. */
static const struct tti_route *make_route(const struct tti_routes *routes, uint32_t from,
					  uint32_t to)
{
	const struct tti_paths *paths = routes->paths;
	struct tti_route **row = &routes->lazy->row[paths->index[from]];
	struct tti_route *route;

	if (!*row)
		*row = tti_calloc(paths->n, sizeof(**row));
	if (!*row) {
		(void)out_of_memory(paths);
		return NULL;
	}
	route = &(*row)[paths->index[to]];
	if ((route->type || route->bw_gbps > 0) ||
	    tti_route_rules_apply(&routes->lazy->rules, from, to, route))
		return route;
	*route = (struct tti_route){ 0 };
	return NULL;
}

const struct tti_route *tti_routes_get(const struct tti_routes *routes, uint32_t from, uint32_t to)
{
	const struct tti_paths *paths = routes->paths;
	const struct tti_route *route;

	if (routes->at)
		return &routes->at[(size_t)paths->index[from] * paths->n + paths->index[to]];
	pthread_mutex_lock(&routes->lazy->lock);
	route = make_route(routes, from, to);
	pthread_mutex_unlock(&routes->lazy->lock);
	return route;
}
