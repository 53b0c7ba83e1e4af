/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_PLAN_INSPECT_H
#define TTI_PLAN_INSPECT_H

/* The plan and the job behind a tutti_plan_t, for code that builds on plans. Borrowed. */

#include "plan/plan.h"
#include "tutti/insight.h"

const struct tti_plan *tti_inspect_plan(tutti_plan_t plan);
/* NULL: the plan was read from a file, without its nodes. */
const struct tti_plan_job *tti_inspect_job(tutti_plan_t plan);

#endif
