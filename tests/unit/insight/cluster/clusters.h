/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_INSIGHT_CLUSTERS_H
#define TESTS_INSIGHT_CLUSTERS_H

/* Clusters made for a test. cmocka's header comes before this one. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "insight/cluster/cluster.h"
#include "insight/cluster/cluster_report.h"
#include "util/error.h"

#define H100_FILE "azhpc-images__ndv5-topo.xml" /* mlx5_0 to mlx5_7 */
#define A100_FILE "aws-ofi-nccl__p4d-24xl-topo.xml"
#define MI50_FILE "rccl__topo_4p2h_2nic.xml"
#define V100_FILE "hwloc__nvidiaDGX2-converted.xml" /* no NIC */

/* -- Helpers --------------------------------------------------------------------------- */

static inline struct tti_xml_doc *read_file(const char *name)
{
	struct tti_xml_doc *doc = NULL;
	char path[512];

	snprintf(path, sizeof(path), "%s/topologies/%s", TEST_DATA, name);
	if (tti_xml_read_file(path, &doc) != TUTTI_OK)
		fail_msg("%s: %s", name, tti_error_text());
	return doc;
}

static inline struct tti_cluster *create(void)
{
	struct tti_cluster *cluster = NULL;

	assert_int_equal(tti_cluster_create(&cluster), TUTTI_OK);
	return cluster;
}

static inline void add(struct tti_cluster *cluster, const char *name, const struct tti_xml_doc *doc)
{
	if (tti_cluster_add(cluster, name, doc) != TUTTI_OK)
		fail_msg("%s: %s", name, tti_error_text());
}

static inline void seal(struct tti_cluster *cluster)
{
	if (tti_cluster_seal(cluster) != TUTTI_OK)
		fail_msg("%s", tti_error_text());
}

static inline struct tti_xml *nth(const struct tti_xml_doc *doc, const char *name, unsigned n)
{
	struct tti_xml *node = doc->root;

	for (; node; node = tti_xml_walk(node))
		if (tti_xml_is(node, name) && n-- == 0)
			return node;
	fail_msg("%s has too few <%s>", doc->source, name);
	return NULL;
}

/* Set attr of every element of that name; a # in the value becomes 0, 1, ... */
static inline void set_all(struct tti_xml_doc *doc, const char *element, const char *attr,
			   const char *value)
{
	const size_t at = strcspn(value, "#");
	unsigned i = 0;

	for (struct tti_xml *node = doc->root; node; node = tti_xml_walk(node)) {
		if (!tti_xml_is(node, element))
			continue;
		if (value[at])
			assert_true(tti_xml_setf(doc, node, attr, "%.*s%u%s", (int)at, value, i++,
						 value + at + 1));
		else
			assert_true(tti_xml_set(doc, node, attr, value));
	}
}

static inline const struct tti_cluster_nic *nic_of(const struct tti_cluster *cluster,
						   const char *host, const char *nic)
{
	for (uint32_t h = 0; h < cluster->nhosts; h++) {
		const struct tti_cluster_kind *kind = &cluster->kinds[cluster->hosts[h].kind];

		if (strcmp(cluster->hosts[h].name, host) != 0)
			continue;
		for (uint32_t i = 0; i < kind->nports; i++)
			if (strcmp(kind->graph->nodes[kind->ports[i].node].name, nic) == 0)
				return &cluster->nics[cluster->hosts[h].first_nic + i];
	}
	fail_msg("no NIC %s of host %s", nic, host);
	return NULL;
}

static inline int rail_of(const struct tti_cluster *cluster, const char *host, const char *nic)
{
	return nic_of(cluster, host, nic)->rail;
}

static inline bool has_note(const struct tti_cluster *cluster, const char *words)
{
	for (uint32_t i = 0; i < cluster->nnotes; i++)
		if (strstr(cluster->notes[i], words))
			return true;
	return false;
}

static inline char *print(const struct tti_cluster *cluster)
{
	struct tti_strbuf out = { 0 };
	char *text;

	assert_int_equal(tti_cluster_print(cluster, &out), TUTTI_OK);
	text = tti_strbuf_take(&out);
	assert_non_null(text);
	return text;
}

static inline void expect(const struct tti_cluster *cluster, const char *words)
{
	char *text = print(cluster);

	if (!strstr(text, words))
		fail_msg("'%s' is not in\n%s", words, text);
	free(text);
}

static inline void write_file(char path[32], const char *text)
{
	int fd;

	snprintf(path, 32, "/tmp/tutti-rails-XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

#define FABRIC "6c1f8f4e-8a53-4c35-9d0b-3f6f0a1b2c3d"

/* 4 GPUs, 18 NVLinks each to the switches of the rack; 2 CPUs, 4 NICs. */
static inline struct tti_xml_doc *gb200(void)
{
	struct tti_xml_doc *doc = NULL;

	assert_int_equal(tti_xml_create("gb200", &doc), TUTTI_OK);
	for (unsigned i = 0; i < 2; i++) {
		struct tti_xml *cpu = tti_xml_add(doc, doc->root, "cpu");

		tti_xml_setf(doc, cpu, "numaid", "%u", i);
		tti_xml_set(doc, cpu, "arch", "arm64");
		for (unsigned k = 0; k < 2; k++) {
			const unsigned dev = 2 * i + k;
			struct tti_xml *pci = tti_xml_add(doc, cpu, "pci"), *gpu, *link, *net;

			tti_xml_setf(doc, pci, "busid", "%04x:01:00.0", 8 * dev);
			tti_xml_set(doc, pci, "class", "0x030200");
			tti_xml_set(doc, pci, "link_speed", "32.0 GT/s PCIe");
			tti_xml_set(doc, pci, "link_width", "16");
			gpu = tti_xml_add(doc, pci, "gpu");
			tti_xml_setf(doc, gpu, "dev", "%u", dev);
			tti_xml_set(doc, gpu, "sm", "100");
			tti_xml_setf(doc, gpu, "tutti_fabric", "%s.32766", FABRIC);
			link = tti_xml_add(doc, gpu, "nvlink");
			tti_xml_set(doc, link, "target", "fffffff:ff:ff.0");
			tti_xml_set(doc, link, "count", "18");
			tti_xml_set(doc, link, "tclass", "0x068000");
			pci = tti_xml_add(doc, cpu, "pci");
			tti_xml_setf(doc, pci, "busid", "%04x:03:00.0", 8 * dev);
			tti_xml_set(doc, pci, "class", "0x020700");
			tti_xml_set(doc, pci, "link_speed", "64.0 GT/s PCIe");
			tti_xml_set(doc, pci, "link_width", "16");
			net = tti_xml_add(doc, tti_xml_add(doc, pci, "nic"), "net");
			tti_xml_setf(doc, net, "name", "mlx5_%u", dev);
			tti_xml_setf(doc, net, "dev", "%u", dev);
			tti_xml_set(doc, net, "speed", "400000");
			tti_xml_setf(doc, net, "guid", "0xabc%u", dev);
		}
	}
	return doc;
}

#endif
