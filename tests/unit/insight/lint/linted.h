/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_TOPO_LINTED_H
#define TESTS_TOPO_LINTED_H

/* What lint says of a document, and a machine without faults to change. cmocka's header
 * comes before this one. */

#include "insight/lint/lint.h"
#include "insight/lint/lint_rules.h"
#include "unit/topo/graphs.h"

/* A document, all that is built from it, and what lint says. */
struct linted {
	struct tti_xml_doc *doc;
	struct tti_graph *graph;
	struct tti_paths *paths;
	struct tti_routes *routes;
	struct tti_lint *lint;
};

static inline struct tti_routes_config defaults(void)
{
	return (struct tti_routes_config){
		.p2p_level = TTI_PATH_PXB,
		.gdr_level = TTI_PATH_PXB,
		.gdr_read = -1,
	};
}

static inline struct linted lint_doc(struct tti_xml_doc *doc)
{
	const struct tti_routes_config config = defaults();
	struct linted linted = { .doc = doc };

	if (tti_graph_build(doc, TTI_MODEL_TUTTI, &linted.graph) != TUTTI_OK ||
	    tti_paths_build(linted.graph, &linted.paths) != TUTTI_OK ||
	    tti_routes_build(linted.paths, &config, &linted.routes) != TUTTI_OK ||
	    tti_lint_run(doc, linted.graph, linted.paths, linted.routes, &linted.lint) != TUTTI_OK)
		fail_msg("%s", tti_error_text());
	return linted;
}

static inline void release(struct linted *linted)
{
	tti_lint_free(linted->lint);
	tti_routes_free(linted->routes);
	tti_paths_free(linted->paths);
	tti_graph_free(linted->graph);
	tti_xml_free(linted->doc);
}

static inline const struct tti_finding *find(const struct linted *linted, const char *rule)
{
	for (size_t i = 0; i < linted->lint->n; i++)
		if (strcmp(linted->lint->at[i].rule, rule) == 0)
			return &linted->lint->at[i];
	return NULL;
}

/* -- A machine without faults, and one fault each -------------------------------------------- */

#define FAST  "link_speed='16.0 GT/s PCIe' link_width='16'"
#define GPU_A "<pci busid='0000:11:00.0' vendor='0x10de' device='0x20b0' " FAST ">"
#define GPU_B "<pci busid='0000:21:00.0' vendor='0x10de' device='0x20b0' " FAST ">"
#define NIC_A "<pci busid='0000:12:00.0' vendor='0x15b3' device='0x101b' " FAST ">"
#define NIC_B "<pci busid='0000:22:00.0' vendor='0x15b3' device='0x101b' " FAST ">"
#define GPU_0 "<gpu dev='0' rank='0' sm='80' gdr='1'>"
#define GPU_1 "<gpu dev='1' rank='1' sm='80' gdr='1'>"
#define LINK  "<nvlink target='0000:21:00.0' count='4'/>"
#define BACK  "<nvlink target='0000:11:00.0' count='4'/>"
#define NET_A "<net name='a' dev='0' speed='200000' guid='0x1' port='1' gdr='1'/>"
#define NET_B "<net name='b' dev='1' speed='200000' guid='0x2' port='1' gdr='1'/>"
#define CPU_0 "<cpu numaid='0' affinity='0f' arch='x86_64' vendor='AuthenticAMD'>"
#define CPU_1 "<cpu numaid='1' affinity='f0' arch='x86_64' vendor='AuthenticAMD'>"
#define TOP_A "<pci busid='0000:10:00.0' class='0x060400' " FAST ">"
#define TOP_B "<pci busid='0000:20:00.0' class='0x060400' " FAST ">"

#define NARROW_TOP                                                               \
	"<pci busid='0000:10:00.0' class='0x060400' link_speed='8.0 GT/s PCIe' " \
	"link_width='8'>"

static const char *const sound = CPU_0 TOP_A GPU_A GPU_0 LINK
	"</gpu></pci>" NIC_A "<nic>" NET_A "</nic></pci></pci></cpu>" CPU_1 TOP_B GPU_B GPU_1 BACK
	"</gpu></pci>" NIC_B "<nic>" NET_B "</nic></pci></pci></cpu>";

/* `sound` with every `from` replaced by `to`. */
static inline struct tti_xml_doc *changed(const char *from, const char *to, const char *from2,
					  const char *to2)
{
	struct tti_strbuf text = { 0 };
	struct tti_xml_doc *doc;
	const char *at = sound;
	int changes = 0;

	while (*at) {
		if (strncmp(at, from, strlen(from)) == 0) {
			tti_strbuf_add(&text, to);
			at += strlen(from);
			changes++;
		} else if (from2 && strncmp(at, from2, strlen(from2)) == 0) {
			tti_strbuf_add(&text, to2);
			at += strlen(from2);
			changes++;
		} else {
			tti_strbuf_addf(&text, "%c", *at++);
		}
	}
	if (changes < (from2 ? 2 : 1))
		fail_msg("%s is not in the document", from);
	doc = doc_of_text(text.text);
	tti_strbuf_release(&text);
	return doc;
}

#endif
