/* SPDX-License-Identifier: BSD-3-Clause */
#include "insight/cluster/cluster.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "insight/cluster/cluster_build.h"
#include "topo/tree/schema.h"
#include "util/error.h"
#include "util/hash.h"
#include "util/mem.h"

/* A name of a host is at most as long as DNS allows. */
#define NAME_BYTES 256

/* The part of a document that is a host's own. */
struct own {
	struct tti_cluster_variant variant;
	TTI_VEC(struct tti_cluster_nic) nics;
	TTI_VEC(struct tti_nic_said) said;
	uint32_t fabric;
	bool hashed;
	uint64_t hash; /* host_hash, if it is stated */
};

/* -- Life ------------------------------------------------------------------------------- */

tutti_status tti_cluster_create(struct tti_cluster **out)
{
	struct tti_cluster *cluster = tti_zalloc(sizeof(*cluster));

	if (!cluster)
		return tti_cluster_no_memory();
	cluster->rail_source = TTI_RAIL_ORDER;
	cluster->build = tti_zalloc(sizeof(*cluster->build));
	if (!cluster->build) {
		tti_cluster_free(cluster);
		return tti_cluster_no_memory();
	}
	*out = cluster;
	return TUTTI_OK;
}

void tti_cluster_free(struct tti_cluster *cluster)
{
	if (!cluster)
		return;
	if (cluster->build)
		tti_cluster_sync(cluster);
	for (uint32_t i = 0; i < cluster->nkinds; i++)
		tti_cluster_kind_release(&cluster->kinds[i]);
	tti_free(cluster->kinds);
	tti_free(cluster->hosts);
	tti_free(cluster->nics);
	tti_free(cluster->rails);
	tti_free(cluster->groups);
	tti_free(cluster->domains);
	tti_free(cluster->notes);
	tti_cluster_build_free(cluster->build);
	tti_intern_release(&cluster->names);
	tti_arena_release(&cluster->arena);
	tti_free(cluster);
}

tutti_status tti_cluster_seal(struct tti_cluster *cluster)
{
	tutti_status status;

	if (!cluster->build)
		return tti_fail(TUTTI_EUSAGE, "this cluster is sealed already");
	status = tti_rail_rules_apply(cluster);
	if (status == TUTTI_OK)
		status = tti_cluster_find_domains(cluster);
	if (status == TUTTI_OK)
		status = tti_cluster_find_groups(cluster);
	if (status == TUTTI_OK)
		status = tti_cluster_find_rails(cluster);
	tti_cluster_sync(cluster);
	if (status)
		return status;
	tti_cluster_build_free(cluster->build);
	cluster->build = NULL;
	return TUTTI_OK;
}

/* -- What a document says of its host ----------------------------------------------------- */

static tutti_status take_word(struct tti_cluster_build *build, const struct tti_xml *node,
			      const char *attr, uint32_t *out)
{
	const char *text = tti_xml_get(node, attr);

	*out = TTI_INTERN_NONE;
	if (!text || !*text)
		return TUTTI_OK;
	*out = tti_intern_text(&build->words, text);
	return *out == TTI_INTERN_NONE ? tti_cluster_no_memory() : TUTTI_OK;
}

static tutti_status take_net(struct tti_cluster_build *build, const struct tti_xml_doc *doc,
			     const struct tti_xml *net, uint32_t port, struct own *own)
{
	struct tti_nic_said said = { .rule = TTI_INTERN_NONE };
	uint64_t guid;

	TTI_TRY(tti_xml_hex(doc, net, "guid", UINT64_MAX, 0, &guid));
	TTI_TRY(take_word(build, net, "tutti_subnet", &said.subnet));
	TTI_TRY(take_word(build, net, "tutti_switch", &said.leaf));
	if (port >= own->nics.n)
		return TUTTI_OK;
	own->nics.at[port].guid = guid;
	own->said.at[port] = said;
	return TUTTI_OK;
}

/* A fabric manager that was not asked gives a cluster of zeroes. */
static bool is_fabric(const char *text)
{
	return text && text[strspn(text, "0-")] != '.' && text[strspn(text, "0-")] != '\0';
}

