/* SPDX-License-Identifier: BSD-3-Clause */
/* tutti: one program, one verb per thing one may want to know or do. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "completion.h"
#include "names.h"
#include "tool.h"

/* The i-th verb that stands by itself. */
static const char *verb_at(const void *self, int i)
{
	(void)self;
	for (const struct cli_command *command = commands; command->name; command++)
		if (!strchr(command->name, ' ') && i-- == 0)
			return command->name;
	return NULL;
}

static void print_verbs(FILE *to)
{
	fprintf(to, "Usage: tutti VERB [OPTIONS]\n\n");
	for (const struct cli_command *command = commands; command->name; command++)
		if (!strchr(command->name, ' '))
			fprintf(to, "  %-10s  %s\n", command->name, command->summary);
	fprintf(to, "\n'tutti VERB --help' says more about a verb.\n");
}

/* A full disk or a closed pipe must not look like success. */
static int finish(int code)
{
	if ((fflush(stdout) || ferror(stdout)) && code == TOOL_GOOD)
		return tool_fail("writing the output failed");
	return code;
}

static int help(const struct cli_command *command)
{
	cli_print_help(command);
	return TOOL_GOOD;
}

static int run(const struct cli_command *command, int argc, char **argv)
{
	void *const options = malloc(command->size);
	int code;

	if (!options)
		return tool_fail("out of memory");
	memcpy(options, command->defaults, command->size);
	code = cli_parse(command, argc, argv, options);
	if (code == CLI_HELP)
		code = help(command);
	else if (code == CLI_RUN)
		code = command->run(options);
	cli_release(command, options);
	free(options);
	return code;
}

/* "perf", "--version", "-V", "topo lint": the command that the first words name, which are passed; NULL:
 * there is none. */
static const struct cli_command *find_command(char ***words)
{
	const char *const word = **words;
	const char *const verb = !strcmp(word, "-V")       ? "version"
				 : !strncmp(word, "--", 2) ? word + 2
							   : word;
	const struct cli_command *command = commands, *sub;

	while (command->name && strcmp(command->name, verb) != 0)
		command++;
	if (!command->name)
		return NULL;
	++*words;
	for (sub = command + 1; **words && cli_is_below(sub, command); sub++)
		if (!strcmp(sub->name + strlen(command->name) + 1, **words)) {
			++*words;
			return sub;
		}
	return command;
}

static int unknown_verb(const char *word)
{
	const char *const nearest = names_nearest(&(struct names){ verb_at, NULL }, word);

	fprintf(stderr, "tutti: there is no verb '%s'%s%s%s\n", word, nearest ? "; is " : "",
		nearest ? nearest : "", nearest ? " meant?" : "");
	print_verbs(stderr);
	return TOOL_USAGE;
}

int main(int argc, char **argv)
{
	char **words = argv + 1, **const end = argv + argc;
	const bool wants_help = argc > 2 && !strcmp(words[0], "help");
	const struct cli_command *command;

	if (argc < 2) {
		print_verbs(stderr);
		return TOOL_USAGE;
	}
	/* The program prints its errors, those of calls among them. */
	tutti_log_errors(0);
	if (!strcmp(words[0], "--help") || !strcmp(words[0], "-h") ||
	    (argc == 2 && !strcmp(words[0], "help"))) {
		print_verbs(stdout);
		return finish(TOOL_GOOD);
	}
	if (argc > 2 && !strcmp(words[0], "completion") && !strcmp(words[1], "words")) {
		completion_print_words(commands, argc - 3, words + 2);
		return finish(TOOL_GOOD);
	}
	words += wants_help;
	command = find_command(&words);
	if (!command)
		return unknown_verb(words[0]);
	tool_set_verb(command->name);
	return finish(wants_help ? help(command) : run(command, (int)(end - words), words));
}
