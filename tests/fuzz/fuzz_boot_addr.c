/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses and interface filters that a user wrote. */
#include <arpa/inet.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "boot/net/iface.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	return setenv("TUTTI_DEBUG", "NONE", 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	char host[64];
	const char *port = NULL;

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	if (tti_addr_split(text, host, sizeof(host), &port) == TUTTI_OK) {
		const long number = strtol(port, NULL, 10);

		if (host[0] == '\0' || number < 1 || number > 65535)
			__builtin_trap();
		/* Numbers only: the fuzzer shall not ask the resolver. */
		struct in6_addr in;

		if (inet_pton(AF_INET, host, &in) == 1 || inet_pton(AF_INET6, host, &in) == 1) {
			struct tti_addr addrs[2];
			size_t n;

			(void)!tti_addr_parse(text, 0, addrs, 2, &n);
		}
	}
	(void)tti_iface_passes(text, "eth0");
	free(text);
	return 0;
}
