/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_TOPO_PRINT_DOT_H
#define TTI_TOPO_PRINT_DOT_H

/* Private to the picture: what stands beside the machine, and what is drawn over it.
 * Threads: any. */

#include "insight/lint/lint.h"
#include "insight/print/print.h"
#include "insight/topo/order.h"

/* The place of a node of the graph in the picture. */
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

/* An overlay: channels in colours over a machine, and a table below it. */
struct tti_dot_overlay {
	const char *title, *notes; /* lines of small text below the title */
	/* The colours that use a link in its direction, a bit for each of the palette. What none
	 * uses is grey. */
	const uint16_t *colors;
	/* Write the table. */
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

/* Tables, where there is anything to show: paths; findings; the NVLinks between devices and the
 * colours that use them. */
void tti_dot_paths(const struct tti_routes *routes, struct tti_strbuf *out);
void tti_dot_findings(const struct tti_lint *lint, const char *source, struct tti_strbuf *out);
void tti_dot_mesh(const struct tti_graph *graph, const struct tti_dot_place *places,
		  const uint32_t *devices, uint32_t n, const uint16_t *colors,
		  struct tti_strbuf *out);

#endif
