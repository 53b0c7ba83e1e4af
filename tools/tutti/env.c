/* SPDX-License-Identifier: BSD-3-Clause */
#include "env.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool.h"

static const char *or_dash(const char *text)
{
	return text && text[0] ? text : "-";
}

static const char *or_empty(const char *text)
{
	return text ? text : "";
}

/* A | inside a cell would end it. */
static void print_cell(const char *text, bool code)
{
	if (!text || !text[0]) {
		printf("  |");
		return;
	}
	printf(code ? " `" : " ");
	for (; *text; text++) {
		if (*text == '|')
			putchar('\\');
		putchar(*text);
	}
	printf(code ? "` |" : " |");
}

static void print_markdown(const struct tutti_param_info *info)
{
	printf("|");
	print_cell(info->variable, true);
	print_cell(info->type, false);
	print_cell(info->default_value, true);
	print_cell(info->range, true);
	print_cell(info->help, false);
	printf("\n");
}

static bool print_json(const struct tutti_param_info *info)
{
	return tool_print_json(
		json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:b}", "variable", info->variable, "type",
			  info->type, "value", or_empty(info->value), "default",
			  or_empty(info->default_value), "range", or_empty(info->range), "help",
			  or_empty(info->help), "set", info->is_set));
}

static size_t longer(size_t len, const char *text)
{
	const size_t other = strlen(or_dash(text));

	return other > len ? other : len;
}

static void print_table(void)
{
	struct tutti_param_info info;
	size_t name = 8, value = 5, standard = 7, range = 5;

	for (int i = 0; tutti_param_get(i, &info) == TUTTI_OK; i++) {
		name = longer(name, info.variable);
		value = longer(value, info.value);
		standard = longer(standard, info.default_value);
		range = longer(range, info.range);
	}
	printf("  %-*s  %-*s  %-*s  %-*s  %s\n", (int)name, "variable", (int)value, "value",
	       (int)standard, "default", (int)range, "range", "meaning");
	for (int i = 0; tutti_param_get(i, &info) == TUTTI_OK; i++)
		printf("%c %-*s  %-*s  %-*s  %-*s  %s\n", info.is_set ? '*' : ' ', (int)name,
		       info.variable, (int)value, or_dash(info.value), (int)standard,
		       or_dash(info.default_value), (int)range, or_dash(info.range), info.help);
	printf("\n* is set in the environment\n");
}

/* It need not be named by a variable to be in force. */
static int print_tune_file(void)
{
	char *path;
	const tutti_status status = tutti_tune_find(&path);

	if (status)
		return tool_fail("%s", tool_why(NULL, status));
	if (path)
		printf("%s is in force: constants and choices, if all ranks have the same\n", path);
	else
		printf("no tune file is in force: `tutti tune` measures one\n");
	free(path);
	return TOOL_GOOD;
}

int env_run(void *options)
{
	const struct env_options *const o = options;
	struct tutti_param_info info;

	if (!o->json && !o->markdown) {
		print_table();
		return print_tune_file();
	}
	if (!o->json)
		printf("| Variable | Type | Default | Range | Meaning |\n|---|---|---|---|---|\n");
	for (int i = 0; tutti_param_get(i, &info) == TUTTI_OK; i++) {
		if (!o->json)
			print_markdown(&info);
		else if (!print_json(&info))
			return TOOL_FINDING;
	}
	return TOOL_GOOD;
}

int version_run(void *options)
{
	const struct version_options *const o = options;
	const int version = tutti_version();
	char text[48];

	snprintf(text, sizeof(text), "%d.%d.%d", version / 10000, version / 100 % 100,
		 version % 100);
	if (o->json)
		return tool_print_json(json_pack("{s:s, s:s, s:i}", "name", "tutti", "version",
						 text, "number", version))
			       ? TOOL_GOOD
			       : TOOL_FINDING;
	printf("tutti %s\n", text);
	return TOOL_GOOD;
}
