/* SPDX-License-Identifier: BSD-3-Clause */
/* Both sides of the handshake, fed by a stranger. Byte 0 says which side and in
 * what pieces; the rest is what comes over the wire. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "boot/net/auth.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t secret[32] = { 7 };
	struct tti_auth auth;
	tutti_status status = TUTTI_AGAIN;

	if (size < 1)
		return 0;

	const size_t piece = 1 + (data[0] >> 1) % 64;

	tti_auth_init(&auth, data[0] & 1, data[0] & 1 ? TTI_AUTH_DATA : TTI_AUTH_ANY, secret,
		      "0123456789abcdef", 16);
	for (size_t at = 1; at < size && status == TUTTI_AGAIN && tti_auth_wants(&auth) > 0;) {
		const uint8_t *out;
		size_t n = tti_auth_wants(&auth);

		n = n < piece ? n : piece;
		n = n < size - at ? n : size - at;
		status = tti_auth_feed(&auth, data + at, n);
		tti_auth_sent(&auth, tti_auth_output(&auth, &out));
		at += n;
	}
	/* Nobody guesses a proof. */
	if (tti_auth_done(&auth))
		__builtin_trap();
	return 0;
}