const char *tti_cluster_fabric_of(const struct tti_xml_doc *doc)
{
	const char *found = NULL;

	for (struct tti_xml *node = doc->root; node; node = tti_xml_walk(node)) {
		const char *fabric = tti_xml_get(node, "tutti_fabric");

		if (!tti_xml_is(node, "gpu"))
			continue;
		if (!is_fabric(fabric) || (found && strcmp(found, fabric) != 0))
			return NULL;
		found = fabric;
	}
	return found;
}

static tutti_status take_gpu(struct tti_cluster_build *build, const struct tti_xml_doc *doc,
			     const struct tti_xml *gpu, struct own *own)
{
	const char *fabric = tti_xml_get(gpu, "tutti_fabric");
	int64_t rank;
	uint32_t word;

	TTI_TRY(tti_xml_int(doc, gpu, "rank", -1, INT32_MAX, -1, &rank));
	if (!is_fabric(fabric))
		return TUTTI_OK;
	TTI_TRY(take_word(build, gpu, "tutti_fabric", &word));
	if (own->fabric != TTI_INTERN_NONE && own->fabric != word)
		return tti_xml_fail(doc, gpu,
				    "tutti_fabric is \"%s\" here and \"%s\" on another GPU: the "
				    "GPUs of a host are in one NVLink domain",
				    fabric, tti_intern_get(&build->words, own->fabric));
	own->fabric = word;
	return TUTTI_OK;
}

/* The first CPU's host_hash stands for the host. The rest is looked at because nobody
 * does else, where the document is of a known kind. */
static tutti_status take_cpu(const struct tti_xml_doc *doc, const struct tti_xml *cpu,
			     struct own *own)
{
	double ignored;

	TTI_TRY(tti_xml_real(doc, cpu, "tutti_mem_gbps", 1e6, 0, &ignored));
	TTI_TRY(tti_xml_real(doc, cpu, "tutti_mem_ns", 1e9, 0, &ignored));
	if (own->hashed || !tti_xml_get(cpu, "host_hash"))
		return TUTTI_OK;
	own->hashed = true;
	own->hash = tti_schema_host(cpu);
	return TUTTI_OK;
}

static void own_release(struct own *own)
{
	tti_vec_release(&own->nics);
	tti_vec_release(&own->said);
}

static tutti_status take_own(struct tti_cluster *cluster, const struct tti_xml_doc *doc,
			     struct own *own)
{
	const struct tti_nic_said unknown = { TTI_INTERN_NONE, TTI_INTERN_NONE, TTI_INTERN_NONE };
	const struct tti_cluster_nic nic = { .rail = -1, .group = -1 };
	struct tti_cluster_build *build = cluster->build;
	uint32_t nports, nets = 0;

	TTI_TRY(tti_cluster_kind_of(cluster, doc, &own->variant));
	nports = build->kinds.at[own->variant.kind].nports;
	for (uint32_t i = 0; i < nports; i++)
		if (!tti_vec_push(&own->nics, nic) || !tti_vec_push(&own->said, unknown))
			return tti_cluster_no_memory();
	own->fabric = TTI_INTERN_NONE;
	for (struct tti_xml *node = doc->root; node; node = tti_xml_walk(node)) {
		if (tti_xml_is(node, "net"))
			TTI_TRY(take_net(build, doc, node, own->variant.port_of[nets++], own));
		else if (tti_xml_is(node, "gpu"))
			TTI_TRY(take_gpu(build, doc, node, own));
		else if (tti_xml_is(node, "cpu"))
			TTI_TRY(take_cpu(doc, node, own));
	}
	return TUTTI_OK;
}

/* -- Adding ------------------------------------------------------------------------------- */

