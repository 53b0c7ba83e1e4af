/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_PLAN_LP_H
#define TTI_PLAN_LP_H

/* Packing: how much of each column fits into rows of limited capacity.
 *
 *     maximise sum of x_j   with   sum of a_ij x_j <= capacity_i,   x_j >= 0
 *
 * Columns are added while the price of each row (its dual value) says which further
 * one would help. Solved by Clp's primal simplex, warm from the last solution.
 *
 * Owner: tti_lp_free(). Threads: one at a time. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tutti/status.h"

struct tti_lp;

/* What one unit of a column takes of a row. */
struct tti_load {
	uint32_t row;
	float amount;
};

TUTTI_CHECKED tutti_status tti_lp_create(const double *capacity, uint32_t nrows,
					 struct tti_lp **out);
void tti_lp_free(struct tti_lp *lp);

/* A column: its number is how many there were. Rows may repeat: they add up. */
TUTTI_CHECKED tutti_status tti_lp_add(struct tti_lp *lp, const struct tti_load *loads, size_t n);
uint32_t tti_lp_ncolumns(const struct tti_lp *lp);

/* One unit of a column brings only 1 - charge; 0: as at first. The value of a solution is then
 * what it brings. */
void tti_lp_charge(struct tti_lp *lp, uint32_t column, double charge);

/* A column is worth `value` and nothing else from the next solve on; < 0: any value again. */
void tti_lp_fix(struct tti_lp *lp, uint32_t column, double value);

/* Leave a column out (or let it in again) from the next solve on. */
void tti_lp_ban(struct tti_lp *lp, uint32_t column, bool banned);

/* The optimum over the columns there are. TUTTI_EINTERNAL: the solver gave up, or
 * a column loads nothing and so is unlimited. */
TUTTI_CHECKED tutti_status tti_lp_solve(struct tti_lp *lp, double *value_out);
/* The last solution: x of each column, price >= 0 of each row. Borrowed. */
const double *tti_lp_weights(const struct tti_lp *lp);
const double *tti_lp_prices(const struct tti_lp *lp);

#endif
