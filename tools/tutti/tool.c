/* SPDX-License-Identifier: BSD-3-Clause */
#include "tool.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Set once, before there is a second thread. */
static const char *the_verb = "";

void tool_set_verb(const char *verb)
{
	the_verb = verb;
}

const char *tool_verb(void)
{
	return the_verb;
}

static int report(const char *fmt, va_list list)
{
	char text[1024];

	/* One write, so that the lines of several ranks do not mix. */
	vsnprintf(text, sizeof(text), fmt, list);
	fflush(stdout);
	fprintf(stderr, "tutti %s: %s\n", the_verb, text);
	return TOOL_FINDING;
}

int tool_fail(const char *fmt, ...)
{
	va_list list;

	va_start(list, fmt);
	report(fmt, list);
	va_end(list);
	return TOOL_FINDING;
}

int tool_bad_usage(const char *fmt, ...)
{
	va_list list;

	va_start(list, fmt);
	report(fmt, list);
	va_end(list);
	fprintf(stderr, "'tutti %s --help' lists what can be given.\n", the_verb);
	return TOOL_USAGE;
}

/* allreduce, AllReduce and all-reduce are all_reduce. */
static bool is_written_otherwise(const char *name, const char *word)
{
	while (*name || *word) {
		while (*name == '_')
			name++;
		while (*word == '_' || *word == '-')
			word++;
		if (tolower((unsigned char)*name) != tolower((unsigned char)*word))
			return false;
		name += *name != '\0';
		word += *word != '\0';
	}
	return true;
}

bool tool_find_collective(const char *name, tutti_collective *out)
{
	char names[256] = "";
	size_t len = 0;

	for (int i = 0; i < TUTTI_COLLECTIVE_COUNT; i++) {
		const char *candidate = tutti_collective_name((tutti_collective)i);

		if (!strcmp(candidate, name)) {
			*out = (tutti_collective)i;
			return true;
		}
		if (is_written_otherwise(candidate, name)) {
			tool_bad_usage("there is no collective '%s'; is %s meant?", name,
				       candidate);
			return false;
		}
		len += (size_t)snprintf(names + len, sizeof(names) - len, "%s%s", i ? ", " : "",
					candidate);
		if (len >= sizeof(names))
			len = sizeof(names) - 1;
	}
	tool_bad_usage("there is no collective '%s': choose one of %s", name, names);
	return false;
}

bool tool_find_algorithm(tutti_collective coll, const char *name)
{
	const char *candidate;
	char names[512] = "";
	size_t len = 0;

	for (int i = 0; (candidate = tutti_algorithm_name(coll, i)) != NULL; i++) {
		if (!strcmp(candidate, name))
			return true;
		len += (size_t)snprintf(names + len, sizeof(names) - len, "%s%s", i ? ", " : "",
					candidate);
		if (len >= sizeof(names))
			len = sizeof(names) - 1;
	}
	tool_bad_usage("%s has no algorithm '%s': %s%s", tutti_collective_name(coll), name,
		       len ? "choose one of " : "it has none to choose from", names);
	return false;
}

bool tool_print_json(json_t *object)
{
	const size_t flags = JSON_COMPACT | JSON_REAL_PRECISION(9);
	const bool good = object && json_dumpf(object, stdout, flags) == 0;

	json_decref(object);
	if (good)
		putchar('\n');
	else
		tool_fail("out of memory while writing JSON");
	return good;
}

const char *tool_why(tutti_comm_t comm, tutti_status status)
{
	const char *text = tutti_last_error(comm);

	return text[0] ? text : tutti_status_string(status);
}
