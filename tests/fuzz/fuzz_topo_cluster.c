/* SPDX-License-Identifier: BSD-3-Clause */
/* Clusters and differences: the input is how two machines are built, a step a pair of bytes,
 * and a file of rails. A machine does not differ from itself; two differ as much in both
 * directions; both are hosts of a cluster, of one kind if they are alike; fused they are a
 * topology again. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "expect.h"
#include "insight/cluster/cluster.h"
#include "insight/cluster/cluster_report.h"
#include "topo/graph/diff.h"
#include "topo/tree/schema.h"
#include "util/error.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MOST_STEPS 400

/* -- Machines ----------------------------------------------------------------------------- */

struct builder {
	struct tti_xml_doc *doc;
	struct tti_xml *at; /* a <cpu> or <pci> */
	struct tti_xml *last_net, *last_gpu;
	unsigned ncpus, npcis, nnets, ngpus;
};

static const char *const widths[] = { "16", "8", "4", "1" };
static const char *const speeds[] = { "400000", "200000", "25000", "-1" };

static void add_cpu(struct builder *b, unsigned arg)
{
	b->at = tti_xml_add(b->doc, b->doc->root, "cpu");
	tti_xml_setf(b->doc, b->at, "numaid", "%u", b->ncpus++);
	tti_xml_set(b->doc, b->at, "arch", arg & 1 ? "arm64" : "x86_64");
	if (arg & 2)
		tti_xml_setf(b->doc, b->at, "host_hash", "0x%x", arg >> 2 & 1);
}

static struct tti_xml *add_pci(struct builder *b, const char *class, unsigned arg)
{
	struct tti_xml *pci;

	if (!b->at)
		add_cpu(b, 0);
	pci = tti_xml_add(b->doc, b->at, "pci");
	/* Now and then the number of another: that is refused. */
	tti_xml_setf(b->doc, pci, "busid", "%04x:%02x:00.0", b->npcis >> 8, b->npcis & 0xff);
	b->npcis += (arg & 0xf8) != 0xf8;
	tti_xml_set(b->doc, pci, "class", class);
	tti_xml_set(b->doc, pci, "link_speed", arg & 4 ? "16.0 GT/s PCIe" : "32.0 GT/s PCIe");
	tti_xml_set(b->doc, pci, "link_width", widths[arg & 3]);
	return pci;
}

static void add_gpu(struct builder *b, unsigned arg)
{
	struct tti_xml *pci = add_pci(b, "0x030200", arg);

	b->last_gpu = tti_xml_add(b->doc, pci, "gpu");
	tti_xml_setf(b->doc, b->last_gpu, "dev", "%u", b->ngpus++);
	tti_xml_set(b->doc, b->last_gpu, "sm", arg & 8 ? "90" : "80");
	if (arg & 16)
		tti_xml_set(b->doc, b->last_gpu, "tutti_fabric", "abc.1");
}

static void add_net(struct builder *b, unsigned arg)
{
	struct tti_xml *pci = add_pci(b, "0x020700", arg);

	b->last_net = tti_xml_add(b->doc, tti_xml_add(b->doc, pci, "nic"), "net");
	tti_xml_setf(b->doc, b->last_net, "name", "mlx5_%u", b->nnets);
	tti_xml_setf(b->doc, b->last_net, "dev", "%u", b->nnets++);
	tti_xml_set(b->doc, b->last_net, "speed", speeds[arg >> 3 & 3]);
}

static void add_nvlink(struct builder *b, unsigned arg)
{
	struct tti_xml *link = b->last_gpu ? tti_xml_add(b->doc, b->last_gpu, "nvlink") : NULL;

	if (!link)
		return;
	tti_xml_setf(b->doc, link, "target", arg & 1 ? "fffffff:ff:ff.0" : "0000:%02x:00.0",
		     arg >> 1);
	tti_xml_set(b->doc, link, "tclass", arg & 1 ? "0x068000" : "0x030200");
	tti_xml_setf(b->doc, link, "count", "%u", arg >> 4);
}

static void add_cable(struct builder *b, unsigned arg)
{
	static const char *const attrs[] = { "tutti_subnet", "tutti_switch", "rail", "guid" };

	if (b->last_net)
		tti_xml_setf(b->doc, b->last_net, attrs[arg & 3], "%u", arg >> 2 & 7);
}

static struct tti_xml_doc *build(const uint8_t **data, size_t *size)
{
	struct builder b = { 0 };

