/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOOL_ARGS_H
#define TOOL_ARGS_H

/* The command line of one verb: options from a table, which is also its help.
 * Every message names the verb, the value and what would be right. */

#include <stdbool.h>
#include <stddef.h>

#include "cli.h"

struct args;

struct args_option {
	int id;              /* a letter: -x is the short form; >= 256: none */
	const char *name;    /* without the dashes                           */
	const char *metavar; /* NULL: takes no value                         */
	const char *help;
};

/* One verb. `options` ends with a zeroed entry and has no --help: that one is
 * answered by args_next(). */
struct command {
	const char *name;
	const char *summary; /* one line                                     */
	const char *usage;   /* what follows "tutti"                         */
	const char *notes;   /* printed after the options; may be NULL       */
	const struct args_option *options;
	bool stop_at_positional; /* what follows the first word is not ours  */
	int (*run)(struct args *args);
};

enum {
	ARGS_BAD = -1, /* the message is out, exit with TOOL_USAGE */
	ARGS_END = 0,
	ARGS_POSITIONAL = 1,
	ARGS_HELP = 2, /* the help is out, exit with TOOL_GOOD */
	ARGS_JSON = 256,
	ARGS_FIRST_FREE = 257
};

#define ARGS_OPTION_JSON                                                         \
	{                                                                        \
		ARGS_JSON, "json", NULL, "print JSON: one object, or one a line" \
	}

struct args {
	const struct command *command;
	char **argv; /* behind the verb */
	int argc;
	int pos;
	bool no_more_options;
};

/* The next option's id, ARGS_POSITIONAL, or one of the ends above. */
int args_next(struct args *args, const char **value_out);

void args_print_help(const struct command *command);

#endif
