/* SPDX-License-Identifier: BSD-3-Clause */
#include "insight/cluster/cluster_build.h"

#include <inttypes.h>

#include "topo/tree/schema.h"
#include "topo/tree/strip.h"
#include "util/error.h"
#include "util/hash.h"
#include "util/mem.h"

/* Orders of one kind's document that are remembered; others are sorted each time. */
#define MOST_VARIANTS 4

static struct tti_xml *next_net(struct tti_xml *node)
{
	do
		node = tti_xml_walk(node);
	while (node && !tti_xml_is(node, "net"));
	return node;
}

static const char *text_of(const struct tti_xml *node, const char *attr)
{
	const char *text = node ? tti_xml_get(node, attr) : NULL;

	return text ? text : "";
}

/* -- Which <net> is which, whatever the order of a document ---------------------------- */

struct net_keys {
	struct tti_strip_hosts hosts;
	struct tti_intern bases, keys; /* keys: bases with a number, so that they differ */
	TTI_VEC(uint32_t) count;       /* of each base                                */
	struct tti_strbuf text;
};

static void keys_release(struct net_keys *keys)
{
	tti_strip_hosts_release(&keys->hosts);
	tti_intern_release(&keys->bases);
	tti_intern_release(&keys->keys);
	tti_vec_release(&keys->count);
	tti_strbuf_release(&keys->text);
}

/* Host, place and names of a <net> and how many alike came before it, in keys->text. */
static bool write_key(struct net_keys *keys, const struct tti_xml *net)
{
	const struct tti_xml *pci = NULL, *at = net;
	uint32_t base;

	while (at && !tti_xml_is(at, "cpu")) {
		if (!pci && tti_xml_is(at, "pci"))
			pci = at;
		at = at->parent;
	}
	keys->text.len = 0;
	tti_strbuf_addf(&keys->text, "%" PRIu32 "\1%s\1%s\1%s\1%s\1%s\1",
			at ? tti_strip_host_of(&keys->hosts, at) : 0, text_of(at, "numaid"),
			text_of(pci, "busid"), text_of(net, "name"), text_of(net, "dev"),
			text_of(net, "port"));
	if (keys->text.failed)
		return false;
	base = tti_intern_text(&keys->bases, keys->text.text);
	if (base == TTI_INTERN_NONE)
		return false;
	if (base == keys->count.n && !tti_vec_push(&keys->count, 0))
		return false;
	tti_strbuf_addf(&keys->text, "%" PRIu32, keys->count.at[base]++);
	return !keys->text.failed;
}

/* Number the <net>s of a kind's document by their keys, from 0, in its order. */
static bool keys_init(struct net_keys *keys, const struct tti_xml_doc *doc)
{
	*keys = (struct net_keys){ 0 };
	tti_strip_hosts_init(&keys->hosts, doc);
	for (struct tti_xml *net = next_net(doc->root); net; net = next_net(net))
		if (!write_key(keys, net) ||
		    tti_intern(&keys->keys, keys->text.text, keys->text.len) == TTI_INTERN_NONE)
			return false;
	return true;
}

/* The ports of the <net>s of a document of a known kind. */
static tutti_status find_ports(const struct tti_cluster_kind *kind, const struct tti_xml_doc *doc,
			       uint32_t *port_of)
{
	struct net_keys known = { 0 }, own = { 0 };
	tutti_status status = TUTTI_OK;
	uint32_t i = 0, at;
	bool good = keys_init(&known, kind->doc);

	tti_strip_hosts_init(&own.hosts, doc);
	for (struct tti_xml *net = next_net(doc->root); good && net; net = next_net(net)) {
		good = write_key(&own, net);
		at = good ? tti_intern_find(&known.keys, own.text.text, own.text.len)
			  : TTI_INTERN_NONE;
		if (good && (at >= kind->nnets || i >= kind->nnets)) {
			status = tti_fail(TUTTI_EINTERNAL, "%s: a <net> that %s does not have",
					  doc->source, kind->doc->source);
			break;
		}
		if (good)
			port_of[i++] = kind->net_port[at];
	}
	keys_release(&known);
	keys_release(&own);
	return good ? status : tti_cluster_no_memory();
}

/* -- A new kind ----------------------------------------------------------------------- */

void tti_cluster_kind_release(struct tti_cluster_kind *kind)
{
	tti_paths_free(kind->paths);
	tti_graph_free(kind->graph);
	tti_xml_free(kind->doc);
	tti_free(kind->ports);
	tti_free(kind->net_port);
}

