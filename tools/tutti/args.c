/* SPDX-License-Identifier: BSD-3-Clause */
#include "args.h"

#include <stdio.h>
#include <string.h>

#include "tool.h"

/* -x, -xVALUE, --name, --name=VALUE: which option, and what is glued to it. */
static const struct args_option *find_option(const struct args *args, const char *word,
					     const char **glued_out)
{
	const bool is_long = word[1] == '-';
	const char *name = word + (is_long ? 2 : 1);
	const char *equals = strchr(name, '=');
	const size_t len = equals ? (size_t)(equals - name) : strlen(name);

	*glued_out = NULL;
	for (const struct args_option *o = args->command->options; o->id; o++) {
		if (is_long && strlen(o->name) == len && !strncmp(o->name, name, len)) {
			*glued_out = equals ? equals + 1 : NULL;
			return o;
		}
		if (!is_long && o->id == name[0]) {
			*glued_out = name[1] ? name + 1 : NULL;
			return o;
		}
	}
	return NULL;
}

int args_next(struct args *args, const char **value_out)
{
	const char *word = args->pos < args->argc ? args->argv[args->pos] : NULL;
	const struct args_option *option;
	const char *glued;

	*value_out = word;
	if (!word)
		return ARGS_END;
	args->pos++;
	if (!args->no_more_options && !strcmp(word, "--")) {
		args->no_more_options = true;
		return args_next(args, value_out);
	}
	/* A single - is a file name: standard input. */
	if (args->no_more_options || word[0] != '-' || !word[1]) {
		args->no_more_options |= args->command->stop_at_positional;
		return ARGS_POSITIONAL;
	}
	if (!strcmp(word, "--help") || !strcmp(word, "-h")) {
		args_print_help(args->command);
		return ARGS_HELP;
	}
	option = find_option(args, word, &glued);
	if (!option) {
		tool_bad_usage("there is no option %s", word);
		return ARGS_BAD;
	}
	*value_out = glued;
	if (!option->metavar && glued) {
		tool_bad_usage("option --%s takes no value, it was given '%s'", option->name,
			       glued);
		return ARGS_BAD;
	}
	if (option->metavar && !glued) {
		if (args->pos == args->argc) {
			tool_bad_usage("option %s needs a value: %s", word, option->metavar);
			return ARGS_BAD;
		}
		*value_out = args->argv[args->pos++];
	}
	return option->id;
}

static void print_option(int id, const char *name, const char *metavar, const char *help)
{
	char text[80];
	const char *space = metavar ? " " : "";

	if (id < ARGS_JSON)
		snprintf(text, sizeof(text), "-%c, --%s%s%s", id, name, space,
			 metavar ? metavar : "");
	else
		snprintf(text, sizeof(text), "    --%s%s%s", name, space, metavar ? metavar : "");
	printf("  %-26s  %s\n", text, help);
}

void args_print_help(const struct command *command)
{
	printf("tutti %s: %s\n\nUsage: tutti %s\n\n", command->name, command->summary,
	       command->usage);
	for (const struct args_option *o = command->options; o->id; o++)
		print_option(o->id, o->name, o->metavar, o->help);
	print_option('h', "help", NULL, "print this");
	if (command->notes)
		printf("\n%s", command->notes);
	/* One that runs a program hands on that program's. */
	if (!command->stop_at_positional)
		printf("\nExit code: 0 success, 1 a finding or a failed check, 2 bad usage.\n");
}
