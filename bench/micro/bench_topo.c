/* SPDX-License-Identifier: BSD-3-Clause */
/* A topology from text to routes: medians of the runs, in ms, on one core.
 *   load    read the XML and check it against the schema
 *   graph   nodes and links
 *   paths   all pairs, or what there is in place of the table when they are too many
 *   routes  likewise
 *   peak    memory of all of it together, of a process of its own
 * bench_topo [FILE...]: these files. Without: machines that are generated, and two of the
 * clouds where they are found in tests/data. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "topo/paths/routes.h"
#include "topo/tree/schema.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/hash.h"

#define MOST_RUNS 51
#define ENOUGH_NS INT64_C(1000000000) /* for one case */
#define DATA      "tests/data/topologies/"
#define NSTAGES   4
#define MIB       1048576.0
#define BIG_BYTES 1000000

static void die(const char *what)
{
	fprintf(stderr, "bench_topo: %s: %s\n", what, tti_error_text());
	exit(1);
}

/* -- Machines ---------------------------------------------------------------------------- */

/* Two sockets, `ngpus` GPUs, each below a switch with its share of the NICs, and all GPUs
 * of all hosts on one NVSwitch fabric. */
static void add_host(struct tti_strbuf *out, int host, int ngpus, int nnics)
{
	for (int gpu = 0; gpu < ngpus; gpu++) {
		if (gpu % (ngpus / 2) == 0)
			tti_strbuf_addf(out,
					"%s<cpu host_hash=\"0x%x\" numaid=\"%d\" arch=\"x86_64\" "
					"vendor=\"GenuineIntel\" familyid=\"6\" modelid=\"143\">\n",
					gpu ? "</cpu>\n" : "", host + 1, gpu / (ngpus / 2));
		tti_strbuf_addf(out,
				"<pci busid=\"0000:%02x:00.0\" class=\"0x060400\" "
				"link_speed=\"32.0 GT/s PCIe\" link_width=\"16\">\n"
				"<pci busid=\"0000:%02x:01.0\" class=\"0x030200\" "
				"link_speed=\"32.0 GT/s PCIe\" link_width=\"16\">"
				"<gpu dev=\"%d\" sm=\"90\" gdr=\"1\"><nvlink "
				"target=\"0000:f0:00.0\" count=\"18\" tclass=\"0x068000\"/>"
				"</gpu></pci>\n",
				16 * gpu + 1, 16 * gpu + 1, gpu);
		for (int nic = gpu * nnics / ngpus; nic < (gpu + 1) * nnics / ngpus; nic++)
			tti_strbuf_addf(out,
					"<pci busid=\"0000:%02x:%02x.0\" class=\"0x020700\" "
					"link_speed=\"32.0 GT/s PCIe\" link_width=\"16\"><nic>"
					"<net name=\"mlx5_%d\" dev=\"%d\" speed=\"400000\" "
					"port=\"1\" gdr=\"1\"/></nic></pci>\n",
					16 * gpu + 1, 2 + nic % 16, nic, nic);
		tti_strbuf_add(out, "</pci>\n");
	}
	tti_strbuf_add(out, "</cpu>\n");
}

static char *domain(int nhosts, int ngpus, int nnics)
{
	struct tti_strbuf out = { 0 };

	tti_strbuf_add(&out, "<system version=\"1\">\n");
	for (int host = 0; host < nhosts; host++)
		add_host(&out, host, ngpus, nnics);
	tti_strbuf_add(&out, "</system>\n");
	return tti_strbuf_take(&out);
}

static uint32_t below(uint32_t n)
{
	static uint64_t state;

	return (uint32_t)(tti_hash_mix(++state) % n);
}

/* 1 MB of switches below switches, with a GPU or a NIC here and there. */
static char *big(void)
{
	struct tti_strbuf out = { 0 };
	unsigned busid = 0, depth = 0;

	tti_strbuf_add(&out, "<system version=\"1\">\n<cpu numaid=\"0\" arch=\"x86_64\">\n");
	while (out.len < BIG_BYTES) {
		const uint32_t choice = below(8);

		if (depth && choice < 2) {
			tti_strbuf_add(&out, "</pci>");
			depth--;
			continue;
		}
		tti_strbuf_addf(&out, "<pci busid=\"%04x:%02x:%02x.0\" link_width=\"%u\" ",
				busid >> 13, busid >> 5 & 0xff, busid & 0x1f, 1U << below(5));
		busid++;
		if (choice < 4 && depth < 100) {
			tti_strbuf_add(&out, "class=\"0x060400\">");
			depth++;
		} else if (choice < 6) {
			tti_strbuf_add(&out, "class=\"0x030200\"><gpu sm=\"80\"/></pci>");
		} else {
			tti_strbuf_addf(&out,
					"class=\"0x020000\"><nic><net name=\"n%u\" dev=\"%u\"/>"
					"</nic></pci>",
					busid, busid);
		}
	}
	while (depth--)
		tti_strbuf_add(&out, "</pci>");
	tti_strbuf_add(&out, "</cpu></system>\n");
	return tti_strbuf_take(&out);
}

