/* SPDX-License-Identifier: BSD-3-Clause */
/* tutti: one program, one verb per thing one may want to know or do. */
#include "tool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct command *const commands[] = {
	&command_perf,  &command_ping, &command_run,  &command_show, &command_topo,
	&command_paths, &command_plan, &command_tune, &command_env,  &command_version,
};
#define NCOMMANDS (sizeof(commands) / sizeof(commands[0]))

static void print_verbs(FILE *to)
{
	fprintf(to, "Usage: tutti VERB [OPTIONS]\n\n");
	for (size_t i = 0; i < NCOMMANDS; i++)
		fprintf(to, "  %-8s  %s\n", commands[i]->name, commands[i]->summary);
	fprintf(to, "\n'tutti VERB --help' says more about a verb.\n");
}

/* Verbs whose ranks may fail in the background, where nobody else tells it. */
static bool runs_ranks(const struct command *command)
{
	return command == &command_perf || command == &command_ping || command == &command_run ||
	       command == &command_tune;
}

/* A full disk or a closed pipe must not look like success. */
static int finish(const char *name, int code)
{
	if ((fflush(stdout) || ferror(stdout)) && code == TOOL_GOOD) {
		fprintf(stderr, "tutti %s: writing the output failed\n", name);
		return TOOL_FINDING;
	}
	return code;
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		print_verbs(stderr);
		return TOOL_USAGE;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
		print_verbs(stdout);
		return finish("help", TOOL_GOOD);
	}
	for (size_t i = 0; i < NCOMMANDS; i++) {
		const char *const name = commands[i]->name;
		struct args args = {
			.command = commands[i],
			.argv = argv + 2,
			.argc = argc - 2,
		};

		if (!strcmp(argv[1], name) ||
		    (!strncmp(argv[1], "--", 2) && !strcmp(argv[1] + 2, name))) {
			tool_set_verb(name);
			tutti_log_errors(runs_ranks(commands[i]));
			return finish(name, commands[i]->run(&args));
		}
	}
	fprintf(stderr, "tutti: there is no verb '%s'\n", argv[1]);
	print_verbs(stderr);
	return TOOL_USAGE;
}
