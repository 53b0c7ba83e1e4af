/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_PLAN_CLP_H
#define TTI_PLAN_CLP_H

/* The solver, loaded when the first plan is made. Clp brings LAPACK and two languages'
 * run-time libraries along: linked, each rank would pay for them when it starts, and
 * most ranks never plan.
 *
 * Owner: it stays loaded. Threads: any. */

#include <Clp_C_Interface.h>

#include "tutti/status.h"

/* X(field, function): what is used of it. */
#define TTI_CLP_MAP(X)                             \
	X(create, Clp_newModel)                    \
	X(destroy, Clp_deleteModel)                \
	X(log_level, Clp_setLogLevel)              \
	X(scaling, Clp_scaling)                    \
	X(direction, Clp_setOptimizationDirection) \
	X(add_rows, Clp_addRows)                   \
	X(add_columns, Clp_addColumns)             \
	X(column_lower, Clp_columnLower)           \
	X(column_upper, Clp_columnUpper)           \
	X(objective, Clp_objective)                \
	X(primal, Clp_primal)                      \
	X(status, Clp_status)                      \
	X(value, Clp_objectiveValue)               \
	X(columns, Clp_primalColumnSolution)       \
	X(duals, Clp_dualRowSolution)

struct tti_clp {
#define X(field, function) __typeof__(function) *field;
	TTI_CLP_MAP(X)
#undef X
};

/* Why the library is not there; NULL: it is. */
const char *tti_clp_missing(void);

/* TUTTI_EUNSUPPORTED: the library is not there; the text says why. */
TUTTI_CHECKED tutti_status tti_clp_get(const struct tti_clp **out);

#endif
