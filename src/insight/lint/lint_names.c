/* SPDX-License-Identifier: BSD-3-Clause */
#include "insight/lint/lint.h"
#include "insight/lint/lint_rules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/tree/schema.h"
#include "util/distance.h"

/* Elements and the attributes that somebody reads: NCCL, RCCL, or we. */
static const struct {
	const char *element, *attrs;
} known[] = {
	{ "system", "version tutti_gpus" },
	{ "cpu", "host_hash numaid affinity arch vendor familyid modelid tutti_package "
		 "tutti_packages tutti_distances tutti_mem_mib tutti_mem_gbps tutti_mem_ns" },
	{ "pci",
	  "busid class vendor device subsystem_vendor subsystem_device link_speed link_width "
	  "tutti_path tutti_link_now tutti_vf_of tutti_number" },
	{ "pcilink", "target" },
	{ "gpu",
	  "dev sm gcn arch mlopart rank gdr tutti_gdr_why tutti_fabric tutti_no_p2p tutti_mig "
	  "tutti_uuid tutti_serial tutti_number" },
	{ "nvlink", "target count tclass" },
	{ "xgmi", "target count tclass" },
	{ "c2c", "bw count" },
	{ "nic", "" },
	{ "net",
	  "name dev latency speed port rail plane guid maxconn gdr net gin rma coll "
	  "tutti_gdr_why tutti_netdev tutti_master tutti_link_layer tutti_subnet tutti_state "
	  "tutti_switch tutti_vf_of tutti_mac" },
};

#define ANYWHERE "keep tutti_host"
#define COUNT    (sizeof(known) / sizeof(known[0]))

struct match {
	bool exact;
	int distance;
	const char *word;
	size_t len;
};

/* Better than `match` so far? Of short words one letter may be wrong, of others two. */
static void try_word(struct match *match, const char *name, const char *word, size_t len)
{
	const size_t name_len = strlen(name);
	const size_t differ = name_len > len ? name_len - len : len - name_len;
	const size_t allowed = len < 3 ? 0 : len < 5 ? 1 : 2;
	int far;

	match->exact |= differ == 0 && memcmp(name, word, len) == 0;
	/* Words are as far from each other as their lengths, at least. */
	if (match->exact || allowed == 0 || differ > allowed)
		return;
	far = tti_distance(name, name_len, word, len);
	if (far <= (int)allowed && (!match->word || far < match->distance)) {
		match->word = word;
		match->len = len;
		match->distance = far;
	}
}

static void try_words(struct match *match, const char *name, const char *words)
{
	while (*words) {
		const size_t len = strcspn(words, " ");

		try_word(match, name, words, len);
		words += len;
		words += strspn(words, " ");
	}
}

static struct match match_attr(const char *element, const char *attr)
{
	struct match match = { 0 };

	for (size_t i = 0; i < COUNT; i++)
		if (strcmp(known[i].element, element) == 0)
			try_words(&match, attr, known[i].attrs);
	try_words(&match, attr, ANYWHERE);
	return match;
}

static struct match match_element(const char *element)
{
	struct match match = { 0 };

	for (size_t i = 0; i < COUNT; i++)
		try_word(&match, element, known[i].element, strlen(known[i].element));
	return match;
}

/* -- All unknown names, each told once ------------------------------------------------------- */

struct unknown {
	const struct tti_xml *xml;
	const char *attr; /* "": the element itself */
	struct match match;
	size_t at;
};

struct unknowns {
	struct unknown *at;
	size_t n, room;
};

static int by_name(const void *left, const void *right)
{
	const struct unknown *a = left, *b = right;
	int order = strcmp(a->xml->name, b->xml->name);

	if (!order)
		order = strcmp(a->attr, b->attr);
	return order ? order : (a->at > b->at) - (a->at < b->at);
}

static bool same_name(const struct unknown *a, const struct unknown *b)
{
	return strcmp(a->xml->name, b->xml->name) == 0 && strcmp(a->attr, b->attr) == 0;
}

static bool note_unknown(struct unknowns *unknowns, const struct tti_xml *xml, const char *attr,
			 struct match match, bool typo)
{
	const struct unknown unknown = { xml, attr, match, unknowns->n };

	return match.exact || typo != (match.word != NULL) || tti_vec_push(unknowns, unknown);
}

static bool collect_one(struct unknowns *unknowns, const struct tti_xml *xml, bool typo)
{
	bool good = true;

	if (!tti_schema_knows(xml->name))
		return note_unknown(unknowns, xml, "", match_element(xml->name), typo);
	for (uint32_t i = 0; good && i < xml->nattrs; i++) {
		const char *attr = xml->attrs[i].name;

		good = note_unknown(unknowns, xml, attr, match_attr(xml->name, attr), typo);
	}
	return good;
}

/* The content of an unknown element is not looked at. */
static bool collect(struct unknowns *unknowns, const struct tti_xml *root, bool typo)
{
	const struct tti_xml *xml = root, *unknown = NULL;

	for (; xml; xml = tti_xml_walk(xml)) {
		const struct tti_xml *above = xml;

		while (unknown && above && above != unknown)
			above = above->parent;
		if (unknown && above)
			continue;
		unknown = tti_schema_knows(xml->name) ? NULL : xml;
		if (!collect_one(unknowns, xml, typo))
			return false;
	}
	return true;
}

static void tell(struct tti_linter *linter, const struct unknown *unknown, size_t times)
{
	const char *kind = *unknown->attr ? "attribute" : "element";
	const char *name = *unknown->attr ? unknown->attr : unknown->xml->name;
	struct tti_finding finding = { .consequence = "its value does not count" };
	char again[48] = "";

	if (times > 1)
		snprintf(again, sizeof(again), ", here and at %zu more places", times - 1);
	if (unknown->match.word)
		finding.what =
			tti_lint_say(linter, "the %s \"%s\" is not known: \"%.*s\"?%s", kind, name,
				     (int)unknown->match.len, unknown->match.word, again);
	else
		finding.what =
			tti_lint_say(linter, "the %s \"%s\" is not known%s", kind, name, again);
	if (!*unknown->attr)
		finding.consequence = "what stands in it does not count";
	tti_lint_add_at(linter, unknown->xml, &finding);
}

static void find_unknown(struct tti_linter *linter, bool typo)
{
	struct unknowns unknowns = { 0 };
	size_t first = 0;

	linter->failed |= !collect(&unknowns, linter->doc->root, typo);
	if (unknowns.n)
		qsort(unknowns.at, unknowns.n, sizeof(*unknowns.at), by_name);
	for (size_t i = 1; i <= unknowns.n; i++) {
		if (i < unknowns.n && same_name(&unknowns.at[i], &unknowns.at[first]))
			continue;
		tell(linter, &unknowns.at[first], i - first);
		first = i;
	}
	tti_vec_release(&unknowns);
}

void tti_lint_name_typo(struct tti_linter *linter)
{
	find_unknown(linter, true);
}

void tti_lint_name_unknown(struct tti_linter *linter)
{
	find_unknown(linter, false);
}
