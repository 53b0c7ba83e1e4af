/* SPDX-License-Identifier: BSD-3-Clause */
/* Many hosts as one view, in ms on one core, and the memory that stays.
 *   again     hosts of documents that were seen before, each with GUIDs of its own
 *   shuffled  the same, with every document in another order
 * Columns: adding and sealing, printing as text, resident memory.
 * bench_cluster [HOSTS]: so many hosts of four kinds (10000). */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "insight/cluster/cluster.h"
#include "insight/cluster/cluster_report.h"
#include "util/clock.h"
#include "util/error.h"

#define KINDS 4
#define MIB   1048576.0

static void die(const char *what)
{
	fprintf(stderr, "bench_cluster: %s: %s\n", what, tti_error_text());
	exit(1);
}

/* Two sockets with 4 switches each, a GPU and some NICs below each of them. */
static struct tti_xml_doc *make(int nnics)
{
	struct tti_strbuf out = { 0 };
	struct tti_xml_doc *doc = NULL;

	tti_strbuf_add(&out, "<system version=\"1\">");
	for (int i = 0; i < 8; i++) {
		if (i % 4 == 0)
			tti_strbuf_addf(&out,
					"%s<cpu numaid=\"%d\" arch=\"x86_64\" affinity=\"ff\" "
					"vendor=\"GenuineIntel\" familyid=\"6\" modelid=\"143\">",
					i ? "</cpu>" : "", i / 4);
		tti_strbuf_addf(&out,
				"<pci busid=\"0000:%x0:00.0\" class=\"0x060400\" "
				"link_speed=\"32.0 GT/s PCIe\" link_width=\"16\">"
				"<pci busid=\"0000:%x1:00.0\" class=\"0x030200\" "
				"link_speed=\"32.0 GT/s PCIe\" link_width=\"16\">"
				"<gpu dev=\"%d\" sm=\"90\" gdr=\"1\"><nvlink count=\"18\" "
				"target=\"fffffff:ff:ff.0\" tclass=\"0x068000\"/></gpu></pci>",
				i + 1, i + 1, i);
		for (int k = 0; k < nnics; k++)
			tti_strbuf_addf(&out,
					"<pci busid=\"0000:%x%x:00.0\" class=\"0x020700\" "
					"link_speed=\"32.0 GT/s PCIe\" link_width=\"16\"><nic>"
					"<net name=\"mlx5_%d\" dev=\"%d\" speed=\"400000\" "
					"port=\"1\" guid=\"0x1000000\"/></nic></pci>",
					i + 1, k + 2, i * nnics + k, i * nnics + k);
		tti_strbuf_add(&out, "</pci>");
	}
	tti_strbuf_add(&out, "</cpu></system>");
	if (out.failed || tti_xml_read(out.text, out.len, "bench", &doc) != TUTTI_OK)
		die("document");
	tti_strbuf_release(&out);
	return doc;
}

static double resident_mib(void)
{
	FILE *file = fopen("/proc/self/statm", "re");
	long pages = 0;

	if (!file || fscanf(file, "%*d %ld", &pages) != 1)
		pages = 0;
	if (file)
		fclose(file);
	return (double)pages * (double)sysconf(_SC_PAGESIZE) / MIB;
}

/* Another GUID for the first NIC: nothing is as it was, but what makes the kind. */
static void renew(struct tti_xml_doc *doc, int host)
{
	struct tti_xml *node = doc->root;
	char *guid;

	while (!tti_xml_is(node, "net"))
		node = tti_xml_walk(node);
	/* In place: a document keeps what it was given. */
	guid = (char *)(uintptr_t)tti_xml_get(node, "guid");
	snprintf(guid, 10, "0x1%06x", (unsigned)host & 0xffffff);
}

/* The first child of a CPU becomes the last. */
static void shuffle(struct tti_xml_doc *doc, int host)
{
	struct tti_xml *cpu = doc->root->first;

	for (int i = 0; i < host % 7; i++) {
		struct tti_xml *first = cpu->first;

		tti_xml_unlink(first);
		first->parent = cpu;
		*(cpu->last ? &cpu->last->next : &cpu->first) = first;
		cpu->last = first;
	}
}

static void run(const char *name, int nhosts, bool shuffled)
{
	const double before = resident_mib();
	struct tti_cluster *cluster = NULL;
	struct tti_strbuf out = { 0 };
	struct tti_xml_doc *docs[KINDS];
	int64_t start, added, printed;
	char host[32];

	for (int i = 0; i < KINDS; i++)
		docs[i] = make(i + 1);
	start = tti_now_ns();
	if (tti_cluster_create(&cluster) != TUTTI_OK)
		die("create");
	for (int i = 0; i < nhosts; i++) {
		renew(docs[i % KINDS], i);
		if (shuffled)
			shuffle(docs[i % KINDS], i / KINDS);
		snprintf(host, sizeof(host), "node%d", i);
		if (tti_cluster_add(cluster, host, docs[i % KINDS]) != TUTTI_OK)
			die(host);
	}
	if (tti_cluster_seal(cluster) != TUTTI_OK)
		die("seal");
	added = tti_now_ns();
	if (tti_cluster_print(cluster, &out) != TUTTI_OK)
		die("print");
	printed = tti_now_ns();
	printf("%-10s %9u %6u %9u %9.1f %9.1f %9.1f\n", name, cluster->nhosts, cluster->nkinds,
	       cluster->nnics, (double)(added - start) / 1e6, (double)(printed - added) / 1e6,
	       resident_mib() - before);
	tti_strbuf_release(&out);
	tti_cluster_free(cluster);
	for (int i = 0; i < KINDS; i++)
		tti_xml_free(docs[i]);
}

int main(int argc, char **argv)
{
	const int nhosts = argc > 1 ? atoi(argv[1]) : 10000;

	if (nhosts < 1 || argc > 2) {
		fprintf(stderr, "usage: bench_cluster [HOSTS]\n");
		return 2;
	}
	printf("%-10s %9s %6s %9s %9s %9s %9s\n", "", "hosts", "kinds", "NICs", "add ms",
	       "print ms", "MiB");
	run("again", nhosts, false);
	run("shuffled", nhosts, true);
	return 0;
}
