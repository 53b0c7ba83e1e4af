/* SPDX-License-Identifier: BSD-3-Clause */
/* Topologies: the input is a file; the mutator changes it as a tree of the elements and
 * attributes of the format, at times as bytes. What is read comes back the same from
 * writing and from an overlay, what passes the schema makes a graph that holds its
 * invariants, lint goes over it, and plans of one node and of two hold theirs; what is refused is
 * refused with its place. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "expect.h"
#include "insight/lint/lint.h"
#include "insight/plan/job.h"
#include "insight/topo/paths_check.h"
#include "plan/plan.h"
#include "support/xml_edit.h"
#include "topo/paths/routes.h"
#include "topo/tree/overlay.h"
#include "topo/tree/schema.h"
#include "util/error.h"
#include "util/hash.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned int seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *data1, size_t size1, const uint8_t *data2,
				 size_t size2, uint8_t *out, size_t max, unsigned int seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max);

/* -- The mutator ------------------------------------------------------------------ */

enum values {
	BUSID,
	NUMBER,
	HEX,
	REAL,
	TEXT,
};

/* What each kind of value is drawn from; %u: a small number. */
static const char *const pools[][8] = {
	[BUSID] = { "0000:0%x:00.0", "0000:0%x:00.0", "0000:0%x:00.0", "0000:0%x:00.1",
		    "fffffff:ff:ff.0", "ffff:ff:0%x.0", "0000:00:00.0", "x" },
	[NUMBER] = { "%u", "%u", "%u", "0", "1", "-1", "2147483647", "" },
	[HEX] = { "0x060400", "0x030200", "0x020700", "0x068000", "0x%x", "0x120000",
		  "0xffffffffffffffff", "" },
	[REAL] = { "%u", "0.000000", "1.5", "1e6", "0.0000001", "nan", "-1", "" },
	[TEXT] = { "x86_64", "GenuineIntel", "16.0 GT/s PCIe", "32.0 GT/s PCIe", "Unknown",
		   "mlx5_%u", "gfx942", "ff,%08x" },
};

static const struct {
	const char *element, *parent, *attr;
	enum values values;
} grammar[] = {
	{ "cpu", "system", "numaid", NUMBER },
	{ "cpu", "system", "host_hash", HEX },
	{ "cpu", "system", "affinity", TEXT },
	{ "cpu", "system", "arch", TEXT },
	{ "cpu", "system", "vendor", TEXT },
	{ "cpu", "system", "familyid", NUMBER },
	{ "cpu", "system", "modelid", NUMBER },
	{ "cpu", "system", "tutti_package", NUMBER },
	{ "cpu", "system", "tutti_packages", NUMBER },
	{ "cpu", "system", "tutti_distances", NUMBER },
	{ "cpu", "system", "tutti_mem_gbps", REAL },
	{ "cpu", "system", "tutti_mem_ns", REAL },
	{ "pci", "cpu", "busid", BUSID },
	{ "pci", "pci", "busid", BUSID },
	{ "pci", "pci", "class", HEX },
	{ "pci", "pci", "vendor", HEX },
	{ "pci", "pci", "link_speed", TEXT },
	{ "pci", "pci", "link_width", NUMBER },
	{ "pcilink", "pci", "target", BUSID },
	{ "gpu", "pci", "dev", NUMBER },
	{ "gpu", "pci", "sm", NUMBER },
	{ "gpu", "pci", "rank", NUMBER },
	{ "gpu", "pci", "gcn", TEXT },
	{ "gpu", "pci", "gdr", NUMBER },
	{ "nvlink", "gpu", "target", BUSID },
	{ "nvlink", "gpu", "count", NUMBER },
	{ "nvlink", "gpu", "tclass", HEX },
	{ "xgmi", "gpu", "target", BUSID },
	{ "xgmi", "gpu", "count", NUMBER },
	{ "c2c", "gpu", "bw", REAL },
	{ "c2c", "gpu", "count", NUMBER },
	{ "nic", "pci", "x", NUMBER },
	{ "nic", "cpu", "x", NUMBER },
	{ "net", "nic", "name", TEXT },
	{ "net", "nic", "dev", NUMBER },
	{ "net", "nic", "speed", NUMBER },
	{ "net", "nic", "port", NUMBER },
	{ "net", "nic", "guid", HEX },
	{ "net", "nic", "latency", REAL },
	{ "net", "nic", "rail", NUMBER },
	{ "net", "nic", "gdr", NUMBER },
	{ "net", "nic", "net", NUMBER },
	{ "odd", "cpu", "odd", TEXT },
};

