/* SPDX-License-Identifier: BSD-3-Clause */
#include "insight/cluster/cluster.h"
#include "insight/cluster/cluster_report.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "insight/cluster/cluster_build.h"
#include "insight/cluster/cluster_odd.h"
#include "util/error.h"
#include "util/mem.h"

/* Of the format: greater when a key goes or changes its meaning. */
#define FORMAT 1

/* A word of a file of rails may be no UTF-8. */
static json_t *text(const char *value)
{
	json_t *json = json_string(value);
	char *copy = json ? NULL : tti_strdup(value);

	if (!copy)
		return json;
	for (char *at = copy; *at; at++)
		if ((unsigned char)*at >= 0x80)
			*at = '?';
	json = json_string(copy);
	tti_free(copy);
	return json;
}

/* A number, or null for none. */
static json_t *number(int64_t value)
{
	return value < 0 ? json_null() : json_integer(value);
}

static json_t *hex(uint64_t value)
{
	char buf[24];

	snprintf(buf, sizeof(buf), "0x%" PRIx64, value);
	return json_string(buf);
}

/* The list, or NULL if one could not be made or put in; takes the item. */
static json_t *append(json_t *list, json_t *item)
{
	if (list && item && json_array_append_new(list, item) == 0)
		return list;
	if (!list)
		json_decref(item);
	json_decref(list);
	return NULL;
}

static json_t *kind_json(const struct tti_cluster_kind *kind)
{
	struct tti_strbuf buf = { 0 };
	json_t *json = NULL, *ports = json_array();

	for (uint32_t i = 0; i < kind->nports && ports; i++)
		ports = append(ports, json_pack("{s:o, s:f}", "name",
						text(tti_cluster_port_node(kind, i)->name), "gbps",
						kind->ports[i].gbps));
	if (ports && tti_cluster_describe(kind, &buf) && !buf.failed)
		json = json_pack("{s:I, s:o, s:o, s:I, s:O}", "hosts", (json_int_t)kind->nhosts,
				 "hash", hex(kind->hash), "text", text(buf.text), "gpus",
				 (json_int_t)kind->graph->ntype[TTI_NODE_GPU], "nics", ports);
	tti_strbuf_release(&buf);
	json_decref(ports);
	return json;
}

static json_t *nic_json(const struct tti_cluster_nic *nic)
{
	return json_pack("{s:o, s:o, s:o}", "rail", number(nic->rail), "group", number(nic->group),
			 "guid", nic->guid ? hex(nic->guid) : json_null());
}

static json_t *host_json(const struct tti_cluster *cluster, const struct tti_cluster_host *host)
{
	json_t *nics = json_array();

	for (uint32_t i = 0; i < cluster->kinds[host->kind].nports && nics; i++)
		nics = append(nics, nic_json(&cluster->nics[host->first_nic + i]));
	if (!nics)
		return NULL;
	return json_pack("{s:s, s:I, s:o, s:o, s:o}", "name", host->name, "kind",
			 (json_int_t)host->kind, "domain", number(host->domain), "host_hash",
			 hex(host->hash), "nics", nics);
}

static json_t *rail_json(const struct tti_cluster_rail *rail)
{
	return json_pack("{s:o, s:I, s:f, s:f, s:f}", "name", text(rail->name), "nics",
			 (json_int_t)rail->nnics, "gbps", rail->gbps, "slowest_gbps",
			 rail->slowest_gbps, "fastest_gbps", rail->fastest_gbps);
}

/* The lines of a diff. */
static json_t *lines_json(const char *lines)
{
	json_t *list = json_array();

	while (*lines && list) {
		const size_t len = strcspn(lines, "\n");

		list = append(list, json_stringn(lines, len));
		lines += len + (lines[len] == '\n');
	}
	return list;
}

