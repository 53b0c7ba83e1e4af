/* SPDX-License-Identifier: BSD-3-Clause */
/* How long plans take: of the topology files given, of 72 GPUs with 144 NICs in one NVLink
 * domain, and of 4,096 nodes of 8 GPUs. Limits: 50 ms of search a pattern up to 8 GPUs,
 * 250 ms up to 16, 300 ms for 72; 2 s and 1 GB for 4,096 nodes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "insight/plan/job.h"
#include "plan/plan.h"
#include "topo/tree/schema.h"
#include "util/clock.h"
#include "util/error.h"

#define HOSTS 18
#define NODES 4096

struct machine {
	struct tti_xml_doc *doc;
	struct tti_graph *graph;
	struct tti_paths *paths;
	struct tti_routes *routes;
};

_Noreturn static void die(const char *what)
{
	fprintf(stderr, "bench_plan: %s: %s\n", what, tti_error_text());
	exit(1);
}

/* Takes the document. */
static void build(struct machine *m, struct tti_xml_doc *doc)
{
	const struct tti_routes_config routes = tti_routes_config_from_params();

	m->doc = doc;
	if (tti_schema_check(doc) != TUTTI_OK ||
	    tti_graph_build(doc, TTI_MODEL_NCCL, &m->graph) != TUTTI_OK ||
	    tti_paths_build(m->graph, &m->paths) != TUTTI_OK ||
	    tti_routes_build(m->paths, &routes, &m->routes) != TUTTI_OK)
		die(doc->source);
}

static void release(struct machine *m)
{
	tti_routes_free(m->routes);
	tti_paths_free(m->paths);
	tti_graph_free(m->graph);
	tti_xml_free(m->doc);
}

static double since_ms(int64_t start_ns)
{
	return (double)(tti_now_ns() - start_ns) / 1e6;
}

static double peak_mib(void)
{
	struct rusage usage;

	return getrusage(RUSAGE_SELF, &usage) == 0 ? (double)usage.ru_maxrss / 1024 : 0;
}

/* -- One plan --------------------------------------------------------------------- */

static void plan(const char *name, const struct tti_routes *routes, uint32_t count,
		 uint32_t patterns, bool each)
{
	const struct tti_plan_config config = { .patterns = patterns, .cross_nic = TTI_CROSS_AUTO };
	struct tti_plan_job *job = NULL;
	struct tti_plan *made = NULL;
	double search_ms = 0, all_ms;
	int64_t start_ns;

	if (tti_plan_job_of(&routes, 1, count, 0, &job) != TUTTI_OK)
		die(name);
	start_ns = tti_now_ns();
	if (tti_plan_make(job, &config, &made) != TUTTI_OK) {
		printf("%-42.42s %5u  no plan: %s\n", name, count, tti_error_text());
		tti_plan_job_free(job);
		return;
	}
	all_ms = since_ms(start_ns);
	for (uint32_t i = 0; i < made->npatterns; i++) {
		const struct tti_plan_pattern *pattern = &made->patterns[i];
		const double gap = pattern->bound_gbps > 0
					   ? 100 * (1 - pattern->total_gbps / pattern->bound_gbps)
					   : 0;

		search_ms += pattern->search_ms;
		if (each)
			printf("%-42.42s %5u %-14s %3u x %9.2f GB/s %6.2f %% %9.1f\n", name, count,
			       tti_pattern_name(pattern->pattern), pattern->nchannels,
			       pattern->total_gbps, gap, pattern->search_ms);
	}
	if (!each)
		printf("%-42.42s %5u search %.1f ms, all %.1f ms, %.0f MiB\n", name, count,
		       search_ms, all_ms, peak_mib());
	tti_plan_free(made);
	tti_plan_job_free(job);
}

static void plan_file(const char *path)
{
	const char *slash = strrchr(path, '/');
	struct machine m = { 0 };
	struct tti_xml_doc *doc = NULL;

	if (tti_xml_read_file(path, &doc) != TUTTI_OK)
		die(path);
	build(&m, doc);
	for (uint32_t count = 1; count <= 2; count++)
		plan(slash ? slash + 1 : path, m.routes, count,
		     1u << TTI_PATTERN_RING | 1u << TTI_PATTERN_TREE, true);
	release(&m);
}

