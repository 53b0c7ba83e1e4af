/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOOL_SHOW_H
#define TOOL_SHOW_H

#include "tool.h"

struct show_options {
	int collective; /* -1: not said */
	const char *algorithm, *check, *hosts;
	int nranks; /* 0: not said */
	int root;
	int rank;      /* -1: all */
	size_t nbytes; /* of the vector, for --check */
	bool json;
};

int show_run(void *options);

/* Prove the algorithm in a file ("-": standard input), and say what it does for a vector
 * of `nbytes`. The exit code. */
int show_check(const char *path, size_t nbytes, bool json);

#endif
