/* SPDX-License-Identifier: BSD-3-Clause */
#include "util/params.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "tutti/inspect.h"
#include "util/error.h"
#include "util/log.h"
#include "util/params_read.h"

static void log_notes(const struct tti_param_notes *notes)
{
	for (const char *line = notes->text; line < notes->text + notes->len;) {
		const char *end = memchr(line, '\n', (size_t)(notes->text + notes->len - line));

		tti_log(TTI_LOG_WARN, TTI_ENV, "%.*s", (int)(end - line), line);
		line = end + 1;
	}
	if (notes->dropped)
		tti_log(TTI_LOG_WARN, TTI_ENV,
			"%d more variables named " TTI_PARAM_PREFIX "* are wrong", notes->dropped);
}

const struct tti_param_values *tti_params(void)
{
	static atomic_bool reported;

	if (!atomic_load_explicit(&reported, memory_order_relaxed) &&
	    !atomic_exchange(&reported, true))
		log_notes(tti_params_notes());
	return tti_params_quiet();
}

tutti_status tti_params_read(char *const *env, struct tti_param_values *out)
{
	struct tti_param_notes notes = { .len = 0 };

	tti_params_read_env(env, out, &notes);
	log_notes(&notes);
	return TUTTI_OK;
}

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
	(void)tti_params();
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

const char *tti_env_foreign(const char *name)
{
	return getenv(name);
}