/* Which NET each <net> became. */
static tutti_status build_graph(struct tti_cluster_kind *kind)
{
	TTI_VEC(uint32_t) net_at = { 0 }; /* of each element: 1 + how many <net>s came before */
	tutti_status status = tti_graph_build(kind->doc, TTI_MODEL_TUTTI, &kind->graph);
	bool good = true;

	if (status)
		return status;
	for (struct tti_xml *node = kind->doc->root; good && node; node = tti_xml_walk(node))
		good = tti_vec_push(&net_at, tti_xml_is(node, "net") ? ++kind->nnets : 0);
	kind->net_port = tti_calloc((size_t)kind->nnets + 1, sizeof(*kind->net_port));
	good = good && kind->net_port;
	for (uint32_t i = 0; good && i < kind->nnets; i++)
		kind->net_port[i] = TTI_NODE_NONE;
	for (uint32_t i = 0; good && i < kind->graph->ntype[TTI_NODE_NET]; i++) {
		const uint32_t at = kind->graph->by_type[TTI_NODE_NET][i];
		const uint32_t element = kind->graph->nodes[at].element;

		if (element < net_at.n && net_at.at[element])
			kind->net_port[net_at.at[element] - 1] = i;
	}
	tti_vec_release(&net_at);
	return good ? TUTTI_OK : tti_cluster_no_memory();
}

static tutti_status list_ports(struct tti_cluster_kind *kind)
{
	const struct tti_graph *graph = kind->graph;
	uint32_t *next = tti_calloc((size_t)graph->nhosts + 1, sizeof(*next));

	kind->nports = graph->ntype[TTI_NODE_NET];
	kind->ports = tti_calloc((size_t)kind->nports + 1, sizeof(*kind->ports));
	if (!next || !kind->ports) {
		tti_free(next);
		return tti_cluster_no_memory();
	}
	for (uint32_t i = 0; i < kind->nports; i++) {
		const uint32_t at = graph->by_type[TTI_NODE_NET][i];
		const struct tti_node *node = &graph->nodes[at];
		const struct tti_topo_link *link =
			tti_graph_link(graph, at, node->parent, TTI_LINK_NET);

		kind->ports[i] = (struct tti_cluster_port){
			.node = at,
			.slot = next[node->host]++,
			.gbps = link ? (double)link->bw_gbps : 0,
		};
	}
	tti_free(next);
	return TUTTI_OK;
}

static tutti_status make_kind(struct tti_cluster *cluster, const struct tti_xml_doc *doc)
{
	struct tti_cluster_build *build = cluster->build;
	struct tti_cluster_kind kind = {
		.hash = tti_hash_bytes(build->canon.text.at, build->canon.text.n),
	};
	tutti_status status = tti_strip(doc, &kind.doc);

	if (status == TUTTI_OK)
		status = build_graph(&kind);
	if (status == TUTTI_OK)
		status = list_ports(&kind);
	if (status == TUTTI_OK)
		status = tti_paths_build(kind.graph, &kind.paths);
	if (status == TUTTI_OK && !tti_vec_push(&build->nvariants, 0))
		status = tti_cluster_no_memory();
	/* Last: the number of the text is that of the kind. */
	if (status == TUTTI_OK &&
	    (!tti_vec_grow(&build->kinds) || tti_intern(&build->canons, build->canon.text.at,
							build->canon.text.n) == TTI_INTERN_NONE)) {
		build->nvariants.n--;
		status = tti_cluster_no_memory();
	}
	if (status == TUTTI_OK)
		build->kinds.at[build->kinds.n++] = kind;
	else
		tti_cluster_kind_release(&kind);
	return status;
}

/* -- The kind of a document -------------------------------------------------------------- */

static tutti_status remember(struct tti_cluster_build *build, const struct tti_xml_doc *doc,
			     const struct tti_cluster_variant *variant)
{
	TTI_TRY(tti_canon_write(&build->canon, doc, TTI_CANON_AS_IS));
	if (!tti_vec_grow(&build->variants) ||
	    tti_intern(&build->seen, build->canon.text.at, build->canon.text.n) == TTI_INTERN_NONE)
		return tti_cluster_no_memory();
	build->variants.at[build->variants.n++] = *variant;
	build->nvariants.at[variant->kind]++;
	return TUTTI_OK;
}

tutti_status tti_cluster_kind_of(struct tti_cluster *cluster, const struct tti_xml_doc *doc,
				 struct tti_cluster_variant *out)
{
	struct tti_cluster_build *build = cluster->build;
	const struct tti_cluster_kind *kind;
	uint32_t at;

	TTI_TRY(tti_canon_write(&build->canon, doc, TTI_CANON_AS_IS));
	at = tti_intern_find(&build->seen, build->canon.text.at, build->canon.text.n);
	if (at != TTI_INTERN_NONE) {
		*out = build->variants.at[at];
		return TUTTI_OK;
	}
	TTI_TRY(tti_schema_check(doc));
	TTI_TRY(tti_canon_write(&build->canon, doc, TTI_CANON_SORTED));
	out->kind = tti_intern_find(&build->canons, build->canon.text.at, build->canon.text.n);
	if (out->kind == TTI_INTERN_NONE) {
		out->kind = (uint32_t)build->kinds.n;
		TTI_TRY(make_kind(cluster, doc));
	}
	kind = &build->kinds.at[out->kind];
	out->port_of =
		tti_arena_alloc(&cluster->arena, ((size_t)kind->nnets + 1) * sizeof(*out->port_of));
	if (!out->port_of)
		return tti_cluster_no_memory();
	TTI_TRY(find_ports(kind, doc, out->port_of));
	if (build->nvariants.at[out->kind] >= MOST_VARIANTS)
		return TUTTI_OK;
	return remember(build, doc, out);
}