/* -- Made machines ------------------------------------------------------------------ */

static void add_gpu(struct tti_strbuf *out, unsigned bus, unsigned dev)
{
	tti_strbuf_addf(out,
			"<pci busid=\"%04x:01:00.0\" class=\"0x030200\" link_speed=\"32.0 GT/s "
			"PCIe\" link_width=\"16\"><gpu dev=\"%u\" sm=\"90\" gdr=\"1\"><nvlink "
			"target=\"fffffff:ff:ff.0\" count=\"18\" tclass=\"0x068000\"/></gpu></pci>",
			bus, dev);
}

static void add_nic(struct tti_strbuf *out, unsigned bus, unsigned dev)
{
	tti_strbuf_addf(out,
			"<pci busid=\"%04x:03:00.0\" class=\"0x020700\" link_speed=\"32.0 GT/s "
			"PCIe\" link_width=\"16\"><nic><net name=\"mlx5_%u\" dev=\"%u\" "
			"speed=\"400000\" port=\"1\" guid=\"0x%x\" gdr=\"1\"/></nic></pci>",
			bus, dev, dev, dev + 1);
}

/* A rack: hosts of `ngpus` GPUs on one NVLink switch, `nnics` NICs each, of which as many as
 * GPUs share switches with them. */
static struct tti_xml_doc *make_rack(unsigned nhosts, unsigned ngpus, unsigned nnics)
{
	struct tti_strbuf out = { 0 };
	struct tti_xml_doc *doc = NULL;

	tti_strbuf_add(&out, "<system version=\"1\">");
	for (unsigned host = 0; host < nhosts; host++)
		for (unsigned cpu = 0; cpu < 2; cpu++) {
			tti_strbuf_addf(&out,
					"<cpu host_hash=\"0x%x\" numaid=\"%u\" affinity=\"ff\" "
					"arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"6\" "
					"modelid=\"143\">",
					host + 1, cpu);
			for (unsigned i = cpu; i < ngpus; i += 2) {
				tti_strbuf_addf(&out,
						"<pci busid=\"%04x:00:00.0\" class=\"0x060400\" "
						"link_speed=\"32.0 GT/s PCIe\" link_width=\"16\">",
						256 * i);
				add_gpu(&out, 256 * i, i);
				for (unsigned k = i; k < nnics; k += ngpus)
					add_nic(&out, 256 * i + 1 + k / ngpus, k);
				tti_strbuf_add(&out, "</pci>");
			}
			tti_strbuf_add(&out, "</cpu>");
		}
	tti_strbuf_add(&out, "</system>");
	if (out.failed || tti_xml_read(out.text, out.len, "made", &doc) != TUTTI_OK)
		die("made machine");
	tti_strbuf_release(&out);
	return doc;
}

static void plan_rack(uint32_t count)
{
	struct machine m = { 0 };
	const int64_t start_ns = tti_now_ns();
	char name[64];

	build(&m, make_rack(HOSTS, 4, 8));
	snprintf(name, sizeof(name), "%u GPUs, %u NICs", m.graph->ntype[TTI_NODE_GPU],
		 m.graph->ntype[TTI_NODE_NET]);
	printf("%-42s graph, paths and routes %.1f ms\n", name, since_ms(start_ns));
	plan(name, m.routes, count, 0, true);
	release(&m);
}

static void plan_many(uint32_t count)
{
	struct machine m = { 0 };

	build(&m, make_rack(1, 8, 8));
	plan("8 GPUs, 8 NICs", m.routes, count, 0, false);
	release(&m);
}

/* In a process of its own, so that each has its own peak of memory. */
static void apart(void (*what)(uint32_t), uint32_t count)
{
	int status = 1;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		what(count);
		fflush(stdout);
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0 || status != 0)
		exit(1);
}

int main(int argc, char **argv)
{
	printf("%-42s %5s %-14s %20s %8s %9s\n", "machine", "nodes", "pattern", "channels", "gap",
	       "search ms");
	for (int i = 1; i < argc; i++)
		plan_file(argv[i]);
	apart(plan_rack, 1);
	apart(plan_rack, 2);
	apart(plan_many, NODES);
	return 0;
}
