/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOOL_DOCTOR_H
#define TOOL_DOCTOR_H

/* `tutti doctor`: what a program with GPUs finds on this machine. */

#include <stdbool.h>

struct doctor_options {
	int color; /* TOPO_AUTO and so on */
	bool json;
};

int doctor_run(void *options);

#endif