static json_t *odd_json(const struct tti_cluster *cluster, const struct tti_odd *odd)
{
	json_t *kinds = json_array(), *nics = json_array();

	for (size_t i = 0; i < odd->nkinds && kinds; i++)
		kinds = append(kinds,
			       json_pack("{s:I, s:I, s:o}", "kind", (json_int_t)odd->kinds[i].kind,
					 "like", (json_int_t)odd->kinds[i].like, "differences",
					 lines_json(odd->kinds[i].text)));
	for (size_t i = 0; i < odd->nnics && nics; i++)
		nics = append(nics, json_pack("{s:s, s:I, s:o, s:o}", "host",
					      cluster->hosts[odd->nics[i].host].name, "nic",
					      (json_int_t)odd->nics[i].port, "rail",
					      number(odd->nics[i].rail), "usual_rail",
					      number(odd->nics[i].usual)));
	if (kinds && nics)
		return json_pack("{s:o, s:o, s:I}", "kinds", kinds, "nics", nics,
				 "kinds_not_compared", (json_int_t)odd->unseen);
	json_decref(kinds);
	json_decref(nics);
	return NULL;
}

/* -- The whole ------------------------------------------------------------------------------- */

/* Takes `value`; false: there is none, or no room for it. */
static bool put(json_t *object, const char *key, json_t *value)
{
	return value && json_object_set_new(object, key, value) == 0;
}

static bool put_lists(const struct tti_cluster *cluster, json_t *root)
{
	json_t *kinds = json_array(), *rails = json_array(), *groups = json_array();
	json_t *domains = json_array(), *hosts = json_array(), *notes = json_array();
	bool good;

	for (uint32_t i = 0; i < cluster->nkinds; i++)
		kinds = append(kinds, kind_json(&cluster->kinds[i]));
	for (uint32_t i = 0; i < cluster->nrails; i++)
		rails = append(rails, rail_json(&cluster->rails[i]));
	for (uint32_t i = 0; i < cluster->ngroups; i++)
		groups = append(groups,
				json_pack("{s:o, s:I}", "name", text(cluster->groups[i].name),
					  "nics", (json_int_t)cluster->groups[i].nnics));
	for (uint32_t i = 0; i < cluster->ndomains; i++)
		domains = append(domains, json_pack("{s:o, s:I, s:I}", "name",
						    text(cluster->domains[i].name), "hosts",
						    (json_int_t)cluster->domains[i].nhosts, "gpus",
						    (json_int_t)cluster->domains[i].ngpus));
	for (uint32_t i = 0; i < cluster->nnotes; i++)
		notes = append(notes, text(cluster->notes[i]));
	for (uint32_t i = 0; i < cluster->nhosts; i++)
		hosts = append(hosts, host_json(cluster, &cluster->hosts[i]));
	good = put(root, "kinds", kinds);
	good = put(root, "rails", rails) && good;
	good = put(root, "groups", groups) && good;
	good = put(root, "domains", domains) && good;
	good = put(root, "notes", notes) && good;
	return put(root, "hosts", hosts) && good;
}

static json_t *cluster_json(const struct tti_cluster *cluster)
{
	struct tti_odd odd = { 0 };
	json_t *root = json_pack("{s:i, s:s}", "format", FORMAT, "rail_source",
				 tti_rail_source_name(cluster->rail_source));

	if (!root || !put_lists(cluster, root) || tti_odd_find(cluster, &odd) != TUTTI_OK ||
	    !put(root, "differ", odd_json(cluster, &odd))) {
		json_decref(root);
		root = NULL;
	}
	tti_odd_release(&odd);
	return root;
}

static int add_text(const char *bytes, size_t nbytes, void *out)
{
	tti_strbuf_addf(out, "%.*s", (int)nbytes, bytes);
	return ((struct tti_strbuf *)out)->failed ? -1 : 0;
}

tutti_status tti_cluster_print_json(const struct tti_cluster *cluster, struct tti_strbuf *out)
{
	json_t *root;
	bool good;

	if (cluster->build)
		return tti_fail(TUTTI_EUSAGE, "a cluster is printed when it is sealed");
	root = cluster_json(cluster);
	good = root && json_dump_callback(root, add_text, out, JSON_COMPACT) == 0;
	tti_strbuf_add(out, "\n");
	json_decref(root);
	return good && !out->failed ? TUTTI_OK
				    : tti_fail(TUTTI_ENOMEM, "no memory to print a cluster");
}
