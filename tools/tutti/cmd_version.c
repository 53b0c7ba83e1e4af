/* SPDX-License-Identifier: BSD-3-Clause */
/* tutti version */
#include <stdio.h>

#include "tool.h"

static int run(struct args *args)
{
	const int version = tutti_version();
	char text[48];
	bool json = false;
	const char *value;
	int id;

	while ((id = args_next(args, &value)) != ARGS_END) {
		if (id == ARGS_HELP)
			return TOOL_GOOD;
		if (id == ARGS_BAD)
			return TOOL_USAGE;
		if (id == ARGS_POSITIONAL)
			return tool_bad_usage("takes no argument, it was given '%s'", value);
		json = true;
	}
	snprintf(text, sizeof(text), "%d.%d.%d", version / 10000, version / 100 % 100,
		 version % 100);
	if (json)
		return tool_print_json(json_pack("{s:s, s:s, s:i}", "name", "tutti", "version",
						 text, "number", version))
			       ? TOOL_GOOD
			       : TOOL_FINDING;
	printf("tutti %s\n", text);
	return TOOL_GOOD;
}

static const struct args_option options[] = { ARGS_OPTION_JSON, { 0 } };

const struct command command_version = {
	.name = "version",
	.summary = "the version of the library",
	.usage = "version [--json]",
	.options = options,
	.run = run,
};
