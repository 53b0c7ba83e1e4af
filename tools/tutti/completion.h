/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOOL_COMPLETION_H
#define TOOL_COMPLETION_H

/* Completion of command lines. The script that a shell reads asks `tutti completion words`, with the
 * words up to the cursor behind it, for what may come there: it is in the table of commands. */

#include "cli.h"

struct completion_options {
	int shell; /* bash, zsh, fish */
};

/* Print the script for a shell: the exit code. */
int completion_run(const struct cli_command *commands, const struct completion_options *options);

/* Print what the last word may be, each with a tab and its help behind: the words between are of a command
 * line, without "tutti". A line ":files", ":programs" asks the shell for those of its own. */
void completion_print_words(const struct cli_command *commands, int argc, char **argv);

#endif
