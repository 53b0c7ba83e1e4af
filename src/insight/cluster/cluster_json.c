/* SPDX-License-Identifier: BSD-3-Clause */
#include "insight/cluster/cluster.h"
#include "insight/cluster/cluster_report.h"

#include <inttypes.h>
#include <string.h>

#include "insight/cluster/cluster_build.h"
#include "insight/cluster/outliers.h"
#include "util/error.h"
#include "util/json.h"

/* The version of the format: greater when a key goes or changes its meaning. */
#define FORMAT 1

/* A number, or null for none. */
static void add_number(struct tti_json *json, const char *key, int64_t value)
{
	if (value < 0)
		tti_json_addf(json, key, "null");
	else
		tti_json_addf(json, key, "%" PRId64, value);
}

static void add_hex(struct tti_json *json, const char *key, uint64_t value)
{
	tti_json_addf(json, key, "\"0x%" PRIx64 "\"", value);
}

static void add_kind(struct tti_json *json, const struct tti_cluster_kind *kind)
{
	struct tti_strbuf text = { 0 };

	json->out->failed |= !tti_cluster_describe(kind, &text) || text.failed;
	tti_json_open(json, NULL, "{");
	tti_json_addf(json, "hosts", "%u", kind->nhosts);
	add_hex(json, "hash", kind->hash);
	tti_json_text(json, "text", text.text);
	tti_json_addf(json, "gpus", "%u", kind->graph->ntype[TTI_NODE_GPU]);
	tti_json_open(json, "nics", "[");
	for (uint32_t i = 0; i < kind->nports; i++) {
		tti_json_open(json, NULL, "{");
		tti_json_text(json, "name", tti_cluster_port_node(kind, i)->name);
		tti_json_real(json, "gbps", kind->ports[i].gbps, 17);
		tti_json_close(json);
	}
	tti_json_close(json);
	tti_json_close(json);
	tti_strbuf_release(&text);
}

static void add_host(struct tti_json *json, const struct tti_cluster *cluster,
		     const struct tti_cluster_host *host)
{
	tti_json_open(json, NULL, "{");
	tti_json_text(json, "name", host->name);
	tti_json_addf(json, "kind", "%u", host->kind);
	add_number(json, "domain", host->domain);
	add_hex(json, "host_hash", host->hash);
	tti_json_open(json, "nics", "[");
	for (uint32_t i = 0; i < cluster->kinds[host->kind].nports; i++) {
		const struct tti_cluster_nic *nic = &cluster->nics[host->first_nic + i];

		tti_json_open(json, NULL, "{");
		add_number(json, "rail", nic->rail);
		add_number(json, "group", nic->group);
		if (nic->guid)
			add_hex(json, "guid", nic->guid);
		else
			tti_json_addf(json, "guid", "null");
		tti_json_close(json);
	}
	tti_json_close(json);
	tti_json_close(json);
}

static void add_rail(struct tti_json *json, const struct tti_cluster_rail *rail)
{
	tti_json_open(json, NULL, "{");
	tti_json_text(json, "name", rail->name);
	tti_json_addf(json, "nics", "%u", rail->nnics);
	tti_json_real(json, "gbps", rail->gbps, 17);
	tti_json_real(json, "slowest_gbps", rail->slowest_gbps, 17);
	tti_json_real(json, "fastest_gbps", rail->fastest_gbps, 17);
	tti_json_close(json);
}

/* The lines of a diff. */
static void add_lines(struct tti_json *json, const char *lines)
{
	struct tti_strbuf line = { 0 };

	tti_json_open(json, "differences", "[");
	while (*lines) {
		const size_t len = strcspn(lines, "\n");

		line.len = 0;
		tti_strbuf_addf(&line, "%.*s", (int)len, lines);
		tti_json_text(json, NULL, line.text);
		lines += len + (lines[len] == '\n');
	}
	tti_json_close(json);
	json->out->failed |= line.failed;
	tti_strbuf_release(&line);
}

