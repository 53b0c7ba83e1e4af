/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOOL_CLI_H
#define TOOL_CLI_H

/* The command line as data. commands.c lists every verb and its options; parsing, range checks,
 * --help, the manual pages and what shells complete come from that list.
 *
 * Owner: the options of a verb belong to the caller. cli_release() frees the lists in them. */

#include <stdbool.h>
#include <stddef.h>

/* The kind of a value, and the type of the field it is written to. */
enum cli_kind {
	CLI_END = 0,
	CLI_FLAG,    /* bool: the option was given; it takes no value            */
	CLI_SWITCH,  /* int: the same, 1                                         */
	CLI_TEXT,    /* const char *                                             */
	CLI_FILE,    /* const char *: a path                                     */
	CLI_FILES,   /* struct cli_list: one path each time the option is given  */
	CLI_TEXTS,   /* struct cli_list: one text each time                      */
	CLI_INT,     /* int from min to max                                      */
	CLI_SIZE,    /* size_t, min or more: bytes, or 64K, 16M, 1G              */
	CLI_SECONDS, /* double from 0.001 to 3600                                */
	CLI_RANKS,   /* struct cli_ranks, each less than max: 0-3,7              */
	CLI_WORD,    /* int: min + which of the names                            */
	CLI_CALL,    /* take() reads it                                          */
	CLI_PROGRAM, /* char **: this word and all behind it, to a NULL          */
	CLI_GROUP    /* no option, but all those of `group`, at `offset`         */
};

struct cli_list {
	const char **at;
	int n;
};

struct cli_ranks {
	int *at;
	int n;
};

struct cli_option {
	char letter;         /* -x; 0: it has no short form                      */
	const char *name;    /* --name; NULL: an operand, in the order of them   */
	const char *metavar; /* what stands for the value; NULL: the names do    */
	enum cli_kind kind;
	size_t offset; /* of the field in the options of the verb          */
	int min, max;
	const char *help; /* one line; NULL: not shown                        */

	/* The i-th word that may be given, NULL behind the last; self is nothing. */
	const char *(*names)(const void *self, int i);
	const char *const *words; /* the same as a list that ends with a NULL         */
	/* Write `value` of the option `label` into the field `at`. False: it is bad, and the error was printed. */
	bool (*take)(const char *label, const char *value, void *at);
	/* Names (metavars of operands), blanks between: one of them has to be given as well, or
	 * none may be. */
	const char *needs, *excludes;
	bool is_optional; /* an operand that may be missing                   */
	const struct cli_option *group;
};

struct cli_command {
	const char *name; /* "topo lint" follows "topo"                       */
	const char *summary;
	const char *notes; /* printed below the options; may be NULL           */
	const struct cli_option *options;
	const void *defaults; /* what the options are before they are read        */
	size_t size;          /* of them                                          */
	int (*run)(void *options);
};

enum { CLI_RUN = -1, CLI_HELP = -2 };

/* Read the words behind the verb into `options`, a copy of the defaults. CLI_RUN; CLI_HELP: help was asked
 * for; else the exit code, after the error was printed. */
int cli_parse(const struct cli_command *command, int argc, char **argv, void *options);
void cli_release(const struct cli_command *command, void *options);

/* The i-th option, with groups resolved. False: there are not so many. */
bool cli_get_option(const struct cli_command *command, int i, struct cli_option *out);
/* Whether a verb belongs to another one, as "topo lint" to "topo". */
bool cli_is_below(const struct cli_command *command, const struct cli_command *parent);

/* "--a or --b" for "a b" */
void cli_join_options(const char *list, char *out, size_t size);

void cli_print_help(const struct cli_command *command);

/* Write the value of an option into its field. False: it is bad, and the error was printed. */
bool cli_store(const struct cli_option *option, const char *label, const char *value, void *field);
/* Read one value. False: it is not in the range, and an error that begins with `label` was printed. */
bool cli_int(const char *label, const char *text, int min, int max, int *out);
bool cli_size(const char *label, const char *text, size_t min, size_t *out);

#endif
