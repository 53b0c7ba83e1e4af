/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_TOPO_PRINT_H
#define TTI_TOPO_PRINT_H

/* A graph and its paths for people and programs. Out of memory: out->failed.
 * Threads: any. */

#include "insight/lint/lint.h"
#include "topo/paths/routes.h"

struct tti_print_config {
	bool color; /* ANSI */
	bool utf8;  /* line drawing; else ASCII */
};

/* A tree of sockets, switches and devices with link widths, followed by tti_print_links(). */
void tti_print_tree(const struct tti_graph *graph, const struct tti_print_config *config,
		    struct tti_strbuf *out);
/* The links that a tree cannot show: between GPUs, and between CPUs. */
void tti_print_links(const struct tti_graph *graph, struct tti_strbuf *out);
/* The matrix of path types as `nvidia-smi topo -m` shows it, then one of GB/s, then
 * the legend of the types that occur. TUTTI_EUNSUPPORTED: tti_routes_want_all(). */
TUTTI_CHECKED tutti_status tti_print_paths(const struct tti_routes *routes,
					   const struct tti_print_config *config,
					   struct tti_strbuf *out);
void tti_print_lint(const struct tti_lint *lint, const struct tti_print_config *config,
		    struct tti_strbuf *out);
/* A picture for Graphviz, with the matrix of paths if there is a table of them. Findings of
 * `lint` are marked; it may be NULL. */
void tti_print_dot(const struct tti_routes *routes, const struct tti_lint *lint,
		   struct tti_strbuf *out);

/* JSON, described in docs/topology.md: everything ("paths" null where there is no table of
 * them); the paths (TUTTI_EUNSUPPORTED as above); the findings. */
TUTTI_CHECKED tutti_status tti_print_topo_json(const struct tti_routes *routes,
					       const struct tti_lint *lint, struct tti_strbuf *out);
TUTTI_CHECKED tutti_status tti_print_paths_json(const struct tti_routes *routes,
						struct tti_strbuf *out);
TUTTI_CHECKED tutti_status tti_print_lint_json(const struct tti_lint *lint, struct tti_strbuf *out);

#endif