	expect(tti_xml_create("made", &b.doc) == TUTTI_OK);
	for (unsigned steps = 0; *size >= 2 && steps < MOST_STEPS; steps++) {
		const unsigned op = (*data)[0] % 8, arg = (*data)[1];

		*data += 2;
		*size -= 2;
		if (op == 0)
			break;
		if (op == 1)
			add_cpu(&b, arg);
		else if (op == 2)
			b.at = add_pci(&b, "0x060400", arg);
		else if (op == 3)
			add_gpu(&b, arg);
		else if (op == 4)
			add_net(&b, arg);
		else if (op == 5)
			add_nvlink(&b, arg);
		else if (op == 6)
			add_cable(&b, arg);
		else if (b.at && b.at->parent != b.doc->root)
			b.at = b.at->parent;
	}
	return b.doc;
}

/* -- What must hold -------------------------------------------------------------------------- */

static size_t diff(const struct tti_graph *a, const struct tti_graph *b)
{
	struct tti_strbuf out = { 0 };
	size_t n = 0, nlines = 0;

	expect(tti_topo_diff(a, b, &out, &n) == TUTTI_OK);
	for (size_t i = 0; i < out.len; i++)
		nlines += out.text[i] == '\n';
	expect(n == nlines);
	tti_strbuf_release(&out);
	return n;
}

static void check_diff(const struct tti_graph *a, const struct tti_graph *b)
{
	expect(diff(a, a) == 0);
	expect(diff(b, b) == 0);
	expect(diff(a, b) == diff(b, a));
}

static void read_rails(struct tti_cluster *cluster, const uint8_t *data, size_t size)
{
	const int fd = memfd_create("rails", MFD_CLOEXEC);
	char path[64];

	expect(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (tti_cluster_read_rails(cluster, path) != TUTTI_OK)
		expect(strstr(tti_error_text(), path) != NULL);
	close(fd);
}

static void check_fused(const struct tti_cluster *cluster)
{
	const uint32_t hosts[] = { 3, 0, 1 };
	struct tti_xml_doc *fused = NULL;
	struct tti_graph *graph = NULL;

	expect(tti_cluster_fuse(cluster, hosts, 3, &fused) == TUTTI_OK);
	expect(tti_schema_check(fused) == TUTTI_OK);
	expect(tti_graph_build(fused, TTI_MODEL_TUTTI, &graph) == TUTTI_OK);
	expect(graph->ntype[TTI_NODE_NET] == cluster->kinds[cluster->hosts[0].kind].nports * 2 +
						     cluster->kinds[cluster->hosts[3].kind].nports);
	tti_graph_free(graph);
	tti_xml_free(fused);
}

static void check_cluster(const struct tti_xml_doc *a, const struct tti_xml_doc *b,
			  const uint8_t *rails, size_t nrails)
{
	struct tti_cluster *cluster = NULL;
	struct tti_strbuf out = { 0 };

	expect(tti_cluster_create(&cluster) == TUTTI_OK);
	if (tti_cluster_add_many(cluster, "a", 2, a) != TUTTI_OK ||
	    tti_cluster_add(cluster, "c", a) != TUTTI_OK ||
	    tti_cluster_add(cluster, "b", b) != TUTTI_OK) {
		tti_cluster_free(cluster);
		return;
	}
	expect(cluster->hosts[0].kind == cluster->hosts[2].kind);
	read_rails(cluster, rails, nrails);
	expect(tti_cluster_seal(cluster) == TUTTI_OK);
	for (uint32_t i = 0; i < cluster->nnics; i++)
		expect(cluster->nics[i].rail < (int32_t)cluster->nrails &&
		       cluster->nics[i].group < (int32_t)cluster->ngroups);
	check_fused(cluster);
	expect(tti_cluster_print(cluster, &out) == TUTTI_OK);
	expect(tti_cluster_print_json(cluster, &out) == TUTTI_OK);
	tti_strbuf_release(&out);
	tti_cluster_free(cluster);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tti_xml_doc *a = build(&data, &size), *b = build(&data, &size);
	struct tti_graph *of_a = NULL, *of_b = NULL;

	if (tti_schema_check(a) == TUTTI_OK && tti_schema_check(b) == TUTTI_OK &&
	    tti_graph_build(a, TTI_MODEL_TUTTI, &of_a) == TUTTI_OK &&
	    tti_graph_build(b, TTI_MODEL_TUTTI, &of_b) == TUTTI_OK) {
		check_diff(of_a, of_b);
		check_cluster(a, b, data, size);
	}
	tti_graph_free(of_a);
	tti_graph_free(of_b);
	tti_xml_free(a);
	tti_xml_free(b);
	return 0;
}
