/* SPDX-License-Identifier: BSD-3-Clause */
#include "plan.h"

#include <stdlib.h>
#include <string.h>

#include "hosts.h"
#include "tool.h"

static bool no_memory(void)
{
	tool_fail("out of memory");
	return false;
}

int plan_failed(tutti_status status)
{
	tool_fail("%s", tool_why(NULL, status));
	return status == TUTTI_EINVAL ? TOOL_USAGE : TOOL_FINDING;
}

/* -- Options ------------------------------------------------------------------------ */

/* "8", "4:16", ":16", "4:" */
bool plan_take_channels(const char *label, const char *value, void *self)
{
	struct tutti_plan_config *const config = self;
	const char *colon = strchr(value, ':');
	char least[16] = "0";
	const char *most = colon ? colon + 1 : value;

	if (colon && (size_t)(colon - value) >= sizeof(least)) {
		tool_bad_usage("%s '%s' is no MIN:MAX", label, value);
		return false;
	}
	if (!colon)
		snprintf(least, sizeof(least), "%.15s", value);
	else if (colon > value)
		snprintf(least, sizeof(least), "%.*s", (int)(colon - value), value);
	if (!cli_int(label, least, 0, 1024, &config->min_channels))
		return false;
	return !*most || cli_int(label, most, 1, 1024, &config->max_channels);
}

bool plan_has_machine(const struct plan_source *source)
{
	return source->xml.n > 0 || source->topo.config.sysfs_root || source->topo.config.gpus;
}

/* -- Which node is which machine ------------------------------------------------------- */

static int load_machines(struct plan_source *source)
{
	for (int i = 0; i < source->nmachines; i++) {
		struct plan_machine *machine = &source->machines[i];
		struct topo_source one = source->topo;
		int code;

		one.config.xml_file = machine->path;
		code = topo_load(&one, &machine->topo);
		if (code)
			return code;
	}
	return TOOL_GOOD;
}

/* Without --xml: the captured machine, or this one. */
static bool name_machines(struct plan_source *source)
{
	source->nmachines = source->xml.n ? source->xml.n : 1;
	source->machines = calloc((size_t)source->nmachines, sizeof(*source->machines));
	if (!source->machines)
		return no_memory();
	for (int i = 0; i < source->xml.n; i++) {
		struct plan_machine *machine = &source->machines[i];
		const char *text = source->xml.at[i];
		const long len = topo_find_count(text, PLAN_MOST_NODES, &machine->count);

		if (len < 0)
			return false;
		machine->path = strndup(text, (size_t)len);
		if (!machine->path)
			return no_memory();
	}
	return true;
}

static int count_nodes(struct plan_source *source, int wanted)
{
	struct plan_machine *machines = source->machines;

	if (source->nmachines > 1 && source->nodes)
		return tool_bad_usage("--nodes is for one kind of node; of several say how many "
				      "each: --xml FILE:4");
	if (source->nmachines == 1 && machines[0].count && source->nodes)
		return tool_bad_usage("--nodes %d and --xml FILE:%d: say it once", source->nodes,
				      machines[0].count);
	if (source->nmachines == 1 && !machines[0].count)
		machines[0].count = source->nodes ? source->nodes : wanted > 0 ? wanted : 1;
	source->nnodes = 0;
	for (int i = 0; i < source->nmachines; i++)
		source->nnodes += machines[i].count ? machines[i].count : 1;
	if (wanted > 0 && source->nnodes != wanted)
		return tool_bad_usage("'%s' names %d nodes, and there are %d", source->hostfile,
				      wanted, source->nnodes);
	return TOOL_GOOD;
}

static int lay_nodes(struct plan_source *source)
{
	int node = 0;

	source->node_topo = calloc((size_t)source->nnodes, sizeof(tutti_topo_t));
	if (!source->node_topo)
		return tool_fail("out of memory");
	for (int i = 0; i < source->nmachines; i++) {
		const int count = source->machines[i].count ? source->machines[i].count : 1;

		for (int k = 0; k < count; k++)
			source->node_topo[node++] = source->machines[i].topo;
	}
	return TOOL_GOOD;
}

/* -- How ranks lie on nodes -------------------------------------------------------------- */

static bool add_rank(struct plan_source *source, int node)
{
	const int n = source->config.nranks;

	if ((n & (n - 1)) == 0) {
		int *more = realloc(source->node_of_rank,
				    (n ? 2 * (size_t)n : 1) * sizeof(*source->node_of_rank));

		if (!more)
			return no_memory();
		source->node_of_rank = more;
	}
	if (n == PLAN_MOST_RANKS) {
		tool_bad_usage("more than %d ranks", PLAN_MOST_RANKS);
		return false;
	}
	source->node_of_rank[n] = node;
	source->config.nranks++;
	return true;
}

