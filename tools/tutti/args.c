/* SPDX-License-Identifier: BSD-3-Clause */
#include "args.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
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

bool args_int(const char *option, const char *text, int min, int max, int *out)
{
	char *end;
	long value;

	errno = 0;
	value = strtol(text, &end, 10);
	if (end == text || *end || errno || value < min || value > max) {
		if (max == INT_MAX)
			tool_bad_usage("%s '%s' is no number of at least %d", option, text, min);
		else
			tool_bad_usage("%s '%s' is no number from %d to %d%s", option, text, min,
				       max,
				       strcmp(text, "p") == 0 ? " (-np of mpirun is -n here)" : "");
		return false;
	}
	*out = (int)value;
	return true;
}

bool args_size(const char *option, const char *text, size_t min, size_t *out)
{
	static const char suffixes[] = "KMGT";
	unsigned long long value;
	const char *suffix;
	unsigned shift = 0;
	char *end;

	errno = 0;
	value = strtoull(text, &end, 10);
	if (*end && end != text) {
		suffix = strchr(suffixes, *end >= 'a' ? *end - 'a' + 'A' : *end);
		if (suffix) {
			shift = 10 * (unsigned)(suffix - suffixes + 1);
			end++;
			/* 64K, 64KB and 64KiB are the same thing to everybody */
			if (*end == 'i')
				end++;
			if (*end == 'B' || *end == 'b')
				end++;
		}
	}
	if (end == text || *end || errno || text[0] == '-' || value > (SIZE_MAX / 2) >> shift ||
	    value << shift < min) {
		tool_bad_usage("%s '%s' is no size of at least %zu: give bytes, or 64K, 16M, 1G "
			       "(times 1024)",
			       option, text, min);
		return false;
	}
	*out = (size_t)(value << shift);
	return true;
}
