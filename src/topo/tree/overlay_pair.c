/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/tree/overlay_pair.h"

#include <stdlib.h>
#include <string.h>

#include "util/error.h"

/* An element and its identity. Elements of equal identity in two documents are pairs: the
 * first with the first, the second with the second. */
struct item {
	const char *element;
	uint64_t host, key;
	const char *name;
	struct tti_xml *node;
	size_t at; /* in the document */
	bool paired;
};

struct items {
	struct item *at;
	size_t n, room;
};

static int compare(const void *a, const void *b)
{
	const struct item *x = a, *y = b;
	const int element = strcmp(x->element, y->element);

	if (element)
		return element;
	if (x->host != y->host)
		return x->host < y->host ? -1 : 1;
	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return strcmp(x->name, y->name);
}

static int compare_in_order(const void *a, const void *b)
{
	const struct item *x = a, *y = b;
	const int order = compare(x, y);

	return order ? order : x->at < y->at ? -1 : x->at > y->at;
}

static bool add(struct items *items, struct item item)
{
	item.at = items->n;
	return tti_vec_push(items, item);
}

static void sort(struct items *items)
{
	if (items->n)
		qsort(items->at, items->n, sizeof(*items->at), compare_in_order);
}

static bool push_pair(struct tti_overlay_pairs *pairs, struct item *over, struct item *under)
{
	const struct tti_overlay_pair pair = { over->node, under->node };

	over->paired = under->paired = true;
	return tti_vec_push(&pairs->list, pair);
}

/* Pair equal elements that are not in a pair yet. */
static bool join(struct tti_overlay_pairs *pairs, struct items *over, struct items *under)
{
	size_t o = 0, u = 0;

	sort(over);
	sort(under);
	while (o < over->n && u < under->n) {
		const int order = compare(&over->at[o], &under->at[u]);

		if (over->at[o].paired || order < 0)
			o++;
		else if (under->at[u].paired || order > 0)
			u++;
		else if (!push_pair(pairs, &over->at[o++], &under->at[u++]))
			return false;
	}
	return true;
}

/* -- Hosts ------------------------------------------------------------------------ */

static int compare_hosts(const void *a, const void *b)
{
	const struct tti_overlay_host *x = a, *y = b;

	return x->hash < y->hash ? -1 : x->hash > y->hash;
}

static uint64_t hash_of(const struct tti_overlay_pairs *pairs, const struct tti_xml *cpu)
{
	return pairs->one_host ? 0 : tti_schema_host(cpu);
}

struct tti_overlay_host *tti_overlay_pairs_host(const struct tti_overlay_pairs *pairs,
						const struct tti_xml *cpu)
{
	const struct tti_overlay_host key = { .hash = hash_of(pairs, cpu) };

	return bsearch(&key, pairs->hosts.at, pairs->hosts.n, sizeof(key), compare_hosts);
}

static bool add_hosts(struct tti_overlay_pairs *pairs, const struct tti_xml_doc *doc)
{
	struct tti_xml *cpu = tti_xml_find(doc->root, "cpu", NULL, NULL);

	for (; cpu; cpu = tti_xml_next(cpu, "cpu")) {
		const struct tti_overlay_host host = { .hash = hash_of(pairs, cpu) };

		if (!tti_vec_push(&pairs->hosts, host))
			return false;
	}
	return true;
}

static bool find_hosts(struct tti_overlay_pairs *pairs, const struct tti_xml_doc *under,
		       const struct tti_xml_doc *over)
{
	struct tti_xml *cpu;
	size_t n = 0;

	pairs->one_host =
		!tti_schema_has_several_hosts(under) && !tti_schema_has_several_hosts(over);
	if (!add_hosts(pairs, under) || !add_hosts(pairs, over))
		return false;
	if (pairs->hosts.n)
		qsort(pairs->hosts.at, pairs->hosts.n, sizeof(*pairs->hosts.at), compare_hosts);
	for (size_t i = 0; i < pairs->hosts.n; i++)
		if (n == 0 || pairs->hosts.at[i].hash != pairs->hosts.at[n - 1].hash)
			pairs->hosts.at[n++] = pairs->hosts.at[i];
	pairs->hosts.n = n;

	cpu = tti_xml_find(over->root, "cpu", NULL, NULL);
	for (; cpu; cpu = tti_xml_next(cpu, "cpu")) {
		struct tti_overlay_host *host = tti_overlay_pairs_host(pairs, cpu);

		host->over = host->over ? host->over : cpu;
	}
	cpu = tti_xml_find(under->root, "cpu", NULL, NULL);
	for (; cpu; cpu = tti_xml_next(cpu, "cpu")) {
		struct tti_overlay_host *host = tti_overlay_pairs_host(pairs, cpu);

		host->under = host->under ? host->under : cpu;
	}
	return true;
}

