/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_TOPO_INSPECT_H
#define TTI_TOPO_INSPECT_H

/* The document and the routes behind a tutti_topo_t, for code that builds on topologies.
 * Borrowed. */

#include "topo/paths/routes.h"
#include "tutti/insight.h"

const struct tti_xml_doc *tti_topo_doc(tutti_topo_t topo);
const struct tti_routes *tti_topo_routes(tutti_topo_t topo);
/* A topology of the GPUs that have a rank, without findings. *out is NULL if all GPUs have a
 * rank, or none has. tutti_topo_free(). */
TUTTI_CHECKED tutti_status tti_topo_of_ranks(tutti_topo_t whole, tutti_topo_t *out);

#endif
