/* SPDX-License-Identifier: BSD-3-Clause */
#include "insight/cluster/cluster_build.h"
#include "insight/cluster/cluster_report.h"

#include <inttypes.h>

#include "util/error.h"
#include "util/hash.h"
#include "util/mem.h"

/* One document under construction; hashes: the host_hash that are taken. */
struct fuse {
	const struct tti_cluster *cluster;
	struct tti_xml_doc *doc;
	struct tti_intern hashes;
};

/* The hosts of a document that holds several have their number as host_hash. */
static uint64_t part_of(const struct tti_xml *cpu)
{
	const char *text = tti_xml_get(cpu, "host_hash");
	uint64_t part = 0;

	for (; text && *text; text++)
		part = part * 31 + (unsigned char)*text;
	return part;
}

/* The known hash, unless another host has it, as happens if one file stands for both. */
static bool pick_hash(struct fuse *fuse, uint32_t at, uint64_t *out)
{
	uint64_t hash = fuse->cluster->hosts[at].hash;

	for (uint32_t try = 0;; try++) {
		const size_t n = fuse->hashes.entries.n;

		if (tti_intern(&fuse->hashes, &hash, sizeof(hash)) == TTI_INTERN_NONE)
			return false;
		if (fuse->hashes.entries.n > n)
			break;
		hash = tti_hash_combine(hash, (uint64_t)at + try);
	}
	*out = hash;
	return true;
}

/* Fill in what differs between hosts of a kind: the GUIDs of NICs, the domain of GPUs. */
static bool fill_in(struct fuse *fuse, const struct tti_cluster_host *host, struct tti_xml *cpu,
		    uint32_t *net)
{
	const struct tti_cluster *cluster = fuse->cluster;
	const struct tti_cluster_kind *kind = &cluster->kinds[host->kind];

	for (struct tti_xml *node = cpu; node; node = tti_xml_walk(node)) {
		if (tti_xml_is(node, "gpu") && host->domain >= 0 &&
		    !tti_xml_set(fuse->doc, node, "tutti_fabric",
				 cluster->domains[host->domain].name))
			return false;
		if (tti_xml_is(node, "net")) {
			const uint32_t port = kind->net_port[(*net)++];
			const uint64_t guid = port < kind->nports
						      ? cluster->nics[host->first_nic + port].guid
						      : 0;

			if (guid && !tti_xml_setf(fuse->doc, node, "guid", "0x%" PRIx64, guid))
				return false;
		}
	}
	return true;
}

static bool add_host(struct fuse *fuse, uint32_t at)
{
	const struct tti_cluster_host *host = &fuse->cluster->hosts[at];
	const struct tti_xml_doc *from = fuse->cluster->kinds[host->kind].doc;
	uint32_t net = 0;
	uint64_t hash;

	if (!pick_hash(fuse, at, &hash))
		return false;
	for (const struct tti_xml *child = from->root->first; child; child = child->next) {
		struct tti_xml *copy = tti_xml_add_copy(fuse->doc, fuse->doc->root, child);
		const char *old = tti_xml_is(child, "cpu") ? tti_xml_get(child, "host_hash") : NULL;
		const uint64_t part = tti_xml_is(child, "cpu") ? part_of(child) : 0;

		if (!copy || !fill_in(fuse, host, copy, &net))
			return false;
		if (tti_xml_is(child, "cpu") &&
		    !tti_xml_setf(fuse->doc, copy, "host_hash", "0x%" PRIx64,
				  part ? tti_hash_combine(hash, part) : hash))
			return false;
		if (tti_xml_is(child, "cpu") &&
		    !tti_xml_setf(fuse->doc, copy, "tutti_host", "%s%s%s", host->name,
				  part ? "." : "", part ? old : ""))
			return false;
	}
	return true;
}

static tutti_status add_hosts(struct fuse *fuse, const uint32_t *hosts, uint32_t nhosts)
{
	for (uint32_t i = 0; i < nhosts; i++) {
		if (hosts[i] >= fuse->cluster->nhosts)
			return tti_fail(TUTTI_EINVAL,
					"host %" PRIu32 " of a cluster of %" PRIu32 " hosts",
					hosts[i], fuse->cluster->nhosts);
		if (!add_host(fuse, hosts[i]))
			return tti_cluster_no_memory();
	}
	return TUTTI_OK;
}

tutti_status tti_cluster_fuse(const struct tti_cluster *cluster, const uint32_t *hosts,
			      uint32_t nhosts, struct tti_xml_doc **out)
{
	struct fuse fuse = { .cluster = cluster };
	tutti_status status;

	if (cluster->build)
		return tti_fail(TUTTI_EUSAGE, "hosts are fused when the cluster is sealed");
	TTI_TRY(tti_xml_create("fused hosts", &fuse.doc));
	status = add_hosts(&fuse, hosts, nhosts);
	tti_intern_release(&fuse.hashes);
	if (status == TUTTI_OK)
		*out = fuse.doc;
	else
		tti_xml_free(fuse.doc);
	return status;
}