static void add_outliers(struct tti_json *json, const struct tti_cluster *cluster,
			 const struct tti_outliers *outliers)
{
	tti_json_open(json, "differ", "{");
	tti_json_open(json, "kinds", "[");
	for (size_t i = 0; i < outliers->nkinds; i++) {
		tti_json_open(json, NULL, "{");
		tti_json_addf(json, "kind", "%u", outliers->kinds[i].kind);
		tti_json_addf(json, "like", "%u", outliers->kinds[i].like);
		add_lines(json, outliers->kinds[i].text);
		tti_json_close(json);
	}
	tti_json_close(json);
	tti_json_open(json, "nics", "[");
	for (size_t i = 0; i < outliers->nnics; i++) {
		tti_json_open(json, NULL, "{");
		tti_json_text(json, "host", cluster->hosts[outliers->nics[i].host].name);
		tti_json_addf(json, "nic", "%u", outliers->nics[i].port);
		add_number(json, "rail", outliers->nics[i].rail);
		add_number(json, "usual_rail", outliers->nics[i].usual);
		tti_json_close(json);
	}
	tti_json_close(json);
	tti_json_addf(json, "kinds_not_compared", "%u", outliers->unseen);
	tti_json_close(json);
}

/* -- The whole ------------------------------------------------------------------------------- */

static void add_lists(struct tti_json *json, const struct tti_cluster *cluster)
{
	tti_json_open(json, "kinds", "[");
	for (uint32_t i = 0; i < cluster->nkinds; i++)
		add_kind(json, &cluster->kinds[i]);
	tti_json_close(json);
	tti_json_open(json, "rails", "[");
	for (uint32_t i = 0; i < cluster->nrails; i++)
		add_rail(json, &cluster->rails[i]);
	tti_json_close(json);
	tti_json_open(json, "groups", "[");
	for (uint32_t i = 0; i < cluster->ngroups; i++) {
		tti_json_open(json, NULL, "{");
		tti_json_text(json, "name", cluster->groups[i].name);
		tti_json_addf(json, "nics", "%u", cluster->groups[i].nnics);
		tti_json_close(json);
	}
	tti_json_close(json);
	tti_json_open(json, "domains", "[");
	for (uint32_t i = 0; i < cluster->ndomains; i++) {
		tti_json_open(json, NULL, "{");
		tti_json_text(json, "name", cluster->domains[i].name);
		tti_json_addf(json, "hosts", "%u", cluster->domains[i].nhosts);
		tti_json_addf(json, "gpus", "%u", cluster->domains[i].ngpus);
		tti_json_close(json);
	}
	tti_json_close(json);
	tti_json_open(json, "notes", "[");
	for (uint32_t i = 0; i < cluster->nnotes; i++)
		tti_json_text(json, NULL, cluster->notes[i]);
	tti_json_close(json);
	tti_json_open(json, "hosts", "[");
	for (uint32_t i = 0; i < cluster->nhosts; i++)
		add_host(json, cluster, &cluster->hosts[i]);
	tti_json_close(json);
}

tutti_status tti_cluster_print_json(const struct tti_cluster *cluster, struct tti_strbuf *out)
{
	struct tti_json json = { .out = out };
	struct tti_outliers outliers;

	if (cluster->build)
		return tti_fail(TUTTI_EUSAGE, "a cluster is printed when it is sealed");
	TTI_TRY(tti_outliers_find(cluster, &outliers));
	tti_json_open(&json, NULL, "{");
	tti_json_addf(&json, "format", "%d", FORMAT);
	tti_json_text(&json, "rail_source", tti_rail_source_name(cluster->rail_source));
	add_lists(&json, cluster);
	add_outliers(&json, cluster, &outliers);
	tti_json_close(&json);
	tti_strbuf_add(out, "\n");
	tti_outliers_release(&outliers);
	return out->failed ? tti_fail(TUTTI_ENOMEM, "no memory to print a cluster") : TUTTI_OK;
}
