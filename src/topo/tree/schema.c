/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/tree/schema.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "util/error.h"
#include "util/hash.h"
#include "util/vec.h"

/* -- The format --------------------------------------------------------------------- */

static const struct {
	const char *name, *parents[2];
} elements[] = {
	{ "system", { NULL } },      { "cpu", { "system" } }, { "pci", { "cpu", "pci" } },
	{ "nic", { "cpu", "pci" } }, { "gpu", { "pci" } },    { "pcilink", { "pci" } },
	{ "nvlink", { "gpu" } },     { "xgmi", { "gpu" } },   { "c2c", { "gpu" } },
	{ "net", { "nic" } },
};

enum kind {
	INT,   /* min to max                                      */
	HEX,   /* 0 to max, decimal or with 0x                    */
	REAL,  /* 0 to max                                        */
	BUSID, /* must be there                                   */
	MASK,  /* "ffff,00000000": words of 32 bits, highest first */
	LIST,  /* "10,21": numbers                                */
};

/* An attribute that is not listed is text or unknown, and may be anything. For example,
 * link_speed is "32.0 GT/s PCIe", but also "Unknown". */
static const struct rule {
	const char *element, *attr;
	enum kind kind;
	int64_t min;
	uint64_t max;
} rules[] = {
	{ "cpu", "numaid", INT, -1, INT32_MAX },
	{ "cpu", "affinity", MASK, 0, 0 },
	{ "cpu", "familyid", INT, -1, INT32_MAX },
	{ "cpu", "modelid", INT, -1, INT32_MAX },
	{ "cpu", "tutti_package", INT, -1, INT32_MAX },
	{ "cpu", "tutti_packages", LIST, 0, 0 },
	{ "cpu", "tutti_distances", LIST, 0, 0 },
	{ "cpu", "tutti_mem_mib", INT, 0, INT64_MAX },
	{ "cpu", "tutti_mem_gbps", REAL, 0, 1000000 },
	{ "cpu", "tutti_mem_ns", REAL, 0, 1000000000 },
	{ "pci", "busid", BUSID, 0, 0 },
	{ "pci", "class", HEX, 0, 0xffffff },
	{ "pci", "vendor", HEX, 0, 0xffff },
	{ "pci", "device", HEX, 0, 0xffff },
	{ "pci", "subsystem_vendor", HEX, 0, 0xffff },
	{ "pci", "subsystem_device", HEX, 0, 0xffff },
	{ "pci", "link_width", INT, 0, UINT16_MAX },
	{ "pci", "tutti_number", INT, -1, INT32_MAX },
	{ "pcilink", "target", BUSID, 0, 0 },
	{ "gpu", "dev", INT, -1, INT32_MAX },
	{ "gpu", "sm", INT, 0, UINT16_MAX },
	{ "gpu", "arch", INT, -1, INT32_MAX },
	{ "gpu", "rank", INT, -1, INT32_MAX },
	{ "gpu", "tutti_number", INT, -1, INT32_MAX },
	{ "gpu", "mlopart", INT, -1, INT32_MAX },
	{ "gpu", "gdr", INT, 0, UINT8_MAX },
	{ "nvlink", "target", BUSID, 0, 0 },
	{ "nvlink", "count", INT, 0, UINT16_MAX },
	{ "nvlink", "tclass", HEX, 0, 0xffffff },
	{ "xgmi", "target", BUSID, 0, 0 },
	{ "xgmi", "count", INT, 0, UINT16_MAX },
	{ "xgmi", "tclass", HEX, 0, 0xffffff },
	{ "c2c", "bw", REAL, 0, 1000000000 },
	{ "c2c", "count", INT, 0, UINT16_MAX },
	{ "net", "dev", INT, -1, INT32_MAX },
	{ "net", "latency", REAL, 0, 1000000000 },
	{ "net", "speed", INT, -1, INT32_MAX },
	{ "net", "port", INT, 0, INT32_MAX },
	{ "net", "rail", INT, -1, INT32_MAX },
	{ "net", "plane", INT, -1, INT32_MAX },
	{ "net", "guid", HEX, 0, UINT64_MAX },
	{ "net", "maxconn", INT, 0, INT32_MAX },
	{ "net", "gdr", INT, 0, UINT8_MAX },
	{ "net", "net", INT, 0, UINT8_MAX },
	{ "net", "gin", INT, 0, UINT8_MAX },
	{ "net", "rma", INT, 0, UINT8_MAX },
	{ "net", "coll", INT, 0, UINT8_MAX },
	{ "net", "keep", INT, 0, UINT8_MAX },
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

bool tti_schema_knows(const char *element)
{
	for (size_t i = 0; i < COUNT(elements); i++)
		if (strcmp(elements[i].name, element) == 0)
			return true;
	return false;
}

/* -- One element --------------------------------------------------------------------- */

static tutti_status check_root(const struct tti_xml_doc *doc)
{
	const struct tti_xml *root = doc->root;
	const char *stated = tti_xml_get(root, "version");
	int64_t version;

	if (tti_xml_is(root, "graphs"))
		return tti_xml_fail(
			doc, root,
			"a graph file (the channels of NCCL_GRAPH_FILE), "
			"not a topology, which begins with <system>: `tutti plan --plan` "
			"takes it");
	if (!tti_xml_is(root, "system"))
		return tti_xml_fail(doc, root, "a topology begins with <system>");
	TTI_TRY(tti_xml_int(doc, root, "version", INT64_MIN, INT64_MAX, 0, &version));
	if (version != 1 && version != 2)
		return tti_xml_fail(doc, root,
				    "version=\"%.64s\" is not one that is known: \"1\" is NCCL's, "
				    "\"2\" AMD's",
				    stated ? stated : "");
	return TUTTI_OK;
}

static tutti_status check_place(const struct tti_xml_doc *doc, const struct tti_xml *node)
{
	for (size_t i = 0; i < COUNT(elements); i++) {
		const char *const *parents = elements[i].parents;

		if (!tti_xml_is(node, elements[i].name))
			continue;
		if (!parents[0])
			return tti_xml_fail(doc, node, "may only be the root");
		if (tti_xml_is(node->parent, parents[0]) ||
		    (parents[1] && tti_xml_is(node->parent, parents[1])))
			return TUTTI_OK;
		return tti_xml_fail(doc, node, "stands in <%s>, but belongs in <%s>%s%s%s",
				    node->parent->name, parents[0], parents[1] ? " or <" : "",
				    parents[1] ? parents[1] : "", parents[1] ? ">" : "");
	}
	return TUTTI_OK;
}

static tutti_status check_busid(const struct tti_xml_doc *doc, const struct tti_xml *node,
				const char *attr)
{
	const char *text = tti_xml_get(node, attr);
	uint64_t busid;

	if (!text)
		return tti_xml_fail(doc, node, "has no %s: give it the bus id, as 0000:3b:00.0 is",
				    attr);
	if (!tti_busid_parse(text, &busid))
		return tti_xml_fail(doc, node, "%s=\"%.64s\" is not a bus id, as 0000:3b:00.0 is",
				    attr, text);
	return TUTTI_OK;
}

/* Words of at most `most` characters of `digits`, with commas between. */
static bool is_list(const char *text, const char *digits, size_t most)
{
	while (*text) {
		const size_t len = strspn(text, digits);

		if (len == 0 || len > most)
			return false;
		text += len;
		if (*text == ',' && text[1] == '\0')
			return false;
		text += *text == ',';
		if (!strchr(digits, *text))
			return false;
	}
	return true;
}

static tutti_status check_list(const struct tti_xml_doc *doc, const struct tti_xml *node,
			       const char *attr, bool mask)
{
	const char *text = tti_xml_get(node, attr);

	if (!text || is_list(text, mask ? "0123456789abcdefABCDEF" : "0123456789", mask ? 8 : 9))
		return TUTTI_OK;
	return tti_xml_fail(doc, node,
			    mask ? "%s=\"%.64s\" is not a mask, as 000000ff,ffffffff is"
				 : "%s=\"%.64s\" is not a list of numbers, as 10,21 is",
			    attr, text);
}

static tutti_status check_attr(const struct tti_xml_doc *doc, const struct tti_xml *node,
			       const struct rule *rule)
{
	uint64_t hex;
	int64_t number;
	double real;

	switch (rule->kind) {
	case INT:
		return tti_xml_int(doc, node, rule->attr, rule->min, (int64_t)rule->max, 0,
				   &number);
	case HEX:
		return tti_xml_hex(doc, node, rule->attr, rule->max, 0, &hex);
	case REAL:
		return tti_xml_real(doc, node, rule->attr, (double)rule->max, 0, &real);
	case BUSID:
		return check_busid(doc, node, rule->attr);
	case MASK:
	case LIST:
		return check_list(doc, node, rule->attr, rule->kind == MASK);
	}
	return TUTTI_OK;
}

static tutti_status check_net(const struct tti_xml_doc *doc, const struct tti_xml *net)
{
	const char *name = tti_xml_get(net, "name");
	int64_t dev;

	TTI_TRY(tti_xml_int(doc, net, "dev", -1, INT32_MAX, -1, &dev));
	if (dev < 0 && (!name || !*name))
		return tti_xml_fail(doc, net, "has neither name nor dev: give it one of them");
	return TUTTI_OK;
}

static tutti_status check_element(const struct tti_xml_doc *doc, const struct tti_xml *node)
{
	if (node->parent)
		TTI_TRY(check_place(doc, node));
	for (size_t i = 0; i < COUNT(rules); i++)
		if (tti_xml_is(node, rules[i].element))
			TTI_TRY(check_attr(doc, node, &rules[i]));
	return tti_xml_is(node, "net") ? check_net(doc, node) : TUTTI_OK;
}

/* -- Identities ---------------------------------------------------------------------- */

enum thing {
	CPU,
	PCI,
	LINK, /* a <pcilink>; its key is the target */
};

struct ident {
	enum thing thing;
	uint64_t host, key;
	const struct tti_xml *node;
	size_t at; /* in the document */
};

struct idents {
	struct ident *at;
	size_t n, room;
};

static int compare(const void *a, const void *b)
{
	const struct ident *x = a, *y = b;

	if (x->thing != y->thing)
		return x->thing < y->thing ? -1 : 1;
	if (x->host != y->host)
		return x->host < y->host ? -1 : 1;
	return (x->key > y->key) - (x->key < y->key);
}

static int compare_in_order(const void *a, const void *b)
{
	const struct ident *x = a, *y = b;
	const int order = compare(x, y);

	return order ? order : x->at < y->at ? -1 : x->at > y->at;
}

uint64_t tti_schema_host(const struct tti_xml *cpu)
{
	const char *text = tti_xml_get(cpu, "host_hash");
	uint64_t number;

	if (!text || !*text)
		return 0;
	return tti_xml_digits(text, &number) ? number : tti_hash_bytes(text, strlen(text));
}

bool tti_schema_has_several_hosts(const struct tti_xml_doc *doc)
{
	const struct tti_xml *first = tti_xml_find(doc->root, "cpu", NULL, NULL);
	const uint64_t hash = first ? tti_schema_host(first) : 0;

	for (const struct tti_xml *cpu = first; cpu; cpu = tti_xml_next(cpu, "cpu"))
		if (tti_schema_host(cpu) != hash)
			return true;
	return false;
}

/* false: it has no identity. *host is that of the last <cpu>. */
static bool identify(const struct tti_xml_doc *doc, const struct tti_xml *node, uint64_t *host,
		     struct ident *out)
{
	int64_t numaid;

	if (tti_xml_is(node, "cpu")) {
		*host = tti_schema_host(node);
		if (tti_xml_int(doc, node, "numaid", -1, INT32_MAX, -1, &numaid) != TUTTI_OK)
			return false;
		out->thing = CPU;
		out->key = (uint64_t)numaid;
	} else if (tti_xml_is(node, "pci")) {
		out->thing = PCI;
		if (!tti_busid_parse(tti_xml_get(node, "busid"), &out->key))
			return false;
	} else if (tti_xml_is(node, "pcilink")) {
		out->thing = LINK;
		if (!tti_busid_parse(tti_xml_get(node, "target"), &out->key))
			return false;
	} else {
		return false;
	}
	out->host = *host;
	out->node = node;
	return true;
}

static bool is_below(const struct tti_xml *node, const struct tti_xml *above)
{
	while (node && node != above)
		node = node->parent;
	return node;
}

/* Refuse a <cpu> with the host and number of one before it, the first such in the document,
 * since their devices could not be told apart. All other elements may be there twice. */
static tutti_status check_unique(const struct tti_xml_doc *doc, const struct idents *idents)
{
	const struct ident *again = NULL, *first = NULL;

	for (size_t i = 1; i < idents->n && idents->at[i].thing == CPU; i++) {
		const struct ident *a = &idents->at[i - 1], *b = &idents->at[i];

		if (compare(a, b) == 0 && (!again || b->at < again->at)) {
			first = a;
			again = b;
		}
	}
	if (!again)
		return TUTTI_OK;
	return tti_xml_fail(doc, again->node,
			    "the same numaid as the <cpu> of line %" PRIu32 ": give it a number of "
			    "its own, or, if it is of another host, a host_hash of its own",
			    first->node->line);
}

/* The element of that identity, NULL: none. */
static const struct tti_xml *find(const struct idents *idents, const struct ident *key)
{
	size_t low = 0, high = idents->n;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (compare(&idents->at[middle], key) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low < idents->n && compare(&idents->at[low], key) == 0 ? idents->at[low].node : NULL;
}

/* A switch is linked to another switch, never to a node above or below it. */
static tutti_status check_links(const struct tti_xml_doc *doc, const struct idents *idents)
{
	for (size_t i = idents->n; i > 0 && idents->at[i - 1].thing == LINK; i--) {
		const struct ident *link = &idents->at[i - 1];
		const struct ident key = { .thing = PCI, .host = link->host, .key = link->key };
		const struct tti_xml *target = find(idents, &key);

		if (target &&
		    (is_below(link->node, target) || is_below(target, link->node->parent)))
			return tti_xml_fail(doc, link->node,
					    "a cycle: its target, the <pci> of "
					    "line %" PRIu32 ", is above or below it in the tree",
					    target->line);
	}
	return TUTTI_OK;
}

struct tti_xml *tti_schema_walk(const struct tti_xml *node)
{
	struct tti_xml *next =
		tti_schema_knows(node->name) ? tti_xml_find(node, NULL, NULL, NULL) : NULL;

	while (!next && node->parent) {
		next = tti_xml_next(node, NULL);
		node = node->parent;
	}
	return next;
}

static tutti_status check_all(const struct tti_xml_doc *doc, struct idents *idents)
{
	uint64_t host = 0;

	for (const struct tti_xml *node = doc->root; node; node = tti_schema_walk(node)) {
		struct ident ident = { .at = idents->n };

		TTI_TRY(check_element(doc, node));
		if (identify(doc, node, &host, &ident) && !tti_vec_push(idents, ident))
			return tti_fail(TUTTI_ENOMEM, "checking %s: out of memory", doc->source);
	}
	if (idents->n)
		qsort(idents->at, idents->n, sizeof(*idents->at), compare_in_order);
	TTI_TRY(check_unique(doc, idents));
	return check_links(doc, idents);
}

tutti_status tti_schema_check(const struct tti_xml_doc *doc)
{
	struct idents idents = { 0 };
	tutti_status st = check_root(doc);

	if (st == TUTTI_OK)
		st = check_all(doc, &idents);
	tti_vec_release(&idents);
	return st;
}
