/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOOL_ENV_H
#define TOOL_ENV_H

/* What the library is and goes by: every variable of the environment that it reads, its version. */

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
