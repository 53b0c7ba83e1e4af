/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_INSIGHT_PLAN_REPORT_H
#define TTI_INSIGHT_PLAN_REPORT_H

/* Plans for people and other programs: as a table, in words, as a picture, as NCCL's graph file,
 * and what differs between two. Out of memory while writing: out->failed.
 * Threads: any. */

#include "plan/plan.h"
#include "topo/tree/xml.h"
#include "util/strbuf.h"

/* A plan and what it was made of. */
struct tti_report {
	const struct tti_plan *plan;
	const struct tti_plan_job *job;        /* NULL: not known              */
	const struct tti_plan_config *config;  /* of the search                */
	const struct tti_xml_doc *const *docs; /* of each node; NULL           */
	bool color, utf8;
};

void tti_plan_table(const struct tti_report *report, struct tti_strbuf *out);

/* The part of a node in each channel of a pattern, as the search finds it. The second member of a
 * tree at the NIC is not known. tti_local_free(). */
TUTTI_CHECKED tutti_status tti_plan_part(const struct tti_plan *plan, enum tti_pattern pattern,
					 uint32_t node, struct tti_local **out);
/* The loads of a node, with its NICs in the order of the plan; needs the job. tti_loads_free(). */
TUTTI_CHECKED tutti_status tti_plan_loads(const struct tti_report *report, uint32_t node,
					  struct tti_loads **out);

/* These need the job. */
TUTTI_CHECKED tutti_status tti_plan_explain(const struct tti_report *report,
					    struct tti_strbuf *out);
TUTTI_CHECKED tutti_status tti_plan_advise(const struct tti_report *report, struct tti_strbuf *out);
TUTTI_CHECKED tutti_status tti_plan_dot(const struct tti_report *report, struct tti_strbuf *out);
TUTTI_CHECKED tutti_status tti_plan_nccl(const struct tti_report *report, struct tti_strbuf *out);

/* A line for everything that the machines cannot carry, or do not have. */
TUTTI_CHECKED tutti_status tti_plan_verify(const struct tti_report *report, struct tti_strbuf *out,
					   size_t *nfindings_out);

/* Scale down the channels of a plan that asks for more than the machines have: all channels of a
 * pattern by one factor. *out gets a line for each link that has too little, as above, and for each
 * pattern that was scaled. */
TUTTI_CHECKED tutti_status tti_plan_fit(struct tti_plan *plan, const struct tti_plan_job *job,
					const struct tti_plan_config *config,
					struct tti_strbuf *out);

/* The number of a GPU or NIC in NCCL's graph file: its dev, and in the upper byte the number of its
 * host if the topology holds several. */
#define TTI_NCCL_HOSTS 128
static inline uint64_t tti_nccl_dev(const struct tti_node *node)
{
	const int dev = node->type == TTI_NODE_GPU ? node->gpu.dev : node->net.dev;

	return (uint64_t)node->host << 56 | (uint32_t)dev;
}

/* Read NCCL's graph file as the plan of a job whose nodes are of one kind, scaled down to what they
 * can carry; *excess says what was too much. */
TUTTI_CHECKED tutti_status tti_plan_read_nccl(const char *text, size_t nbytes, const char *source,
					      const struct tti_plan_job *job,
					      const struct tti_plan_config *config,
					      struct tti_strbuf *excess, struct tti_plan **out);

/* Every difference of two plans, a line each. */
void tti_plan_diff(const struct tti_plan *a, const struct tti_plan *b, struct tti_strbuf *out,
		   size_t *ndiffs_out);

#endif
