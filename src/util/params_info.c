/* SPDX-License-Identifier: BSD-3-Clause */
#include "tutti/inspect.h"

#include "util/error.h"
#include "util/params.h"

tutti_status tutti_param_get(int index, struct tutti_param_info *out)
{
	const struct tti_param_desc *desc = tti_param_desc(index);
	bool is_set;

	if (!out)
		return tti_fail(TUTTI_EINVAL, "tutti_param_get: out is NULL");
	/* Quiet: asking past the last is how a caller finds the end. */
	if (!desc)
		return tti_fail_quiet(TUTTI_EINVAL, "there is no parameter %d; they are 0 to %d",
				      index, tti_param_count() - 1);
	*out = (struct tutti_param_info){
		.variable = desc->variable,
		.type = desc->type,
		.default_value = desc->def,
		.range = desc->range,
		.help = desc->help,
		.value = tti_param_text(index, &is_set),
	};
	out->is_set = is_set;
	return TUTTI_OK;
}
