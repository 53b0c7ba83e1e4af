/* SPDX-License-Identifier: BSD-3-Clause */
/* Results, their texts, and the last error of each thread. */
#include "binding.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Programs look for this text in the file, without loading it. */
static const char banner[] __attribute__((used)) = "NCCL version 2.32.3+cuda0.0";

static _Thread_local struct {
	ncclComm_t comm;
	char text[1024];
} last;

ncclResult_t tti_nccl_result(tutti_status status)
{
	switch (status) {
	case TUTTI_OK:
		return ncclSuccess;
	case TUTTI_AGAIN:
		return ncclInProgress;
	case TUTTI_EINVAL:
		return ncclInvalidArgument;
	case TUTTI_EUSAGE:
	case TUTTI_EUNSUPPORTED:
	case TUTTI_EMISMATCH:
	case TUTTI_EREVOKED:
		return ncclInvalidUsage;
	case TUTTI_ESYS:
	case TUTTI_ENOMEM:
		return ncclSystemError;
	case TUTTI_EPEER:
	case TUTTI_EPROTO:
		return ncclRemoteError;
	case TUTTI_ETIMEOUT:
		return ncclTimeout;
	case TUTTI_EINTERNAL:
	case TUTTI_ECANCELED:
	case TUTTI_EABORTED:
	case TUTTI_EPLAN:
		break;
	}
	return ncclInternalError;
}

void tti_nccl_keep(ncclComm_t comm, const char *text)
{
	last.comm = comm;
	(void)snprintf(last.text, sizeof(last.text), "%s", text);
}

ncclResult_t tti_nccl_report(ncclComm_t comm, tutti_status status)
{
	const struct tti_nccl_trouble trouble = tti_nccl_take_trouble();

	if (status < 0)
		tti_nccl_keep(comm, tutti_last_error(NULL));
	if (!trouble.error || (status != TUTTI_ESYS && !trouble.is_made))
		return tti_nccl_result(status);
	return tti_nccl_fail(comm, ncclUnhandledCudaError, "%s() gave error %d, so %s",
			     trouble.function, trouble.error,
			     trouble.is_made
				     ? "the call is made, but its stream does not wait for it"
				     : "the call was not made");
}

/* The value of TUTTI_DEBUG in force, which NCCL_DEBUG may have set. */
static bool is_logged(const char *const *levels)
{
	tutti_param_info info;

	for (int i = 0; tutti_param_get(i, &info) == TUTTI_OK; i++)
		if (!strcmp(info.variable, "TUTTI_DEBUG")) {
			for (; *levels; levels++)
				if (!strcasecmp(info.value, *levels))
					return true;
			break;
		}
	return false;
}

ncclResult_t tti_nccl_fail(ncclComm_t comm, ncclResult_t result, const char *fmt, ...)
{
	static const char *const levels[] = { "WARN", "INFO", "TRACE", NULL };
	char text[sizeof(last.text)];
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	if (is_logged(levels))
		(void)fprintf(stderr, "tutti WARN nccl %s\n", text);
	tti_nccl_group_spoil(result);
	tti_nccl_keep(comm, text);
	return result;
}

void tti_nccl_info(const char *fmt, ...)
{
	static const char *const levels[] = { "INFO", "TRACE", NULL };
	char text[sizeof(last.text)];
	va_list args;

	if (!is_logged(levels))
		return;
	va_start(args, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	(void)fprintf(stderr, "tutti INFO nccl %s\n", text);
}

/* -- The functions ------------------------------------------------------------ */

ncclResult_t pncclGetVersion(int *version)
{
	if (!version)
		return tti_nccl_fail(NULL, ncclInvalidArgument, "version is NULL");
	*version = NCCL_VERSION_CODE;
	return ncclSuccess;
}
ALSO_NAMED(ncclGetVersion);

const char *pncclGetErrorString(ncclResult_t result)
{
	static const char *const texts[] = {
		[ncclSuccess] = "no error",
		[ncclUnhandledCudaError] = "a function of CUDA failed",
		[ncclSystemError] = "a system call failed, or there is no memory",
		[ncclInternalError] = "internal error",
		[ncclInvalidArgument] = "invalid argument",
		[ncclInvalidUsage] = "call not allowed here",
		[ncclRemoteError] = "a peer failed or left",
		[ncclInProgress] = "not finished, ask again",
		[ncclTimeout] = "a deadline passed",
	};

	return (unsigned)result < ncclNumResults ? texts[result] : "not a result of NCCL";
}
ALSO_NAMED(ncclGetErrorString);

const char *pncclGetLastError(ncclComm_t comm)
{
	const bool is_ours = !comm || last.comm == comm || !comm->is_alive || !comm->comm;
	const char *text = is_ours ? last.text : tutti_last_error(comm->comm);

	return *text ? text : last.text;
}
ALSO_NAMED(ncclGetLastError);

void pncclResetDebugInit(void)
{
}
ALSO_NAMED(ncclResetDebugInit);

__attribute__((visibility("default"))) void ncclResetDebugInitInternal(void)
{
}
