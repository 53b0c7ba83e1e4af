/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/tree/overlay.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "topo/tree/overlay_pair.h"
#include "topo/tree/schema.h"
#include "util/error.h"
#include "util/mem.h"

struct dev {
	uint64_t host;
	int64_t number;
};

/* The result starts as a copy of `over` and grows. The pairs are of this copy and `under`. */
struct build {
	struct tti_overlay_pairs pairs;
	const struct tti_xml_doc *under;
	struct tti_xml_doc *out;
	TTI_VEC(struct dev) devs; /* that nets of `over` have, sorted */
	int64_t next_dev;         /* nobody's                         */
};

/* -- Attributes ------------------------------------------------------------------- */

static int compare_names(const void *a, const void *b)
{
	const struct tti_xml_attr *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static int compare_devs(const void *a, const void *b)
{
	const struct dev *x = a, *y = b;

	if (x->host != y->host)
		return x->host < y->host ? -1 : 1;
	return x->number < y->number ? -1 : x->number > y->number;
}

static struct dev dev_of(const struct build *build, const struct tti_xml_doc *doc,
			 const struct tti_xml *net)
{
	const struct tti_xml *cpu = net;
	struct dev dev;

	while (!tti_xml_is(cpu, "cpu"))
		cpu = cpu->parent;
	dev.host = tti_overlay_pairs_host(&build->pairs, cpu)->hash;
	if (tti_xml_int(doc, net, "dev", -1, INT32_MAX, -1, &dev.number) != TUTTI_OK)
		dev.number = -1;
	return dev;
}

/* Count the devs of the nets of a document; those of `over` go into build->devs. */
static bool count_devs(struct build *build, const struct tti_xml_doc *doc)
{
	for (const struct tti_xml *node = doc->root; node; node = tti_schema_walk(node)) {
		struct dev dev;

		if (!tti_xml_is(node, "net"))
			continue;
		dev = dev_of(build, doc, node);
		if (dev.number >= build->next_dev)
			build->next_dev = dev.number + 1;
		if (doc == build->out && dev.number >= 0 && !tti_vec_push(&build->devs, dev))
			return false;
	}
	if (build->devs.n)
		qsort(build->devs.at, build->devs.n, sizeof(*build->devs.at), compare_devs);
	return true;
}

/* Set the host_hash of `under`, else that of `over`. A CPU that has the same number in other
 * words keeps them. */
static bool set_host(struct build *build, struct tti_xml *cpu, const struct tti_overlay_host *host)
{
	uint64_t hash = host->under ? tti_schema_host(host->under) : 0;

	if (hash == 0 && host->over)
		hash = tti_schema_host(host->over);
	return tti_schema_host(cpu) == hash ||
	       tti_xml_setf(build->out, cpu, "host_hash", "0x%" PRIx64, hash);
}

/* Take the dev from `under`, unless the file gave it to another net. */
static bool fill_dev(struct build *build, struct tti_xml *net, const struct tti_xml *under)
{
	const struct dev dev = dev_of(build, build->under, under);

	if (build->devs.n &&
	    bsearch(&dev, build->devs.at, build->devs.n, sizeof(dev), compare_devs))
		return tti_xml_setf(build->out, net, "dev", "%" PRId64, build->next_dev++);
	return tti_xml_append_attr(build->out, net, "dev", tti_xml_get(under, "dev"));
}

/* The family and model of one vendor mean nothing for a CPU of another. */
static bool is_of_other_vendor(const struct tti_xml *node, const struct tti_xml *under,
			       const char *name)
{
	const char *a, *b;

	if (!tti_xml_is(node, "cpu") ||
	    (strcmp(name, "familyid") != 0 && strcmp(name, "modelid") != 0))
		return false;
	a = tti_xml_get(node, "vendor");
	b = tti_xml_get(under, "vendor");
	return a && b && strcmp(a, b) != 0;
}

/* Fill in the attributes that `node` lacks. Names are sorted first, since an element may have
 * very many. */
static bool fill(struct build *build, struct tti_xml *node, const struct tti_xml *under)
{
	const size_t n = node->nattrs, nbytes = n * sizeof(*node->attrs);
	struct tti_xml_attr *sorted = tti_alloc(nbytes ? nbytes : 1);
	bool good = sorted;

	if (good && n) {
		memcpy(sorted, node->attrs, nbytes);
		qsort(sorted, n, sizeof(*sorted), compare_names);
	}
	for (uint32_t i = 0; i < under->nattrs && good; i++) {
		const struct tti_xml_attr *attr = &under->attrs[i];

		if ((n && bsearch(attr, sorted, n, sizeof(*attr), compare_names)) ||
		    is_of_other_vendor(node, under, attr->name))
			continue;
		if (tti_xml_is(node, "net") && strcmp(attr->name, "dev") == 0)
			good = fill_dev(build, node, under);
		else
			good = tti_xml_append_attr(build->out, node, attr->name, attr->value);
	}
	tti_free(sorted);
	return good;
}

/* A CPU that `under` lacks gets the make of the first CPU of `under`. */
static bool fill_make(struct build *build, struct tti_xml *cpu, const struct tti_xml *under)
{
	static const char *const make[] = { "arch", "vendor", "familyid", "modelid" };

	for (size_t i = 0; i < sizeof(make) / sizeof(make[0]); i++) {
		const char *value = tti_xml_get(under, make[i]);

		if (value && !tti_xml_get(cpu, make[i]) &&
		    !is_of_other_vendor(cpu, under, make[i]) &&
		    !tti_xml_set(build->out, cpu, make[i], value))
			return false;
	}
	return true;
}

/* -- Elements --------------------------------------------------------------------- */

static bool keep_children(struct build *build, struct tti_xml *parent, const struct tti_xml *under);

/* A NIC whose nets are all elsewhere. */
static bool is_emptied(const struct build *build, const struct tti_xml *nic)
{
	const struct tti_xml *child = tti_xml_find(nic, NULL, NULL, NULL);

	if (!tti_xml_is(nic, "nic") || !child)
		return false;
	while (child && tti_overlay_pairs_has(&build->pairs, child))
		child = tti_xml_next(child, NULL);
	return !child;
}

/* Keep an element of `under` alone, and all below it that has no other place. */
static bool keep(struct build *build, struct tti_xml *parent, const struct tti_xml *under)
{
	struct tti_xml *node;

	if (!tti_schema_knows(under->name))
		return tti_xml_add_copy(build->out, parent, under);
	if (is_emptied(build, under))
		return true;
	node = tti_xml_add(build->out, parent, under->name);
	return node && fill(build, node, under) && keep_children(build, node, under);
}

static bool keep_children(struct build *build, struct tti_xml *parent, const struct tti_xml *under)
{
	const struct tti_xml *child = tti_xml_find(under, NULL, NULL, NULL);

	for (; child; child = tti_xml_next(child, NULL))
		if (!tti_overlay_pairs_has(&build->pairs, child) && !keep(build, parent, child))
			return false;
	return true;
}

/* A CPU of `under` alone. */
static bool keep_cpu(struct build *build, const struct tti_xml *cpu)
{
	const struct tti_overlay_host *host = tti_overlay_pairs_host(&build->pairs, cpu);
	int64_t numaid;

	if (tti_xml_int(build->under, cpu, "numaid", -1, INT32_MAX, -1, &numaid) == TUTTI_OK &&
	    numaid < 0 && host->over)
		return keep_children(build, host->over, cpu);
	return keep(build, build->out->root, cpu) && set_host(build, build->out->root->last, host);
}

static bool keep_in_root(struct build *build)
{
	const struct tti_xml *node = tti_xml_find(build->under->root, NULL, NULL, NULL);
	bool good = true;

	for (; node && good; node = tti_xml_next(node, NULL))
		if (!tti_overlay_pairs_has(&build->pairs, node))
			good = tti_xml_is(node, "cpu") ? keep_cpu(build, node)
						       : keep(build, build->out->root, node);
	return good;
}

static bool complete_cpus(struct build *build)
{
	struct tti_xml *cpu = tti_xml_find(build->out->root, "cpu", NULL, NULL);

	for (; cpu; cpu = tti_xml_next(cpu, "cpu")) {
		const struct tti_overlay_host *host = tti_overlay_pairs_host(&build->pairs, cpu);

		if (!set_host(build, cpu, host) ||
		    (host->under && !tti_overlay_pairs_has(&build->pairs, cpu) &&
		     !fill_make(build, cpu, host->under)))
			return false;
	}
	return true;
}

static bool fill_pairs(struct build *build)
{
	for (size_t i = 0; i < build->pairs.list.n; i++) {
		const struct tti_overlay_pair *pair = &build->pairs.list.at[i];

		if (tti_schema_knows(pair->over->name) && !fill(build, pair->over, pair->under))
			return false;
	}
	return true;
}

/* Without the roots, whose children are CPUs. */
static bool keep_in_pairs(struct build *build)
{
	for (size_t i = 1; i < build->pairs.list.n; i++) {
		const struct tti_overlay_pair *pair = &build->pairs.list.at[i];

		if (tti_schema_knows(pair->over->name) &&
		    !keep_children(build, pair->over, pair->under))
			return false;
	}
	return true;
}

static tutti_status lay(struct build *build)
{
	TTI_TRY(tti_overlay_pairs_find(&build->pairs, build->under, build->out));
	if (!count_devs(build, build->under) || !count_devs(build, build->out) ||
	    !fill_pairs(build) || !complete_cpus(build) || !keep_in_pairs(build) ||
	    !keep_in_root(build))
		return tti_fail(TUTTI_ENOMEM, "%s over %s: out of memory", build->out->source,
				build->under->source);
	if (tti_xml_depth(build->out->root) > TTI_XML_DEPTH)
		return tti_fail(TUTTI_EINVAL, "%s over %s: elements are nested deeper than %d",
				build->out->source, build->under->source, TTI_XML_DEPTH);
	return tti_schema_check(build->out);
}

tutti_status tti_overlay(const struct tti_xml_doc *under, const struct tti_xml_doc *over,
			 struct tti_xml_doc **out)
{
	struct build build = { .under = under };
	tutti_status st = tti_xml_copy(over, &build.out);

	if (st == TUTTI_OK)
		st = lay(&build);
	tti_overlay_pairs_release(&build.pairs);
	tti_vec_release(&build.devs);
	if (st == TUTTI_OK)
		*out = build.out;
	else
		tti_xml_free(build.out);
	return st;
}
