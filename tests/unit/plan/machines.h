/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_UNIT_PLAN_MACHINES_H
#define TESTS_UNIT_PLAN_MACHINES_H

/* A topology with all that is made of it on the way to a plan. */

#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "plan/plan.h"
#include "topo/tree/schema.h"

/* For searches whose result is looked at: what else the machine does has no say in it. */
#define UNHURRIED_MS 1e5

struct machine {
	struct tti_xml_doc *doc;
	struct tti_graph *graph;
	struct tti_paths *paths;
	struct tti_routes *routes;
};

/* Takes the document. */
static inline void machine_build(struct machine *m, struct tti_xml_doc *doc, enum tti_model model)
{
	const struct tti_routes_config policy = tti_routes_config_from_params();

	*m = (struct machine){ .doc = doc };
	assert_int_equal(tti_schema_check(doc), TUTTI_OK);
	assert_int_equal(tti_graph_build(doc, model, &m->graph), TUTTI_OK);
	assert_int_equal(tti_paths_build(m->graph, &m->paths), TUTTI_OK);
	assert_int_equal(tti_routes_build(m->paths, &policy, &m->routes), TUTTI_OK);
}

static inline void machine_read(struct machine *m, const char *path, enum tti_model model)
{
	struct tti_xml_doc *doc = NULL;

	assert_int_equal(tti_xml_read_file(path, &doc), TUTTI_OK);
	machine_build(m, doc, model);
}

static inline void machine_release(struct machine *m)
{
	tti_routes_free(m->routes);
	tti_paths_free(m->paths);
	tti_graph_free(m->graph);
	tti_xml_free(m->doc);
}

/* The paths of all topology files: globfree() them. */
static inline void machine_files(glob_t *files)
{
	assert_int_equal(glob(TEST_DATA "/topologies/*.xml", 0, NULL, files), 0);
}

#endif