static char *file_text(const char *path)
{
	FILE *file = fopen(path, "r");
	struct tti_strbuf out = { 0 };
	char chunk[4096];
	size_t n;

	if (!file)
		return NULL;
	while ((n = fread(chunk, 1, sizeof(chunk) - 1, file)) > 0) {
		chunk[n] = '\0';
		tti_strbuf_add(&out, chunk);
	}
	fclose(file);
	return tti_strbuf_take(&out);
}

/* -- Measuring ---------------------------------------------------------------------------- */

struct made {
	struct tti_xml_doc *doc;
	struct tti_graph *graph;
	struct tti_paths *paths;
	struct tti_routes *routes;
};

static const struct tti_routes_config config = { .p2p_level = TTI_PATH_PXB,
						 .gdr_level = TTI_PATH_PXB,
						 .gdr_read = -1 };

static void make(const char *text, struct made *made, int64_t *ns)
{
	int64_t at = tti_now_ns();
	int64_t stages[NSTAGES + 1] = { at };

	if (tti_xml_read(text, strlen(text), "bench", &made->doc) != TUTTI_OK ||
	    tti_schema_check(made->doc) != TUTTI_OK)
		die("load");
	stages[1] = tti_now_ns();
	if (tti_graph_build(made->doc, TTI_MODEL_TUTTI, &made->graph) != TUTTI_OK)
		die("graph");
	stages[2] = tti_now_ns();
	if (tti_paths_build(made->graph, &made->paths) != TUTTI_OK)
		die("paths");
	stages[3] = tti_now_ns();
	if (tti_routes_build(made->paths, &config, &made->routes) != TUTTI_OK)
		die("routes");
	stages[4] = tti_now_ns();
	for (int i = 0; i < NSTAGES; i++)
		ns[i] = stages[i + 1] - stages[i];
}

static void unmake(struct made *made)
{
	tti_routes_free(made->routes);
	tti_paths_free(made->paths);
	tti_graph_free(made->graph);
	tti_xml_free(made->doc);
	*made = (struct made){ 0 };
}

static int compare(const void *a, const void *b)
{
	const int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;

	return (left > right) - (left < right);
}

static void print_times(const char *name, const struct made *made, int64_t ns[NSTAGES][MOST_RUNS],
			size_t nruns)
{
	printf("%-14s %9u %7u", name, made->graph->nnodes, made->paths->n);
	for (int i = 0; i < NSTAGES; i++) {
		qsort(ns[i], nruns, sizeof(**ns), compare);
		printf(" %9.3f", (double)ns[i][nruns / 2] / 1e6);
	}
}

static double peak_mib(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (double)usage.ru_maxrss / 1024;
}

static double paths_mib(const struct tti_paths *paths)
{
	const size_t npairs = paths->at ? (size_t)paths->n * paths->n : 0;

	return (double)(npairs * sizeof(*paths->at) + paths->nhops * sizeof(*paths->hops)) / MIB;
}

/* In a child, as only a new process has a new peak. */
static void measure(const char *name, const char *text)
{
	static int64_t ns[NSTAGES][MOST_RUNS];
	const double before = peak_mib();
	const int64_t begin = tti_now_ns();
	struct made made = { 0 };
	size_t nruns = 0;
	double peak = 0;

	while (nruns == 0 || (nruns < MOST_RUNS && tti_now_ns() - begin < ENOUGH_NS)) {
		int64_t stages[NSTAGES];

		unmake(&made);
		make(text, &made, stages);
		if (nruns == 0)
			peak = peak_mib() - before;
		for (int i = 0; i < NSTAGES; i++)
			ns[i][nruns] = stages[i];
		nruns++;
	}
	print_times(name, &made, ns, nruns);
	printf(" %9.1f %9.1f%s\n", paths_mib(made.paths), peak, made.paths->at ? "" : "  no table");
	unmake(&made);
}

static void run(const char *name, char *text)
{
	int status = 1;
	pid_t child;

	if (!text)
		return;
	fflush(stdout);
	child = fork();
	if (child == 0) {
		measure(name, text);
		fflush(stdout);
		_exit(0);
	}
	if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
		exit(1);
	free(text);
}

int main(int argc, char **argv)
{
	printf("%-14s %9s %7s %9s %9s %9s %9s %9s %9s\n", "", "nodes", "ends", "load ms", "graph",
	       "paths", "routes", "paths MiB", "peak MiB");
	for (int i = 1; i < argc; i++) {
		const char *slash = strrchr(argv[i], '/');
		char *text = file_text(argv[i]);

		if (!text) {
			fprintf(stderr, "bench_topo: cannot read %s\n", argv[i]);
			return 2;
		}
		run(slash ? slash + 1 : argv[i], text);
	}
	if (argc > 1)
		return 0;
	run("ndv4", file_text(DATA "azhpc-images__ndv4-topo.xml"));
	run("p5", file_text(DATA "aws-aws-ofi-nccl__p5.48xl-topo.xml"));
	run("8 x 8", domain(1, 8, 8));
	run("8 x 32", domain(1, 8, 32));
	run("72 x 144", domain(18, 4, 8));
	run("576 x 1152", domain(72, 8, 16));
	run("1 MB", big());
	return 0;
}
