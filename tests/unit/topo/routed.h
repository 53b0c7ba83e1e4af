/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_TOPO_ROUTED_H
#define TESTS_TOPO_ROUTED_H

/* Small machines and what their routes shall be. cmocka's header comes before this one. */

#include "insight/print/print_words.h"
#include "topo/paths/routes.h"
#include "unit/topo/graphs.h"

static const struct tti_routes_config usual = { .p2p_level = TTI_PATH_PXB,
						.gdr_level = TTI_PATH_PXB,
						.gdr_read = -1 };

struct machine {
	struct tti_graph *graph;
	struct tti_paths *paths;
	struct tti_routes *routes;
};

static inline struct machine machine_of_doc(struct tti_xml_doc *doc,
					    struct tti_routes_config config)
{
	struct machine machine = { .graph = graph_of(doc, TTI_MODEL_TUTTI) };

	if (tti_paths_build(machine.graph, &machine.paths) != TUTTI_OK ||
	    tti_routes_build(machine.paths, &config, &machine.routes) != TUTTI_OK)
		fail_msg("%s", tti_error_text());
	return machine;
}

static inline struct machine machine_of(const char *inside, struct tti_routes_config config)
{
	return machine_of_doc(doc_of_text(inside), config);
}

static inline void machine_end(struct machine *machine)
{
	tti_routes_free(machine->routes);
	tti_paths_free(machine->paths);
	tti_graph_free(machine->graph);
}

static inline uint32_t endpoint(const struct machine *machine, const char *name)
{
	const struct tti_paths *paths = machine->paths;

	for (uint32_t i = 0; i < paths->n; i++)
		if (strcmp(machine->graph->nodes[paths->endpoints[i]].name, name) == 0)
			return paths->endpoints[i];
	fail_msg("no endpoint %s", name);
	return 0;
}

static inline const struct tti_route *route_of(const struct machine *machine, const char *from,
					       const char *to)
{
	return tti_routes_get(machine->routes, endpoint(machine, from), endpoint(machine, to));
}

/* gbps 0: whatever; via NULL: none. */
static inline void expect(const struct machine *machine, const char *from, const char *to,
			  enum tti_path_type type, enum tti_route_why why, const char *via,
			  double gbps)
{
	const struct tti_route *route = route_of(machine, from, to);
	const char *name =
		route->via == TTI_NODE_NONE ? "none" : machine->graph->nodes[route->via].name;

	if (route->type != type || route->why != why || strcmp(name, via ? via : "none") != 0 ||
	    (gbps > 0 && ((double)route->bw_gbps < gbps * 0.999999 ||
			  (double)route->bw_gbps > gbps * 1.000001)))
		fail_msg("%s to %s: %s through %s, %g GB/s, %s; not %s through %s, %g GB/s, %s",
			 from, to, tti_path_type_name(route->type), name, (double)route->bw_gbps,
			 tti_print_route_why(route->why), tti_path_type_name(type),
			 via ? via : "none", gbps, tti_print_route_why(why));
	/* Through host memory is neither, and nothing else is through it. */
	if (via && strncmp(via, "HOST", 4) == 0)
		assert_false(route->p2p || route->gdr);
}

#define CPU(id, vendor, family, model)                                                  \
	"<cpu numaid=\"" #id "\" arch=\"x86_64\" affinity=\"f\" vendor=\"" vendor "\" " \
	"familyid=\"" #family "\" modelid=\"" #model "\">"
#define INTEL(id)   CPU(id, "GenuineIntel", 6, 143)
#define AMD(id)     CPU(id, "AuthenticAMD", 25, 1)
#define END_CPU     "</cpu>"
#define LINK(width) "link_width=\"" #width "\" link_speed=\"16.0 GT/s PCIe\">"
#define SWITCH(at)  "<pci busid=\"0000:" at ":00.0\" class=\"0x060400\" " LINK(16)
#define END_PCI     "</pci>"
#define GPU_WITH(at, dev, sm, gdr, inside)                                                       \
	"<pci busid=\"0000:" at                                                                  \
	":00.0\" class=\"0x030200\" " LINK(8) "<gpu dev=\"" #dev "\" sm=\"" #sm "\" gdr=\"" #gdr \
					      "\">" inside "</gpu></pci>"
#define GPU(at, dev)      GPU_WITH(at, dev, 80, 1, "")
#define NVLINK(to, count) "<nvlink target=\"0000:" to ":00.0\" count=\"" #count "\"/>"
#define NIC_WITH(at, dev, gdr, width)                                              \
	"<pci busid=\"0000:" at                                                    \
	":00.0\" class=\"0x020000\" " LINK(width) "<nic><net "                     \
						  "name=\"n" #dev "\" dev=\"" #dev \
						  "\" speed=\"80000\" gdr=\"" #gdr \
						  "\"/></nic></pci>"
#define NIC(at, dev) NIC_WITH(at, dev, 1, 8)

/* On the NVSwitches. */
#define MESH_GPU(at, dev)        \
	GPU_WITH(at, dev, 80, 1, \
		 "<nvlink target=\"0000:f0:00.0\" count=\"4\" tclass=\"0x068000\"/>")

/* Two GPUs and a NIC below a switch, one of each below another, on the second socket. */
#define TWO_SOCKETS(CPU_OF)                                                           \
	CPU_OF(0)                                                                     \
	SWITCH("01")                                                                  \
	GPU("02", 0)                                                                  \
	GPU("03", 1)                                                                  \
	NIC("04", 0)                                                                  \
	END_PCI GPU("05", 2) END_CPU CPU_OF(1) SWITCH("11") GPU("12", 3) NIC("14", 1) \
		END_PCI END_CPU

#endif
