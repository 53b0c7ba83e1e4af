/* SPDX-License-Identifier: BSD-3-Clause */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "util/error.h"
#include "util/log.h"
#include "util/params.h"

/* The input is an environment: entries that end in a zero byte. What is read
 * from it must be within the ranges of params.def, whatever it says. */

#define MOST_ENTRIES 64

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	return setenv("TUTTI_DEBUG", "NONE", 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
	struct tti_param_values params;
	char *env[MOST_ENTRIES + 1];
	char *text = malloc(nbytes + 1);
	size_t n = 0;

	if (!text)
		return 0;
	if (nbytes)
		memcpy(text, data, nbytes);
	text[nbytes] = '\0';
	for (size_t at = 0; at <= nbytes && n < MOST_ENTRIES; at += strlen(text + at) + 1)
		env[n++] = text + at;
	env[n] = NULL;

	memset(&params, 0xff, sizeof(params));
	tti_assert(tti_params_read(env, &params) == TUTTI_OK);
	tti_assert(params.debug >= TTI_LOG_NONE && params.debug <= TTI_LOG_TRACE);
	tti_assert(params.rank >= -1 && params.nranks >= -1);
	tti_assert(params.socket_family >= 0 && params.socket_family <= 2);
	tti_assert(params.shm_slot >= 4096 && params.shm_slot <= 64 << 20);
	tti_assert(params.slice <= 64 << 20);
	tti_assert(params.tcp_sockets >= 1 && params.tcp_sockets <= 16);
	tti_assert(params.stall_ms >= 10 && params.timeout_ms >= 0);
	tti_assert(!params.comm_id || (params.comm_id > text && *params.comm_id));
	tti_assert(params.transport && *params.transport);
	free(text);
	return 0;
}
