/* SPDX-License-Identifier: BSD-3-Clause */
#include "plan/search/lp.h"

#include <float.h>

#include "plan/search/clp.h"
#include "util/error.h"
#include "util/mem.h"

struct tti_lp {
	const struct tti_clp *call;
	Clp_Simplex *clp;
	uint32_t nrows, ncolumns;
	/* A column on its way to the solver: of each row what it takes, and which rows. */
	double *amount;
	int *rows;
	double *amounts;
	double *prices;
};

tutti_status tti_lp_create(const double *capacity, uint32_t nrows, struct tti_lp **out)
{
	const struct tti_clp *call;
	double *lower;
	int *starts;
	struct tti_lp *lp;

	TTI_TRY(tti_clp_get(&call));
	lp = tti_zalloc(sizeof(*lp));
	lower = tti_calloc(nrows, sizeof(*lower));
	starts = tti_calloc((size_t)nrows + 1, sizeof(*starts));
	if (!lp || !lower || !starts)
		goto fail;
	lp->call = call;
	lp->nrows = nrows;
	lp->amount = tti_calloc(nrows, sizeof(*lp->amount));
	lp->rows = tti_calloc(nrows, sizeof(*lp->rows));
	lp->amounts = tti_calloc(nrows, sizeof(*lp->amounts));
	lp->prices = tti_calloc(nrows, sizeof(*lp->prices));
	lp->clp = lp->call->create();
	if (!lp->amount || !lp->rows || !lp->amounts || !lp->prices || !lp->clp)
		goto fail;
	for (uint32_t row = 0; row < nrows; row++)
		lower[row] = -DBL_MAX;
	lp->call->log_level(lp->clp, 0);
	lp->call->scaling(lp->clp, 0);
	lp->call->direction(lp->clp, -1);
	lp->call->add_rows(lp->clp, (int)nrows, lower, capacity, starts, NULL, NULL);
	tti_free(lower);
	tti_free(starts);
	*out = lp;
	return TUTTI_OK;

fail:
	tti_free(lower);
	tti_free(starts);
	tti_lp_free(lp);
	return tti_fail(TUTTI_ENOMEM, "linear program of %u rows: out of memory", nrows);
}

void tti_lp_free(struct tti_lp *lp)
{
	if (!lp)
		return;
	if (lp->clp)
		lp->call->destroy(lp->clp);
	tti_free(lp->amount);
	tti_free(lp->rows);
	tti_free(lp->amounts);
	tti_free(lp->prices);
	tti_free(lp);
}

tutti_status tti_lp_add(struct tti_lp *lp, const struct tti_load *loads, size_t n)
{
	const double lower = 0, upper = DBL_MAX, one = 1;
	int nrows = 0;

	for (size_t i = 0; i < n; i++) {
		if (loads[i].amount <= 0)
			continue;
		if (lp->amount[loads[i].row] == 0)
			lp->rows[nrows++] = (int)loads[i].row;
		lp->amount[loads[i].row] += loads[i].amount;
	}
	if (nrows == 0)
		return tti_fail(TUTTI_EINTERNAL, "column %u of a linear program loads nothing",
				lp->ncolumns);
	for (int i = 0; i < nrows; i++) {
		lp->amounts[i] = lp->amount[lp->rows[i]];
		lp->amount[lp->rows[i]] = 0;
	}

	const int starts[2] = { 0, nrows };

	lp->call->add_columns(lp->clp, 1, &lower, &upper, &one, starts, lp->rows, lp->amounts);
	lp->ncolumns++;
	return TUTTI_OK;
}

uint32_t tti_lp_ncolumns(const struct tti_lp *lp)
{
	return lp->ncolumns;
}

void tti_lp_charge(struct tti_lp *lp, uint32_t column, double charge)
{
	lp->call->objective(lp->clp)[column] = 1 - charge;
}

void tti_lp_fix(struct tti_lp *lp, uint32_t column, double value)
{
	lp->call->column_lower(lp->clp)[column] = value < 0 ? 0 : value;
	lp->call->column_upper(lp->clp)[column] = value < 0 ? DBL_MAX : value;
}

void tti_lp_ban(struct tti_lp *lp, uint32_t column, bool banned)
{
	lp->call->column_upper(lp->clp)[column] = banned ? 0 : DBL_MAX;
}

tutti_status tti_lp_solve(struct tti_lp *lp, double *value_out)
{
	const double *duals;

	*value_out = 0;
	if (lp->ncolumns == 0)
		return TUTTI_OK;
	/* 1: start from the values there are. */
	lp->call->primal(lp->clp, 1);
	if (lp->call->status(lp->clp) != 0)
		return tti_fail(
			TUTTI_EINTERNAL,
			"linear program of %u rows and %u columns: the solver ended with %d",
			lp->nrows, lp->ncolumns, lp->call->status(lp->clp));
	*value_out = lp->call->value(lp->clp);
	/* Rounding leaves some a hair below 0. */
	duals = lp->call->duals(lp->clp);
	for (uint32_t row = 0; row < lp->nrows; row++)
		lp->prices[row] = duals[row] > 0 ? duals[row] : 0;
	return TUTTI_OK;
}

const double *tti_lp_weights(const struct tti_lp *lp)
{
	return lp->call->columns(lp->clp);
}

const double *tti_lp_prices(const struct tti_lp *lp)
{
	return lp->prices;
}
