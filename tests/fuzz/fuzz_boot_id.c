/* SPDX-License-Identifier: BSD-3-Clause */
/* A unique id that came from anywhere: as it is, and with head and check value
 * made right, so that what is behind them is reached. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "boot/init/id.h"
#include "util/hash.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	return setenv("TUTTI_DEBUG", "NONE", 1);
}

static void decode(const tutti_unique_id *in)
{
	struct tti_id id, again;
	tutti_unique_id out;

	if (tti_id_decode(in, &id) != TUTTI_OK)
		return;
	if (id.naddrs > TTI_IFACE_MOST || id.naddrs == 0)
		__builtin_trap();
	tti_id_encode(&id, &out);
	if (tti_id_decode(&out, &again) != TUTTI_OK || memcmp(&id, &again, sizeof(id)) != 0)
		__builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	tutti_unique_id id = { { 0 } };

	memcpy(id.bytes, data, size < sizeof(id) ? size : sizeof(id));
	decode(&id);
	memcpy(id.bytes, "TUTTI-ID\x01", 9);

	const uint32_t check = (uint32_t)tti_hash_bytes(id.bytes, 124);

	memcpy(id.bytes + 124, &check, sizeof(check));
	decode(&id);
	return 0;
}
