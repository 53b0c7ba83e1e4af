/* SPDX-License-Identifier: BSD-3-Clause */
#include "tool.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Set once, before there is a second thread. */
static const char *the_verb = "help";

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

FILE *tool_open_output(const char *path)
{
	FILE *const file = path ? fopen(path, "we") : stdout;

	if (!file)
		tool_bad_usage("cannot write '%s': %m", path);
	return file;
}

int tool_close_output(FILE *file, const char *path, int code)
{
	if (file != stdout && (ferror(file) | fclose(file)) && code == TOOL_GOOD)
		return tool_fail("writing '%s' failed: %m", path);
	return code;
}

json_t *tool_json_lines(const char *text)
{
	json_t *list = json_array();

	while (*text) {
		const size_t len = strcspn(text, "\n");

		json_array_append_new(list, json_stringn(text, len));
		text += len + (text[len] == '\n');
	}
	return list;
}

int tool_write(char *text, FILE *to)
{
	fputs(text, to);
	free(text);
	return TOOL_GOOD;
}

const char *tool_variable(const char *name)
{
	const size_t len = strlen(name);

	for (char **entry = environ; entry && *entry; entry++)
		if (!strncmp(*entry, name, len) && (*entry)[len] == '=')
			return *entry + len + 1;
	return "";
}

const char *tool_parameter(const char *variable)
{
	struct tutti_param_info info;

	for (int i = 0; tutti_param_get(i, &info) == TUTTI_OK; i++)
		if (!strcmp(info.variable, variable))
			return info.is_set ? info.value : NULL;
	return NULL;
}
