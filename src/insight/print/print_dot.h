/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_TOPO_PRINT_DOT_H
#define TTI_TOPO_PRINT_DOT_H

/* Private to the picture: what stands beside the machine, and how text gets into a
 * label. Threads: any. */

#include "insight/lint/lint.h"
#include "insight/print/print.h"
#include "insight/topo/order.h"
#include "insight/write/dot.h"

/* Where a node of the graph is to be seen. */
struct tti_dot_place {
	uint32_t box;     /* the node whose box shows it; itself                 */
	uint32_t next;    /* of a NIC: the next one in its box, or NONE          */
	uint32_t count;   /* of a box: how many NICs it shows                    */
	uint32_t first;   /* of a device or NIC: its first GPU or port, or NONE  */
	uint32_t sibling; /* of a GPU or port: the next one of its device        */
};
/* One per node, freed with tti_free(); NULL: out of memory. GPUs, ports and HOSTs
 * are shown by what they are part of, NICs alike by one box. */
struct tti_dot_place *tti_dot_places(const struct tti_graph *graph);

/* What is drawn over a machine: its links in colours, a table below it. */
struct tti_dot_overlay {
	const char *title;
	/* The colours of a link, as Graphviz has a list of them, by its number or that of its
	 * reverse; NULL: it is grey. */
	const char *(*colors)(const void *arg, uint32_t link);
	/* Add a node called "overlay". */
	void (*table)(const void *arg, struct tti_strbuf *out);
	const void *arg;
};
void tti_print_dot_over(const struct tti_routes *routes, const struct tti_dot_overlay *overlay,
			struct tti_strbuf *out);

/* A picture under construction. */
struct tti_picture {
	const struct tti_graph *graph;
	const struct tti_lint *lint;
	struct tti_strbuf *out;
	struct tti_dot_place *places;
	struct tti_print_order order;
	const struct tti_dot_overlay *over; /* NULL: the machine and nothing else */
	bool mesh;                          /* NVLinks stand in a table, not as lines */
};

void tti_picture_add_box(const struct tti_picture *picture, uint32_t index);

/* The end of an edge, "penwidth=2, color=...];": under an overlay its colours lie side by
 * side, as lines of a metro do, and what is not used fades. */
void tti_dot_stroke(const struct tti_graph *graph, const struct tti_dot_overlay *overlay,
		    const struct tti_topo_link *link, struct tti_strbuf *out);

/* The nodes "paths" and "findings": tables. false: nothing to show, no node. */
bool tti_dot_paths(const struct tti_routes *routes, struct tti_strbuf *out);
bool tti_dot_findings(const struct tti_lint *lint, const char *source, struct tti_strbuf *out);
#endif