struct mutation {
	struct tti_xml_doc *doc;
	uint64_t state;
};

static size_t any(struct mutation *mutation, size_t below)
{
	mutation->state = tti_hash_mix(mutation->state + UINT64_C(0x9e3779b97f4a7c15));
	return mutation->state % below;
}

/* Of that name, or of any (NULL); NULL if there is none. */
static struct tti_xml *any_node(struct mutation *mutation, const struct tti_xml_doc *doc,
				const char *name)
{
	struct tti_xml *found = NULL;
	size_t n = 0;

	for (struct tti_xml *node = doc->root; node; node = tti_xml_walk(node))
		if ((!name || tti_xml_is(node, name)) && any(mutation, ++n) == 0)
			found = node;
	return found;
}

static void set_value(struct mutation *mutation, struct tti_xml *node, size_t row)
{
	const char *format = pools[grammar[row].values][any(mutation, 8)];
	const unsigned number = (unsigned)any(mutation, 16);

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	expect(tti_xml_setf(mutation->doc, node, grammar[row].attr, format, number));
#pragma GCC diagnostic pop
}

/* An element in a place where it belongs, with some of its attributes. */
static void grow(struct mutation *mutation)
{
	const size_t row = any(mutation, COUNT(grammar));
	struct tti_xml *parent = any_node(mutation, mutation->doc, grammar[row].parent), *node;

	if (!parent)
		return;
	node = tti_xml_add(mutation->doc, parent, grammar[row].element);
	expect(node);
	for (size_t i = 0; i < COUNT(grammar); i++)
		if (tti_xml_is(node, grammar[i].element) &&
		    (grammar[i].values == BUSID || any(mutation, 2)))
			set_value(mutation, node, i);
}

static void change_value(struct mutation *mutation)
{
	const size_t row = any(mutation, COUNT(grammar));
	struct tti_xml *node = any_node(mutation, mutation->doc, grammar[row].element);

	if (node)
		set_value(mutation, node, row);
}

static bool is_below(const struct tti_xml *node, const struct tti_xml *above)
{
	while (node && node != above)
		node = node->parent;
	return node;
}

/* To where it belongs, most of the time. */
static void move(struct mutation *mutation)
{
	struct tti_xml *node = any_node(mutation, mutation->doc, NULL), *to;

	if (!node->parent)
		return;
	to = any_node(mutation, mutation->doc, any(mutation, 8) ? node->parent->name : NULL);
	if (!is_below(to, node))
		xml_move(node, to);
}

static void cut(struct mutation *mutation)
{
	struct tti_xml *node = any_node(mutation, mutation->doc, NULL);

	if (node->nattrs && any(mutation, 2))
		xml_unset(node, node->attrs[any(mutation, node->nattrs)].name);
	else
		tti_xml_unlink(node);
}

static void copy(struct mutation *mutation, const struct tti_xml_doc *from)
{
	struct tti_xml *node = any_node(mutation, from, NULL), *to;

	to = any_node(mutation, mutation->doc, node->parent ? node->parent->name : NULL);
	if (to)
		expect(tti_xml_add_copy(mutation->doc, to, node));
}

