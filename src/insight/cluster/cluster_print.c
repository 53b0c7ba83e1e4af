/* SPDX-License-Identifier: BSD-3-Clause */
#include "insight/cluster/cluster.h"
#include "insight/cluster/cluster_report.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "insight/cluster/cluster_build.h"
#include "insight/cluster/outliers.h"
#include "topo/graph/words.h"
#include "util/error.h"
#include "util/mem.h"

/* The lines of a list; a longer list says how many are left out. JSON has all. */
#define MOST_LINES 32
/* Names of one line. */
#define MOST_NAMES 4000

static const char *plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

/* -- Hosts by name -------------------------------------------------------------------------- */

struct chosen {
	const struct tti_cluster *cluster;
	bool (*is)(const struct tti_cluster_host *host, uint32_t number);
	uint32_t number;
};

static bool is_of_kind(const struct tti_cluster_host *host, uint32_t kind)
{
	return host->kind == kind;
}

static bool is_of_domain(const struct tti_cluster_host *host, uint32_t domain)
{
	return host->domain == (int32_t)domain;
}

/* "node0-7, node9" */
static bool print_hosts(const struct chosen *chosen, struct tti_strbuf *out)
{
	const struct tti_cluster *cluster = chosen->cluster;
	const char **names = tti_calloc(MOST_NAMES, sizeof(*names));
	size_t n = 0, more = 0;

	if (!names)
		return false;
	for (uint32_t i = 0; i < cluster->nhosts; i++) {
		if (!chosen->is(&cluster->hosts[i], chosen->number))
			continue;
		if (n < MOST_NAMES)
			names[n++] = cluster->hosts[i].name;
		else
			more++;
	}
	tti_words_names(names, n, out);
	if (more)
		tti_strbuf_addf(out, " and %zu more", more);
	tti_free(names);
	return true;
}

/* -- Kinds ------------------------------------------------------------------------------------ */

