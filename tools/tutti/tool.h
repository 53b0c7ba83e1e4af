/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOOL_TOOL_H
#define TOOL_TOOL_H

/* Shared by all verbs: exit codes, messages, names, output. */

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "tutti/insight.h"

enum tool_exit {
	TOOL_GOOD = 0,
	TOOL_FINDING = 1, /* something is wrong, or a check failed */
	TOOL_USAGE = 2
};

/* The verb of this process, which all messages name. */
void tool_set_verb(const char *verb);
const char *tool_verb(void);

/* "tutti VERB: ..." on stderr; the exit code to return. usage() points to
 * --help as well. */
int tool_fail(const char *fmt, ...) TUTTI_PRINTF(1, 2);
int tool_bad_usage(const char *fmt, ...) TUTTI_PRINTF(1, 2);

/* A file to write, or for NULL our output; NULL: it cannot be, and that is printed. Then close it: the exit
 * code is `code`, or, if all was good, whether the file is whole. */
FILE *tool_open_output(const char *path);
int tool_close_output(FILE *file, const char *path, int code);

/* Write a text, and free it: TOOL_GOOD. */
int tool_write(char *text, FILE *to);

/* A variable of the system, which is no parameter of the library; "": it is not set. */
const char *tool_variable(const char *name);
/* A parameter of the library that was set; NULL: it was not. */
const char *tool_parameter(const char *variable);

/* Print one line and release it. False: out of memory, and the error was printed. */
bool tool_print_json(json_t *object);

/* The lines of a text. */
json_t *tool_json_lines(const char *text);

/* The text of the library about a call that failed. */
const char *tool_why(tutti_comm_t comm, tutti_status status);

#endif
