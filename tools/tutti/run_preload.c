/* SPDX-License-Identifier: BSD-3-Clause */
#include "run_preload.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The last one in front of all: who names it first is asked first. */
static bool preload(const char *option, const char *path)
{
	const char *const others = tool_variable("LD_PRELOAD");
	char text[16 * PATH_MAX];

	if (access(path, R_OK) < 0)
		return tool_fail("%s needs %s: %s: install it there, with the same version of "
				 "tutti",
				 option, path, strerror(errno)),
		       false;
	if (strpbrk(path, ": "))
		return tool_fail("%s: LD_PRELOAD cannot have '%s', with a space or a colon: "
				 "install tutti elsewhere",
				 option, path),
		       false;
	if (snprintf(text, sizeof(text), "%s%s%s", path, *others ? ":" : "", others) >=
		    (int)sizeof(text) ||
	    setenv("LD_PRELOAD", text, 1) != 0)
		return tool_fail("%s: LD_PRELOAD has %zu bytes already: make it shorter", option,
				 strlen(others)),
		       false;
	return true;
}

/* From the folder of this program. */
static bool preload_all(const char *option, const char *const *libraries)
{
	char self[PATH_MAX] = "", path[2 * PATH_MAX];
	char *slash;

	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0 || !(slash = strrchr(self, '/')))
		return tool_fail("/proc/self/exe: %s", strerror(errno)), false;
	*slash = '\0';
	for (; *libraries; libraries++) {
		snprintf(path, sizeof(path), "%s/%s", self, *libraries);
		if (!preload(option, path))
			return false;
	}
	return true;
}

bool run_preload_malloc(void)
{
	static const char *const libraries[] = { TUTTI_LIB "/libtutti_malloc.so", NULL };

	return preload_all("--shared-malloc", libraries);
}

/* Preloaded, since a library may be found by a path in the one that needs it, which counts more than
 * LD_LIBRARY_PATH: PyTorch's is. */
bool run_preload_cuda(void)
{
	static const char *const libraries[] = { TUTTI_LIB "/tutti/nccl/libnccl.so.2",
						 TUTTI_LIB "/tutti/cuda/libcudart.so.12",
						 TUTTI_LIB "/tutti/cuda/libcudart.so.13",
						 TUTTI_LIB "/tutti/cuda/libcuda.so.1", NULL };

	return preload_all("--gpus", libraries);
}