static int by_text(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* "8x GPU sm90, 1x GPU sm80": texts of `width` bytes, counted. */
static void print_counts(char *texts, size_t n, size_t width, struct tti_strbuf *out)
{
	size_t run = 0;

	qsort(texts, n, width, by_text);
	for (size_t i = 0; i < n; i++) {
		run++;
		if (i + 1 < n && strcmp(texts + i * width, texts + (i + 1) * width) == 0)
			continue;
		tti_strbuf_addf(out, ", %zux ", run);
		tti_words_text(texts + i * width, out);
		run = 0;
	}
}

static void gpu_text(const struct tti_gpu_info *gpu, char *text, size_t size)
{
	if (gpu->gcn && strncmp(gpu->gcn, "gfx", 3) == 0)
		snprintf(text, size, "GPU %s", gpu->gcn);
	else if (gpu->gcn)
		snprintf(text, size, "GPU gfx%s", gpu->gcn);
	else if (gpu->sm)
		snprintf(text, size, "GPU sm%d", gpu->sm);
	else
		snprintf(text, size, "GPU%s", gpu->bare ? " without driver" : "");
}

static bool print_devices(const struct tti_graph *graph, struct tti_strbuf *out)
{
	enum { WIDTH = 80 };
	const uint32_t ngpus = graph->ntype[TTI_NODE_GPU], nnets = graph->ntype[TTI_NODE_NET];
	char *texts = tti_calloc((size_t)ngpus + nnets + 1, WIDTH);
	char speed[TTI_WORDS_MAX];

	if (!texts)
		return false;
	for (uint32_t i = 0; i < ngpus; i++)
		gpu_text(&graph->nodes[graph->by_type[TTI_NODE_GPU][i]].gpu,
			 texts + (size_t)i * WIDTH, WIDTH);
	print_counts(texts, ngpus, WIDTH, out);
	for (uint32_t i = 0; i < nnets; i++) {
		const struct tti_node *node = &graph->nodes[graph->by_type[TTI_NODE_NET][i]];

		tti_words_net_speed(node->net.speed_mbps, speed);
		snprintf(texts + (size_t)i * WIDTH, WIDTH, "NIC %s", speed);
	}
	print_counts(texts, nnets, WIDTH, out);
	tti_free(texts);
	return true;
}

bool tti_cluster_describe(const struct tti_cluster_kind *kind, struct tti_strbuf *out)
{
	const struct tti_graph *graph = kind->graph;
	const uint32_t nsockets = graph->nsockets;

	tti_strbuf_addf(out, "%" PRIu32 " socket%s", nsockets, plural(nsockets));
	if (graph->ntype[TTI_NODE_CPU]) {
		const struct tti_cpu_info *cpu = &graph->nodes[graph->by_type[TTI_NODE_CPU][0]].cpu;
		const struct tti_cpu_model model = tti_graph_cpu_model(cpu);

		tti_strbuf_addf(out, " %s", model.name);
	}
	return print_devices(graph, out);
}

static bool print_kinds(const struct tti_cluster *cluster, struct tti_strbuf *out)
{
	tti_strbuf_add(out, "\nKinds of hosts\n");
	for (uint32_t i = 0; i < cluster->nkinds; i++) {
		const struct tti_cluster_kind *kind = &cluster->kinds[i];
		const struct chosen chosen = { cluster, is_of_kind, i };

		if (i == MOST_LINES) {
			tti_strbuf_addf(out, "  and %" PRIu32 " more\n", cluster->nkinds - i);
			break;
		}
		tti_strbuf_addf(out, "  %" PRIu32 ": %" PRIu32 " host%s, each ", i, kind->nhosts,
				plural(kind->nhosts));
		if (!tti_cluster_describe(kind, out))
			return false;
		tti_strbuf_add(out, "\n     ");
		if (!print_hosts(&chosen, out))
			return false;
		tti_strbuf_add(out, "\n");
	}
	return true;
}

/* -- Rails, groups, domains ------------------------------------------------------------------- */

static void print_rails(const struct tti_cluster *cluster, struct tti_strbuf *out)
{
	char slow[TTI_WORDS_MAX], fast[TTI_WORDS_MAX], sum[TTI_WORDS_MAX], index[16];

	if (!cluster->nrails)
		return;
	tti_strbuf_addf(out, "\nRails, from %s\n", tti_rail_source_name(cluster->rail_source));
	for (uint32_t i = 0; i < cluster->nrails; i++) {
		const struct tti_cluster_rail *rail = &cluster->rails[i];

		if (i == MOST_LINES) {
			tti_strbuf_addf(out, "  and %" PRIu32 " more\n", cluster->nrails - i);
			break;
		}
		tti_words_gbps(rail->slowest_gbps, slow);
		tti_words_gbps(rail->fastest_gbps, fast);
		tti_words_gbps(rail->gbps, sum);
		snprintf(index, sizeof(index), "%" PRIu32, i);
		tti_strbuf_addf(out, "  %s: ", index);
		if (strcmp(rail->name, index) != 0) {
			tti_words_text(rail->name, out);
			tti_strbuf_add(out, ", ");
		}
		tti_strbuf_addf(out, "%" PRIu32 " NIC%s of %s%s%s GB/s, %s GB/s in all\n",
				rail->nnics, plural(rail->nnics), slow,
				strcmp(slow, fast) ? " to " : "", strcmp(slow, fast) ? fast : "",
				sum);
	}
}

static void print_groups(const struct tti_cluster *cluster, struct tti_strbuf *out)
{
	if (!cluster->ngroups)
		return;
	tti_strbuf_add(out, "\nSwitch groups\n");
	for (uint32_t i = 0; i < cluster->ngroups; i++) {
		if (i == MOST_LINES) {
			tti_strbuf_addf(out, "  and %" PRIu32 " more\n", cluster->ngroups - i);
			break;
		}
		tti_strbuf_addf(out, "  %" PRIu32 ": ", i);
		tti_words_text(cluster->groups[i].name, out);
		tti_strbuf_addf(out, ", %" PRIu32 " NIC%s\n", cluster->groups[i].nnics,
				plural(cluster->groups[i].nnics));
	}
}

static bool print_domains(const struct tti_cluster *cluster, struct tti_strbuf *out)
{
	if (cluster->ndomains)
		tti_strbuf_add(out, "\nNVLink domains of several hosts\n");
	for (uint32_t i = 0; i < cluster->ndomains; i++) {
		const struct tti_cluster_domain *domain = &cluster->domains[i];
		const struct chosen chosen = { cluster, is_of_domain, i };

		if (i == MOST_LINES) {
			tti_strbuf_addf(out, "  and %" PRIu32 " more\n", cluster->ndomains - i);
			break;
		}
		tti_strbuf_addf(out, "  %" PRIu32 ": ", i);
		tti_words_text(domain->name, out);
		tti_strbuf_addf(out, ", %" PRIu32 " hosts with %" PRIu32 " GPUs\n     ",
				domain->nhosts, domain->ngpus);
		if (!print_hosts(&chosen, out))
			return false;
		tti_strbuf_add(out, "\n");
	}
	return true;
}

/* -- Outliers --------------------------------------------------------------------------------- */

static bool print_outlier_kind(const struct tti_cluster *cluster,
			       const struct tti_outlier_kind *outlier, struct tti_strbuf *out)
{
	const struct chosen chosen = { cluster, is_of_kind, outlier->kind };
	size_t lines = 0;

	tti_strbuf_add(out, "  ");
	if (!print_hosts(&chosen, out))
		return false;
	tti_strbuf_addf(out, " (B) from kind %" PRIu32 " (A):\n", outlier->like);
	if (!outlier->ndiffs)
		tti_strbuf_add(out, "     wired alike; bus ids, names or details differ\n");
	for (const char *line = outlier->text; *line; lines++) {
		const size_t len = strcspn(line, "\n");

		if (lines == MOST_LINES) {
			tti_strbuf_addf(out, "     and %zu more\n", outlier->ndiffs - lines);
			break;
		}
		tti_strbuf_addf(out, "     %.*s\n", (int)len, line);
		line += len + (line[len] == '\n');
	}
	return true;
}

static void print_rail_of(int32_t rail, struct tti_strbuf *out)
{
	if (rail < 0)
		tti_strbuf_add(out, "no rail");
	else
		tti_strbuf_addf(out, "rail %" PRId32, rail);
}

static void print_outlier_nics(const struct tti_cluster *cluster,
			       const struct tti_outliers *outliers, struct tti_strbuf *out)
{
	if (outliers->nnics)
		tti_strbuf_add(out, "\nNICs on another rail than with most hosts of the kind\n");
	for (size_t i = 0; i < outliers->nnics; i++) {
		const struct tti_outlier_nic *nic = &outliers->nics[i];
		const struct tti_cluster_host *host = &cluster->hosts[nic->host];

		if (i == MOST_LINES) {
			tti_strbuf_addf(out, "  and %zu more\n", outliers->nnics - i);
			break;
		}
		tti_strbuf_addf(out, "  %s ", host->name);
		tti_words_text(tti_cluster_port_node(&cluster->kinds[host->kind], nic->port)->name,
			       out);
		tti_strbuf_add(out, ": ");
		print_rail_of(nic->rail, out);
		tti_strbuf_add(out, ", not ");
		print_rail_of(nic->usual, out);
		tti_strbuf_add(out, "\n");
	}
}

static bool print_outliers(const struct tti_cluster *cluster, const struct tti_outliers *outliers,
			   struct tti_strbuf *out)
{
	if (outliers->nkinds)
		tti_strbuf_add(out, "\nHosts that differ from others like them\n");
	for (size_t i = 0; i < outliers->nkinds; i++)
		if (!print_outlier_kind(cluster, &outliers->kinds[i], out))
			return false;
	if (outliers->unseen)
		tti_strbuf_addf(out, "  %" PRIu32 " more kinds were not compared\n",
				outliers->unseen);
	print_outlier_nics(cluster, outliers, out);
	return true;
}

static void print_notes(const struct tti_cluster *cluster, struct tti_strbuf *out)
{
	if (cluster->nnotes)
		tti_strbuf_add(out, "\nNotes\n");
	for (uint32_t i = 0; i < cluster->nnotes; i++) {
		if (i == MOST_LINES) {
			tti_strbuf_addf(out, "  and %" PRIu32 " more\n", cluster->nnotes - i);
			break;
		}
		tti_strbuf_add(out, "  ");
		tti_words_text(cluster->notes[i], out);
		tti_strbuf_add(out, "\n");
	}
}

/* -- The whole --------------------------------------------------------------------------------- */

static void print_head(const struct tti_cluster *cluster, struct tti_strbuf *out)
{
	tti_strbuf_addf(out, "%" PRIu32 " host%s of %" PRIu32 " kind%s, %" PRIu32 " NIC%s",
			cluster->nhosts, plural(cluster->nhosts), cluster->nkinds,
			plural(cluster->nkinds), cluster->nnics, plural(cluster->nnics));
	if (cluster->nrails)
		tti_strbuf_addf(out, " on %" PRIu32 " rail%s", cluster->nrails,
				plural(cluster->nrails));
	if (cluster->ndomains)
		tti_strbuf_addf(out, ", %" PRIu32 " NVLink domain%s", cluster->ndomains,
				plural(cluster->ndomains));
	tti_strbuf_add(out, "\n");
}

tutti_status tti_cluster_print(const struct tti_cluster *cluster, struct tti_strbuf *out)
{
	struct tti_outliers outliers;
	bool good;

	if (cluster->build)
		return tti_fail(TUTTI_EUSAGE, "a cluster is printed when it is sealed");
	TTI_TRY(tti_outliers_find(cluster, &outliers));
	print_head(cluster, out);
	good = print_kinds(cluster, out);
	print_rails(cluster, out);
	print_groups(cluster, out);
	good = good && print_domains(cluster, out) && print_outliers(cluster, &outliers, out);
	print_notes(cluster, out);
	tti_outliers_release(&outliers);
	return good && !out->failed ? TUTTI_OK
				    : tti_fail(TUTTI_ENOMEM, "no memory to print a cluster");
}
