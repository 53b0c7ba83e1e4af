/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOOL_SHOW_H
#define TOOL_SHOW_H

#include "tool.h"

/* Prove the algorithm in a file ("-": standard input), and say what it does for a vector
 * of `nbytes`. The exit code. */
int show_check(const char *path, size_t nbytes, bool json);

#endif