static bool deal_in_turn(struct plan_source *source)
{
	const int each = source->config.ranks_per_node;

	if (!each) {
		tool_bad_usage("--order cyclic needs --ranks: how many there are on a node");
		return false;
	}
	for (int i = 0; i < each * source->nnodes; i++)
		if (!add_rank(source, i % source->nnodes))
			return false;
	return true;
}

static bool read_order(struct plan_source *source)
{
	const char *at = source->order;

	if (!at || !strcmp(at, "block"))
		return true;
	if (!strcmp(at, "cyclic"))
		return deal_in_turn(source);
	for (;;) {
		char *end;
		const long node = strtol(at, &end, 10);

		if (end == at || (*end && *end != ',') || node < 0 || node >= source->nnodes) {
			tool_bad_usage(
				"--order '%s' is no list of nodes from 0 to %d, as 0,1,0,1; nor "
				"block or cyclic",
				source->order, source->nnodes - 1);
			return false;
		}
		if (!add_rank(source, (int)node))
			return false;
		if (!*end)
			return true;
		at = end + 1;
	}
}

/* -- Hostfile --------------------------------------------------------------------------- */

/* The node of a host, which may be named on several lines. */
static int node_of(struct plan_source *source, const char *name)
{
	int node = 0;

	while (node < source->nnames && strcmp(source->name_of_node[node], name) != 0)
		node++;
	return node;
}

/* Switches are numbered by the first host that names them. */
static int group_of(const struct hosts *hosts, const char *switch_name)
{
	int first = 0;

	while (!hosts->list[first].switch_name ||
	       strcmp(hosts->list[first].switch_name, switch_name) != 0)
		first++;
	return first;
}

static bool add_host(struct plan_source *source, const struct hosts *hosts, const struct host *host)
{
	const int node = node_of(source, host->name);

	if (node == source->nnames) {
		source->name_of_node[node] = strdup(host->name);
		if (!source->name_of_node[node])
			return no_memory();
		source->group_of_node[node] = -1;
		source->nnames++;
	}
	if (host->switch_name)
		source->group_of_node[node] = group_of(hosts, host->switch_name);
	for (int i = 0; i < (host->nslots ? host->nslots : 1); i++)
		if (!add_rank(source, node))
			return false;
	return true;
}

/* The number of nodes it names, 0 without one; -1: it cannot be read, and that was printed. */
static int read_hostfile(struct plan_source *source)
{
	struct hosts hosts = { 0 };
	bool good = !source->hostfile || hosts_read(source->hostfile, &hosts);

	source->name_of_node = calloc((size_t)hosts.n + 1, sizeof(*source->name_of_node));
	source->group_of_node = calloc((size_t)hosts.n + 1, sizeof(*source->group_of_node));
	if (!source->name_of_node || !source->group_of_node)
		good = no_memory();
	for (int i = 0; good && i < hosts.n; i++)
		good = add_host(source, &hosts, &hosts.list[i]);
	hosts_free(&hosts);
	return good ? source->nnames : -1;
}

/* -- All of it -------------------------------------------------------------------------- */

int plan_load(struct plan_source *source)
{
	int code, hosts;

	hosts = read_hostfile(source);
	if (hosts < 0 || !name_machines(source))
		return TOOL_USAGE;
	code = count_nodes(source, hosts);
	if (code == TOOL_GOOD && !read_order(source))
		code = TOOL_USAGE;
	if (code == TOOL_GOOD)
		code = load_machines(source);
	if (code == TOOL_GOOD)
		code = lay_nodes(source);
	source->config.node_of_rank = source->node_of_rank;
	if (source->nnames) {
		source->config.group_of_node = source->group_of_node;
		source->config.name_of_node = (const char *const *)source->name_of_node;
	}
	return code;
}

void plan_release(struct plan_source *source)
{
	for (int i = 0; i < source->nmachines; i++) {
		tutti_topo_free(source->machines[i].topo);
		free(source->machines[i].path);
	}
	for (int i = 0; i < source->nnames; i++)
		free(source->name_of_node[i]);
	free(source->name_of_node);
	free(source->machines);
	free(source->node_topo);
	free(source->node_of_rank);
	free(source->group_of_node);
}
