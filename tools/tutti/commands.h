/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOOL_COMMANDS_H
#define TOOL_COMMANDS_H

#include "cli.h"

/* All verbs, each before those below it ("topo", "topo lint"); the last has no name. */
extern const struct cli_command commands[];

#endif
