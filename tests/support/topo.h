/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_SUPPORT_TOPO_H
#define TESTS_SUPPORT_TOPO_H

#include <stddef.h>

#include "tutti/status.h"

/* All that is done with the text of a topology, as "t.xml": read, check, write, read
 * again, and lay it over itself. TUTTI_EINTERNAL: what came back is not the same. */
TUTTI_CHECKED tutti_status topo_use(const char *text, size_t nbytes);

/* Read, check, and make the graph with its paths and routes. */
TUTTI_CHECKED tutti_status topo_use_graph(const char *text, size_t nbytes);

#endif