/* -- What has one identity in its host: cpu, pci, net ----------------------------- */

/* A checked number; `missing` if it is not stated. */
static int64_t number(const struct tti_xml_doc *doc, const struct tti_xml *node, const char *attr,
		      int64_t missing)
{
	int64_t value;

	return tti_xml_int(doc, node, attr, -1, INT32_MAX, missing, &value) == TUTTI_OK ? value
											: missing;
}

static uint64_t busid(const struct tti_xml *node, const char *attr)
{
	uint64_t value;

	return tti_busid_parse(tti_xml_get(node, attr), &value) ? value : TTI_BUSID_NONE;
}

/* *nets have no key yet. */
static bool collect(const struct tti_overlay_pairs *pairs, const struct tti_xml_doc *doc,
		    struct items *items, struct items *nets)
{
	struct item item = { .name = "" };
	bool good = true;

	for (item.node = doc->root; item.node && good; item.node = tti_schema_walk(item.node)) {
		item.element = item.node->name;
		if (tti_xml_is(item.node, "cpu")) {
			item.host = hash_of(pairs, item.node);
			item.key = (uint64_t)number(doc, item.node, "numaid", -1);
			good = add(items, item);
		} else if (tti_xml_is(item.node, "pci")) {
			item.key = busid(item.node, "busid");
			good = add(items, item);
		} else if (tti_xml_is(item.node, "net")) {
			good = add(nets, item);
		}
	}
	return good;
}

static const char *name_of(const struct tti_xml *net)
{
	const char *name = net ? tti_xml_get(net, "name") : NULL;

	return name ? name : "";
}

enum keying {
	BY_NAME_AND_PORT,
	BY_NAME,
	BY_DEV_AND_PORT,
};

/* Select the nets that have such a key. `lacking`: only those without the other attribute,
 * which is the port for a name, and the name for a dev. */
static bool select_nets(const struct tti_xml_doc *doc, const struct items *from, enum keying keying,
			bool lacking, struct items *out)
{
	out->n = 0;
	for (size_t i = 0; i < from->n; i++) {
		struct item item = from->at[i];
		const char *name = name_of(item.node);
		const int64_t port = number(doc, item.node, "port", -1);
		const int64_t dev = number(doc, item.node, "dev", -1);

		if (item.paired || (keying == BY_DEV_AND_PORT ? dev < 0 : !*name))
			continue;
		if (lacking && (keying == BY_DEV_AND_PORT ? *name != '\0' : port >= 0))
			continue;
		item.name = keying == BY_DEV_AND_PORT ? "" : name;
		item.key = keying == BY_NAME ? 0 : (uint64_t)(port < 0 ? 0 : port);
		if (keying == BY_NAME_AND_PORT)
			item.key = (uint64_t)(port + 1);
		if (keying == BY_DEV_AND_PORT)
			item.key |= (uint64_t)dev << 32;
		item.at = i;
		if (!tti_vec_push(out, item))
			return false;
	}
	return true;
}

static bool join_nets(struct tti_overlay_pairs *pairs, struct items *over,
		      const struct tti_xml_doc *over_doc, struct items *under,
		      const struct tti_xml_doc *under_doc)
{
	static const struct {
		enum keying keying;
		bool over_lacks, under_lacks;
	} passes[] = {
		{ BY_NAME_AND_PORT, false, false }, { BY_NAME, true, false },
		{ BY_NAME, false, true },           { BY_DEV_AND_PORT, true, false },
		{ BY_DEV_AND_PORT, false, true },
	};
	struct items a = { 0 }, b = { 0 };
	bool good = true;

	for (size_t i = 0; i < sizeof(passes) / sizeof(passes[0]) && good; i++) {
		good = select_nets(over_doc, over, passes[i].keying, passes[i].over_lacks, &a) &&
		       select_nets(under_doc, under, passes[i].keying, passes[i].under_lacks, &b) &&
		       join(pairs, &a, &b);
		for (size_t n = 0; n < a.n; n++)
			over->at[a.at[n].at].paired = a.at[n].paired;
		for (size_t n = 0; n < b.n; n++)
			under->at[b.at[n].at].paired = b.at[n].paired;
	}
	tti_vec_release(&a);
	tti_vec_release(&b);
	return good;
}

