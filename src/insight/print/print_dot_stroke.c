/* SPDX-License-Identifier: BSD-3-Clause */
#include "insight/print/print_dot.h"

#include <math.h>
#include <string.h>

#define MANY_COLORS (6 * 8) /* as "#rrggbb:" */

/* Twice as wide for six times as fast or so: 12 and 448 GB/s are both to be seen. What is
 * as fast as a device is inside is no wire. */
static double line_width(double gbps)
{
	if (gbps >= TTI_LOC_GBPS)
		gbps = 1;
	return 0.7 + 0.9 * log2(1 + gbps / 4);
}

static const char *edge_color(enum tti_link_type type)
{
	switch (type) {
	case TTI_LINK_NVL:
		return "#5aa832";
	case TTI_LINK_C2C:
		return "#7a4fb0";
	case TTI_LINK_SYS:
		return "#c98a1b";
	case TTI_LINK_LOC:
	case TTI_LINK_PCI:
	case TTI_LINK_NET:
	default:
		return "#6f7f8f";
	}
}

void tti_dot_stroke(const struct tti_graph *graph, const struct tti_dot_overlay *overlay,
		    const struct tti_topo_link *link, struct tti_strbuf *out)
{
	const char *colors =
		overlay ? overlay->colors(overlay->arg, (uint32_t)(link - graph->links)) : NULL;

	if (colors)
		tti_strbuf_addf(out, "penwidth=%s, color=\"%s\"];\n",
				strlen(colors) > MANY_COLORS ? "1.5" : "2.2", colors);
	else if (overlay)
		tti_strbuf_add(out, "penwidth=0.7, color=\"#c8c8c8\", fontcolor=\"#999999\"];\n");
	else
		tti_strbuf_addf(out, "penwidth=%.2f, color=\"%s\"];\n",
				line_width((double)link->bw_gbps), edge_color(link->type));
}