/* 0: it does not fit. */
static size_t put(struct tti_xml_doc *doc, uint8_t *out, size_t max)
{
	struct tti_strbuf buf = { 0 };
	size_t len;

	tti_xml_write(doc, &buf);
	expect(!buf.failed);
	len = buf.len <= max ? buf.len : 0;
	memcpy(out, buf.text, len);
	tti_strbuf_release(&buf);
	tti_xml_free(doc);
	return len;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned int seed)
{
	struct mutation mutation = { .state = seed };
	size_t len;

	if (any(&mutation, 5) == 0 ||
	    tti_xml_read((const char *)data, size, "mutator", &mutation.doc) != TUTTI_OK)
		return LLVMFuzzerMutate(data, size, max);
	for (size_t n = 1 + any(&mutation, 4); n > 0; n--) {
		switch (any(&mutation, 8)) {
		case 0:
			move(&mutation);
			break;
		case 1:
			cut(&mutation);
			break;
		case 2:
			copy(&mutation, mutation.doc);
			break;
		case 3:
		case 4:
			change_value(&mutation);
			break;
		default:
			grow(&mutation);
		}
	}
	len = put(mutation.doc, data, max);
	return len ? len : LLVMFuzzerMutate(data, size, max);
}

/* A part of the second in the first. */
size_t LLVMFuzzerCustomCrossOver(const uint8_t *data1, size_t size1, const uint8_t *data2,
				 size_t size2, uint8_t *out, size_t max, unsigned int seed)
{
	struct mutation mutation = { .state = seed };
	struct tti_xml_doc *from;

	if (tti_xml_read((const char *)data1, size1, "mutator", &mutation.doc) != TUTTI_OK)
		return 0;
	if (tti_xml_read((const char *)data2, size2, "mutator", &from) != TUTTI_OK) {
		tti_xml_free(mutation.doc);
		return 0;
	}
	copy(&mutation, from);
	tti_xml_free(from);
	return put(mutation.doc, out, max);
}

/* -- What must hold --------------------------------------------------------------- */

static struct tti_xml_doc *machine;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static const char text[] =
		"<system version='1'><cpu host_hash='0xabc' numaid='-1' affinity='ff' vendor='a'>"
		"<pci busid='0000:01:00.0' class='0x030200'><gpu dev='0' sm='90'>"
		"<nvlink target='0000:02:00.0' count='4'/><c2c bw='1'/></gpu></pci>"
		"<pci busid='0000:04:00.0' class='0x060400'>"
		"<pci busid='0000:02:00.0'><gpu dev='1'/></pci>"
		"<pci busid='0000:03:00.0' class='0x020700'><nic>"
		"<net name='mlx5_0' dev='0' port='1'/><net name='mlx5_1' dev='1'/></nic></pci>"
		"<pcilink target='0000:05:00.0'/></pci><pci busid='0000:05:00.0'/>"
		"<nic><net name='eth0' dev='2'/></nic><odd a='b'/></cpu></system>";

	(void)argc;
	(void)argv;
	setenv("TUTTI_DEBUG", "NONE", 1);
	expect(tti_xml_read(text, sizeof(text) - 1, "this machine", &machine) == TUTTI_OK);
	return 0;
}

/* "x.xml:12:3: reason" or, of what was not in the file, "x.xml: <pci>: reason". */
static void expect_place(tutti_status st)
{
	const char *text = tti_error_text();

	expect(st == TUTTI_EINVAL);
	expect(strncmp(text, "x.xml:", 6) == 0 || strncmp(text, "x.xml over ", 11) == 0 ||
	       strncmp(text, "this machine", 12) == 0);
}

static char *text_of(const struct tti_xml_doc *doc)
{
	struct tti_strbuf buf = { 0 };

	tti_xml_write(doc, &buf);
	expect(!buf.failed);
	return tti_strbuf_take(&buf);
}

static void expect_round_trip(const struct tti_xml_doc *doc)
{
	char *first = text_of(doc), *second;
	struct tti_xml_doc *again;

	expect(tti_xml_read(first, strlen(first), "again", &again) == TUTTI_OK);
	expect(xml_same(doc->root, again->root));
	second = text_of(again);
	expect(strcmp(first, second) == 0);
	free(first);
	free(second);
	tti_xml_free(again);
}

