/* SPDX-License-Identifier: BSD-3-Clause */
#include "gpu/nvml.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "gpu/nvml_abi.h"
#include "util/error.h"
#include "util/mem.h"
#include "util/params.h"

#define USUAL_LIBRARY "libnvidia-ml.so.1"

/* The first required symbol that is missing; NULL: none is. */
static const char *load_functions(struct tti_nvml *nvml)
{
	static const struct {
		const char *symbol;
		size_t at;
		bool needed;
	} table[] = {
#define X(needed, result, field, symbol, arguments) \
	{ #symbol, offsetof(struct tti_nvml_functions, field), needed },
		TTI_NVML_FUNCTION_MAP(X)
#undef X
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		void *const function = dlsym(nvml->library, table[i].symbol);

		if (!function && table[i].needed)
			return table[i].symbol;
		/* Where there is dlsym(), pointers to functions are as pointers to data. */
		memcpy((char *)&nvml->call + table[i].at, &function, sizeof(function));
	}
	return NULL;
}

/* What the driver answers, once its library is loaded; 0: it works. */
static int ask_driver(struct tti_nvml *nvml)
{
	int rc = nvml->call.init();

	if (rc != TTI_NVML_SUCCESS)
		return rc;
	rc = nvml->call.count(&nvml->count);
	if (rc != TTI_NVML_SUCCESS) {
		(void)nvml->call.shutdown();
		return rc;
	}
	if (!nvml->call.driver ||
	    nvml->call.driver(nvml->driver, sizeof(nvml->driver)) != TTI_NVML_SUCCESS)
		nvml->driver[0] = '\0';
	nvml->driver[sizeof(nvml->driver) - 1] = '\0';
	return TTI_NVML_SUCCESS;
}

/* The text lives as long as this thread's last error. */
static const char *keep_text(tutti_status ignored)
{
	(void)ignored;
	return tti_error_text();
}

tutti_status tti_nvml_open_library(const char *path, struct tti_nvml **out, const char **why_out)
{
	const char *const name = path ? path : USUAL_LIBRARY;
	struct tti_nvml *nvml = tti_zalloc(sizeof(*nvml));
	const char *missing;
	tutti_status status;
	int rc;

	*out = NULL;
	*why_out = "";
	if (!nvml)
		return tti_fail(TUTTI_ENOMEM, "no memory for the table of %s", name);
	nvml->library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	if (!nvml->library) {
		status = tti_fail_quiet(TUTTI_EINVAL, "%s", dlerror());
		goto unusable;
	}
	missing = load_functions(nvml);
	if (missing) {
		status = tti_fail_quiet(TUTTI_EINVAL, "%s has no %s(): %s", name, missing,
					path ? "it is no NVML" : "the driver is too old");
		goto unusable;
	}
	rc = ask_driver(nvml);
	if (rc != TTI_NVML_SUCCESS) {
		*why_out = keep_text(tti_fail_quiet(TUTTI_ESYS, "%s says: %s", name,
						    nvml->call.error_string(rc)));
		goto without;
	}
	*out = nvml;
	return TUTTI_OK;

unusable:
	if (path) {
		status = tti_fail(status, "TUTTI_NVML_LIB=%s cannot be used: %s", path,
				  tti_error_text());
		if (nvml->library)
			dlclose(nvml->library);
		tti_free(nvml);
		return status;
	}
	*why_out = tti_error_text();
without:
	if (nvml->library)
		dlclose(nvml->library);
	tti_free(nvml);
	return TUTTI_OK;
}

tutti_status tti_nvml_open(struct tti_nvml **out, const char **why_out)
{
	return tti_nvml_open_library(tti_params()->nvml_lib, out, why_out);
}

void tti_nvml_close(struct tti_nvml *nvml)
{
	if (!nvml)
		return;
	(void)nvml->call.shutdown();
	dlclose(nvml->library);
	tti_free(nvml);
}

int tti_nvml_count(const struct tti_nvml *nvml)
{
	return (int)nvml->count;
}

const char *tti_nvml_driver(const struct tti_nvml *nvml)
{
	return nvml->driver;
}

static const char *p2p_text(int answer)
{
	static const char *const texts[] = {
		[TTI_NVML_P2P_OK] = "",
		[TTI_NVML_P2P_CHIPSET] = "the chipset does not support it",
		[TTI_NVML_P2P_GPU] = "the GPU does not support it",
		[TTI_NVML_P2P_IOH] = "they hang on different I/O hubs",
		[TTI_NVML_P2P_REGKEY] = "a setting of the driver forbids it",
		[TTI_NVML_P2P_NOT_SUPPORTED] = "it is not supported",
	};

	if (answer < 0 || (size_t)answer >= sizeof(texts) / sizeof(texts[0]))
		return "the driver does not know";
	return texts[answer];
}

bool tti_nvml_p2p(const struct tti_nvml *nvml, int a, int b, const char **why_out)
{
	static const int ways[] = { TTI_NVML_P2P_READ, TTI_NVML_P2P_WRITE };
	tti_nvml_dev from, to;

	*why_out = "";
	if (!nvml->call.p2p)
		return true; /* so old that only trying will tell */
	if (nvml->call.handle((unsigned)a, &from) != TTI_NVML_SUCCESS ||
	    nvml->call.handle((unsigned)b, &to) != TTI_NVML_SUCCESS) {
		*why_out = "the driver does not reach the GPU";
		return false;
	}
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		int answer = TTI_NVML_P2P_UNKNOWN;
		const int rc = nvml->call.p2p(from, to, ways[i], &answer);

		if (rc != TTI_NVML_SUCCESS)
			*why_out = nvml->call.error_string(rc);
		else if (answer != TTI_NVML_P2P_OK)
			*why_out = p2p_text(answer);
		else
			continue;
		return false;
	}
	return true;
}
