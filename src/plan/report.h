/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_PLAN_REPORT_H
#define TTI_PLAN_REPORT_H

/* Plans for people: as a table, and words and figures of all that is written of them. Out of memory
 * while writing: out->failed.
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

/* What a node does in a pattern: its part of each channel, as the search finds it. Of a
 * tree the second member at the NIC is not known. tti_local_free(). */
TUTTI_CHECKED tutti_status tti_plan_part(const struct tti_plan *plan, enum tti_pattern pattern,
					 uint32_t node, struct tti_local **out);

/* "switch 0000:17:00.0 to CPU0 (PCI)": the link of a row, in one direction. */
#define TTI_LINK_WORDS 128
void tti_link_words(const struct tti_loads *loads, uint32_t row, char buf[TTI_LINK_WORDS]);
/* "24.0", "0.125". */
void tti_gbps_words(double gbps, char buf[24]);
/* A string of JSON, with its quotes. */
void tti_plan_json_text(struct tti_strbuf *out, const char *text);

#endif