static tutti_status check_name(const struct tti_cluster *cluster, const char *name)
{
	const size_t len = strlen(name);
	bool good = len > 0 && len < NAME_BYTES;

	if (!cluster->build)
		return tti_fail(TUTTI_EUSAGE,
				"host %s: this cluster is sealed, no more hosts "
				"can be added",
				name);
	for (size_t i = 0; good && i < len; i++)
		good = name[i] > ' ' && name[i] < 0x7f;
	if (!good)
		return tti_fail(TUTTI_EINVAL,
				"'%.*s' is no name for a host: 1 to %d printable ASCII characters "
				"without blanks are",
				64, name, NAME_BYTES - 1);
	if (tti_intern_find(&cluster->names, name, len) != TTI_INTERN_NONE)
		return tti_fail(TUTTI_EINVAL,
				"there are two hosts named '%s': give each its own "
				"name",
				name);
	return TUTTI_OK;
}

static tutti_status append(struct tti_cluster *cluster, const char *name, const struct own *own)
{
	struct tti_cluster_build *build = cluster->build;
	const size_t nnics = own->nics.n, nbefore = build->nics.n;
	struct tti_cluster_kind *kind = &build->kinds.at[own->variant.kind];
	struct tti_cluster_host host = {
		.kind = own->variant.kind,
		.first_nic = (uint32_t)nbefore,
		.domain = -1,
		.hash = own->hashed ? own->hash : tti_hash_bytes(name, strlen(name)),
	};

	if (nbefore + nnics > INT32_MAX ||
	    !tti_vec_reserve((void **)&build->nics.at, &build->nics.room, nbefore + nnics,
			     sizeof(*build->nics.at)) ||
	    !tti_vec_reserve((void **)&build->said.at, &build->said.room, nbefore + nnics,
			     sizeof(*build->said.at)) ||
	    !tti_vec_grow(&build->hosts) || !tti_vec_grow(&build->fabrics) ||
	    tti_intern_text(&cluster->names, name) == TTI_INTERN_NONE)
		return tti_cluster_no_memory();
	host.name = tti_intern_get(&cluster->names, (uint32_t)build->hosts.n);
	if (nnics) {
		memcpy(build->nics.at + nbefore, own->nics.at, nnics * sizeof(*own->nics.at));
		memcpy(build->said.at + nbefore, own->said.at, nnics * sizeof(*own->said.at));
	}
	build->nics.n = build->said.n = nbefore + nnics;
	if (kind->nhosts++ == 0)
		kind->first_host = (uint32_t)build->hosts.n;
	build->hosts.at[build->hosts.n++] = host;
	build->fabrics.at[build->fabrics.n++] = own->fabric;
	return TUTTI_OK;
}

tutti_status tti_cluster_add(struct tti_cluster *cluster, const char *name,
			     const struct tti_xml_doc *doc)
{
	struct own own = { 0 };
	tutti_status status;

	TTI_TRY(check_name(cluster, name));
	status = take_own(cluster, doc, &own);
	if (status == TUTTI_OK)
		status = append(cluster, name, &own);
	tti_cluster_sync(cluster);
	own_release(&own);
	return status;
}

tutti_status tti_cluster_add_many(struct tti_cluster *cluster, const char *name, uint32_t count,
				  const struct tti_xml_doc *doc)
{
	const size_t len = strlen(name);
	/* Not to make gb200tray80 of the first gb200tray8. */
	const char *dash = len > 0 && isdigit((unsigned char)name[len - 1]) ? "-" : "";
	char numbered[NAME_BYTES + 16];
	struct own own = { 0 };
	tutti_status status = TUTTI_OK;

	if (count == 0)
		return tti_fail(TUTTI_EINVAL, "0 hosts named %s: at least 1 can be added", name);
	for (uint32_t i = 0; i < count; i++) {
		snprintf(numbered, sizeof(numbered), "%.*s%s%" PRIu32, NAME_BYTES, name, dash, i);
		TTI_TRY(check_name(cluster, numbered));
	}
	status = take_own(cluster, doc, &own);
	for (size_t i = 0; i < own.nics.n; i++)
		own.nics.at[i].guid = 0;
	own.hashed = false;
	for (uint32_t i = 0; i < count && status == TUTTI_OK; i++) {
		snprintf(numbered, sizeof(numbered), "%.*s%s%" PRIu32, NAME_BYTES, name, dash, i);
		status = append(cluster, numbered, &own);
	}
	tti_cluster_sync(cluster);
	own_release(&own);
	return status;
}
