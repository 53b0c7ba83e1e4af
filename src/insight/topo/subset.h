/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_TOPO_SUBSET_H
#define TTI_TOPO_SUBSET_H

/* A part of a machine: some of its GPUs, and everything else. The other GPUs are taken away with
 * their links, as nothing is sent through the memory of a GPU that no rank uses. The GPUs that stay
 * keep their names, and their ranks keep their order.
 *
 * Threads: not synchronised. */

#include "topo/graph/graph.h"

/* Keep the GPUs of `list` alone: numbers, ranges, names or bus ids with commas between, as
 * "0,2,5", "0-3,GPU6", "0000:3b:00.0", in a document of several hosts "HOST/0-3". The document has
 * passed tti_schema_check(), and passes it afterwards. TUTTI_EINVAL with what there is: a word
 * that names no GPU, or several; a GPU twice. */
TUTTI_CHECKED tutti_status tti_subset_gpus(struct tti_xml_doc *doc, const char *list);

/* Whether some of the GPUs of a graph have a rank and others have none: a job that uses a part
 * of its machine. */
bool tti_subset_has_ranks(const struct tti_graph *graph);
/* Keep those GPUs that have a rank; the graph is that of the document. */
TUTTI_CHECKED tutti_status tti_subset_ranks(struct tti_xml_doc *doc, const struct tti_graph *graph);

#endif
