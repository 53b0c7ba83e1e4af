/* SPDX-License-Identifier: BSD-3-Clause */
#include "device_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime.h"

static int usage(const char *program)
{
	(void)fprintf(stderr,
		      "usage: %s check SECONDS [SEED]\n"
		      "       %s every [--small]\n"
		      "       %s times RANKS [--small]    2 to %d ranks\n",
		      program, program, program, TTI_DEV_CALLS_MAX);
	return 2;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	const bool is_small = argc > 2 && !strcmp(argv[argc - 1], "--small");
	const char *first = argc > 2 ? argv[2] : "";
	const int n = atoi(first);

	if ((strcmp(what, "check") != 0 || argc < 3) && strcmp(what, "every") != 0 &&
	    (strcmp(what, "times") != 0 || n < 2 || n > TTI_DEV_CALLS_MAX))
		return usage(argv[0]);
	cuda_open();
	CUDA(SetDevice(0));
	if (!strcmp(what, "check"))
		return device_check(device_gpu_open(), strtod(first, NULL),
				    argc > 3 ? strtoull(argv[3], NULL, 0) : 1);
	if (!strcmp(what, "every"))
		return device_every(device_gpu_open(), is_small);
	return device_times(device_gpu_open(), n, is_small);
}
