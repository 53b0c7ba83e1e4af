/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_PLAN_DOMAINS_H
#define TTI_PLAN_DOMAINS_H

/* NVLink domains: hosts of a job whose GPUs name one domain (tutti_fabric) are one node of
 * its plan, of a topology that is made of theirs.
 *
 *     host a: GPU0 GPU1, host b: GPU0 GPU1  ─▶  node: a/GPU0 a/GPU1 b/GPU0 b/GPU1
 *
 * Owner: tti_domains_free(); it borrows the job of hosts and their documents.
 * Threads: one at a time. */

#include "plan/plan.h"
#include "topo/tree/xml.h"

struct tti_domains;

/* `docs`: of each node of the job, which is a host. *out stays NULL where no two hosts are in
 * one domain. TUTTI_EINVAL: a domain of more GPUs than NVLink connects. */
TUTTI_CHECKED tutti_status tti_domains_join(const struct tti_plan_job *hosts,
					    const struct tti_xml_doc *const *docs,
					    struct tti_domains **out);
void tti_domains_free(struct tti_domains *domains); /* NULL is fine */

/* The job of domains and of the hosts that are in none, and the documents of its nodes. */
const struct tti_plan_job *tti_domains_job(const struct tti_domains *domains);
const struct tti_xml_doc *const *tti_domains_docs(const struct tti_domains *domains);

#endif
