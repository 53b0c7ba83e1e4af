/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_UNIT_PLAN_PLAN_TEXT_H
#define TESTS_UNIT_PLAN_PLAN_TEXT_H

/* A plan as text; the caller frees it. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tutti/insight.h"
#include "util/error.h"

static inline char *plan_text(tutti_plan_t plan, tutti_plan_format format)
{
	char *text = NULL, *copy;

	if (tutti_plan_print(plan, format, 0, &text) != TUTTI_OK)
		fail_msg("format %d: %s", (int)format, tti_error_text());
	/* gcc 12 takes what comes from behind the API for a pointer to `text`. */
	copy = strdup(text);
	free(text);
	assert_non_null(copy);
	return copy;
}

#endif