static bool join_global(struct tti_overlay_pairs *pairs, const struct tti_xml_doc *under,
			const struct tti_xml_doc *over)
{
	struct items a = { 0 }, b = { 0 }, nets_a = { 0 }, nets_b = { 0 };
	const bool good = collect(pairs, over, &a, &nets_a) && collect(pairs, under, &b, &nets_b) &&
			  join(pairs, &a, &b) && join_nets(pairs, &nets_a, over, &nets_b, under);

	tti_vec_release(&a);
	tti_vec_release(&b);
	tti_vec_release(&nets_a);
	tti_vec_release(&nets_b);
	return good;
}

/* -- What has one identity in its parent: all others ------------------------------- */

static bool is_global(const struct tti_xml *node)
{
	return tti_xml_is(node, "cpu") || tti_xml_is(node, "pci") || tti_xml_is(node, "net");
}

/* The identity of a NIC below a CPU is its first net, that of others their place. */
static const char *name_of_nic(const struct tti_xml *nic)
{
	return tti_xml_is(nic->parent, "cpu") ? name_of(tti_xml_find(nic, "net", NULL, NULL)) : "";
}

static bool collect_children(const struct tti_xml *parent, struct items *out)
{
	struct tti_xml *node = tti_xml_find(parent, NULL, NULL, NULL);

	out->n = 0;
	for (; node; node = tti_xml_next(node, NULL)) {
		struct item item = { .element = node->name, .name = "", .node = node };

		if (is_global(node))
			continue;
		if (tti_xml_is(node, "nic"))
			item.name = name_of_nic(node);
		if (tti_xml_is(node, "nvlink") || tti_xml_is(node, "xgmi") ||
		    tti_xml_is(node, "pcilink"))
			item.key = busid(node, "target");
		if (!add(out, item))
			return false;
	}
	return true;
}

/* The list of pairs grows in this loop. */
static bool join_children(struct tti_overlay_pairs *pairs)
{
	struct items a = { 0 }, b = { 0 };
	bool good = true;

	for (size_t i = 0; i < pairs->list.n && good; i++) {
		const struct tti_overlay_pair pair = pairs->list.at[i];

		if (tti_schema_knows(pair.over->name))
			good = collect_children(pair.over, &a) &&
			       collect_children(pair.under, &b) && join(pairs, &a, &b);
	}
	tti_vec_release(&a);
	tti_vec_release(&b);
	return good;
}

/* -- All -------------------------------------------------------------------------- */

static int compare_addresses(const void *a, const void *b)
{
	const struct tti_xml *const *x = a, *const *y = b;

	return *x < *y ? -1 : *x > *y;
}

bool tti_overlay_pairs_has(const struct tti_overlay_pairs *pairs, const struct tti_xml *node)
{
	return bsearch(&node, pairs->paired.at, pairs->paired.n, sizeof(*pairs->paired.at),
		       compare_addresses);
}

tutti_status tti_overlay_pairs_find(struct tti_overlay_pairs *pairs,
				    const struct tti_xml_doc *under, const struct tti_xml_doc *over)
{
	const struct tti_overlay_pair roots = { over->root, under->root };
	bool good = find_hosts(pairs, under, over) && tti_vec_push(&pairs->list, roots) &&
		    join_global(pairs, under, over) && join_children(pairs);

	for (size_t i = 0; i < pairs->list.n && good; i++)
		good = tti_vec_push(&pairs->paired, pairs->list.at[i].under) &&
		       tti_vec_push(&pairs->paired, pairs->list.at[i].over);
	if (!good)
		return tti_fail(TUTTI_ENOMEM, "%s over %s: out of memory", over->source,
				under->source);
	qsort(pairs->paired.at, pairs->paired.n, sizeof(*pairs->paired.at), compare_addresses);
	return TUTTI_OK;
}

void tti_overlay_pairs_release(struct tti_overlay_pairs *pairs)
{
	tti_vec_release(&pairs->list);
	tti_vec_release(&pairs->paired);
	tti_vec_release(&pairs->hosts);
}