static void try_overlay(const struct tti_xml_doc *under, const struct tti_xml_doc *over)
{
	struct tti_xml_doc *out;
	const tutti_status st = tti_overlay(under, over, &out);

	if (st != TUTTI_OK) {
		expect(over != under);
		expect_place(st);
		return;
	}
	expect(tti_schema_check(out) == TUTTI_OK);
	expect(over != under || xml_same(out->root, over->root));
	expect_round_trip(out);
	tti_xml_free(out);
}

/* Both checkers are slow on purpose; a graph may have very many nodes. */
#define CHECKED_NODES 300
/* Searches that end by themselves in milliseconds. */
#define PLANNED_RANKS 8

static void try_lint(const struct tti_xml_doc *doc, const struct tti_routes *routes)
{
	const struct tti_paths *paths = routes->paths;
	struct tti_lint *lint;

	expect(tti_lint_run(doc, paths->graph, paths, routes, &lint) == TUTTI_OK);
	for (size_t i = 0; i < lint->n; i++)
		expect(lint->at[i].rule && lint->at[i].what && lint->at[i].place);
	tti_lint_free(lint);
}

/* A plan is refused with a reason, or holds what is promised of it. */
static void try_plan(const struct tti_routes *routes, uint32_t nnodes)
{
	const struct tti_plan_config config = { .budget_ms = 20 };
	struct tti_plan_job *job;
	struct tti_plan *plan;

	if (tti_plan_job_of(&routes, 1, nnodes, 0, &job) != TUTTI_OK) {
		expect(*tti_error_text());
		return;
	}
	if (job->nranks > nnodes * PLANNED_RANKS) {
		tti_plan_job_free(job);
		return;
	}
	if (tti_plan_make(job, &config, &plan) == TUTTI_OK) {
		expect(tti_plan_check(plan) == TUTTI_OK);
		for (uint32_t i = 0; i < plan->npatterns; i++)
			expect(plan->patterns[i].total_gbps <=
			       plan->patterns[i].bound_gbps * (1 + 1e-6));
		tti_plan_free(plan);
	} else {
		expect(*tti_error_text());
	}
	tti_plan_job_free(job);
}

static void try_paths(const struct tti_xml_doc *doc, const struct tti_graph *graph)
{
	struct tti_routes_config config = tti_routes_config_from_params();
	struct tti_routes *routes;
	struct tti_paths *paths;

	expect(tti_paths_build(graph, &paths) == TUTTI_OK);
	expect(tti_paths_check(paths) == TUTTI_OK);
	config.pxn_disable = graph->nnodes % 2;
	expect(tti_routes_build(paths, &config, &routes) == TUTTI_OK);
	try_lint(doc, routes);
	try_plan(routes, 1);
	try_plan(routes, 2);
	tti_routes_free(routes);
	tti_paths_free(paths);
}

static void try_graph(const struct tti_xml_doc *doc)
{
	struct tti_graph *graph;

	for (int model = TTI_MODEL_TUTTI; model <= TTI_MODEL_NCCL; model++) {
		if (tti_graph_build(doc, (enum tti_model)model, &graph) != TUTTI_OK)
			return;
		expect(tti_graph_check(graph) == TUTTI_OK);
		if (graph->nnodes <= CHECKED_NODES)
			try_paths(doc, graph);
		tti_graph_free(graph);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tti_xml_doc *doc;
	tutti_status st = tti_xml_read((const char *)data, size, "x.xml", &doc);

	if (st != TUTTI_OK) {
		expect_place(st);
		return 0;
	}
	expect_round_trip(doc);
	st = tti_schema_check(doc);
	if (st == TUTTI_OK) {
		try_overlay(doc, doc);
		try_overlay(machine, doc);
		try_overlay(doc, machine);
		try_graph(doc);
	} else {
		expect_place(st);
	}
	tti_xml_free(doc);
	return 0;
}
