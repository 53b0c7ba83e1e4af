/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_TOPO_LINT_H
#define TTI_TOPO_LINT_H

/* Findings: what is wrong or implausible in a topology, what that costs and what to do. A rule is a
 * function and a line in the table of lint.c.
 *
 * Owner: tti_lint_free(). Threads: any. */

#include "topo/paths/routes.h"

enum tti_severity {
	TTI_SEVERITY_NOTE,    /* good to know: something was assumed              */
	TTI_SEVERITY_WARNING, /* costs speed                                      */
	TTI_SEVERITY_ERROR,   /* something does not work, or the file is wrong    */
};
const char *tti_severity_name(enum tti_severity severity);

struct tti_finding {
	const char *rule; /* "pci-link-narrow"                                    */
	enum tti_severity severity;
	uint32_t node;               /* of the graph, TTI_NODE_NONE                   */
	const char *name;            /* of that node, NULL: none; borrowed of the graph */
	const char *place;           /* "file.xml:12: PCI 0000:17:00.0"               */
	size_t name_at;              /* where the name is in the place                */
	const char *what;            /* one sentence                                  */
	const char *consequence;     /* "GPU0 to mlx5_0: 3.0 instead of 24.0 GB/s"    */
	const char *remedy;          /* one sentence                                  */
	double have_gbps, want_gbps; /* 0, 0: no figure                           */
};

/* Whether a finding is worse than a note. Pictures mark such findings. */
static inline bool tti_finding_costs(const struct tti_finding *finding)
{
	return finding->severity != TTI_SEVERITY_NOTE;
}

struct tti_lint {
	struct tti_arena arena;
	struct tti_finding *at; /* errors first, then by place                    */
	size_t n;
};

/* Run all rules over a document and over what was built from it. */
TUTTI_CHECKED tutti_status tti_lint_run(const struct tti_xml_doc *doc,
					const struct tti_graph *graph,
					const struct tti_paths *paths,
					const struct tti_routes *routes, struct tti_lint **out);
void tti_lint_free(struct tti_lint *lint);

#endif
