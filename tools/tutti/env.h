/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOOL_ENV_H
#define TOOL_ENV_H

/* `tutti env` and `tutti version`: the variables that the library reads, and its version. */

#include <stdbool.h>

struct env_options {
	bool json, markdown;
};

struct version_options {
	bool json;
};

int env_run(void *options);
int version_run(void *options);

#endif
