/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include "cli.h"

/* "a|b|c" for a list of words, else the metavar. */
static const char *value_of(const struct cli_option *option, char *room, size_t size)
{
	size_t len = 0;

	if (option->metavar || !option->words)
		return option->metavar ? option->metavar : "";
	for (int i = 0; option->words[i] && len < size; i++)
		len += (size_t)snprintf(room + len, size - len, "%s%s", i ? "|" : "",
					option->words[i]);
	return room;
}

static void describe(const struct cli_option *option, char *out, size_t size)
{
	char room[64], letter[8] = "    ";
	const char *const value = value_of(option, room, sizeof(room));

	if (option->letter)
		snprintf(letter, sizeof(letter), "-%c, ", option->letter);
	if (option->name)
		snprintf(out, size, "%s--%s%s%s", letter, option->name, *value ? " " : "", value);
	else
		snprintf(out, size, "%s", value);
}

static void print_usage(const struct cli_command *command)
{
	struct cli_option option;

	printf("Usage: tutti %s [OPTIONS]", command->name);
	for (int i = 0; cli_get_option(command, i, &option); i++) {
		char room[64];

		if (option.name)
			continue;
		printf(option.is_optional && option.kind != CLI_PROGRAM ? " [%s]%s" : " %s%s",
		       value_of(&option, room, sizeof(room)),
		       option.kind == CLI_FILES ? "..." : "");
	}
	printf("\n\n");
}

static void print_option(const struct cli_option *option, int width)
{
	char text[96], needs[64];

	if (!option->help)
		return;
	describe(option, text, sizeof(text));
	/* An option that needs one of several others is explained in the notes. */
	cli_join_options(option->needs && !strchr(option->needs, ' ') ? option->needs : NULL, needs,
			 sizeof(needs));
	printf("  %-*s  %s%s%s\n", width, text, option->help, *needs ? "; with " : "", needs);
}

void cli_print_help(const struct cli_command *command)
{
	static const struct cli_option help = { .letter = 'h',
						.name = "help",
						.help = "print this" };
	struct cli_option option;
	bool hands_on = false;
	char text[96];
	int width = 0;

	printf("tutti %s: %s\n\n", command->name, command->summary);
	print_usage(command);
	for (int i = 0; cli_get_option(command, i, &option); i++) {
		describe(&option, text, sizeof(text));
		if (option.help && (int)strlen(text) > width)
			width = (int)strlen(text);
		hands_on |= option.kind == CLI_PROGRAM;
	}
	for (int i = 0; cli_get_option(command, i, &option); i++)
		print_option(&option, width);
	print_option(&help, width);
	if (command->notes)
		printf("\n%s", command->notes);
	if (cli_is_below(command + 1, command))
		printf("\n");
	for (const struct cli_command *sub = command + 1; cli_is_below(sub, command); sub++)
		printf("  tutti %-12s  %s\n", sub->name, sub->summary);
	/* The exit code of a program that was run is ours. */
	if (!hands_on)
		printf("\nExit code: 0 success, 1 a finding or a failed check, 2 bad usage.\n");
}
