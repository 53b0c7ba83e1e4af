/* SPDX-License-Identifier: BSD-3-Clause */
/* What sealing and opening costs one core: GB/s of each cipher that the CPU has, by the bytes of
 * a record. Medians of 7.
 *
 *     bench_seal [MS]
 *         MS   per figure, 100 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "boot/net/seal.h"
#include "util/clock.h"

#define REPEATS 7
#define MOST    ((size_t)1 << 20)

static int64_t figure_ns = 100 * TTI_NS_PER_MS;

static int compare(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* GB/s; opening is measured with what was sealed just before, whose time is not counted. */
static double measure(enum tti_seal_cipher cipher, size_t size, bool opens)
{
	static uint8_t plain[MOST], sealed[MOST + TTI_SEAL_MAC];
	static const uint8_t key[TTI_SEAL_KEY] = { 1 };
	double value[REPEATS];

	for (int i = 0; i < REPEATS; i++) {
		struct tti_seal out, in;
		int64_t spent = 0;
		size_t nbytes = 0;

		tti_seal_init(&out, cipher, key);
		tti_seal_init(&in, cipher, key);
		while (spent < figure_ns) {
			const int64_t t0 = tti_now_ns();
			int64_t t1;

			tti_seal_close(&out, NULL, 0, plain, size, sealed, sealed + size);
			t1 = tti_now_ns();
			if (opens &&
			    tti_seal_open(&in, NULL, 0, sealed, size, sealed + size, sealed))
				abort();
			spent += opens ? tti_now_ns() - t1 : t1 - t0;
			nbytes += size;
		}
		value[i] = (double)nbytes / (double)spent;
	}
	qsort(value, REPEATS, sizeof(*value), compare);
	return value[REPEATS / 2];
}

int main(int argc, char **argv)
{
	static const char *const names[] = {
		[TTI_SEAL_XCHACHA] = "XChaCha20-Poly1305", [TTI_SEAL_AES] = "AES-256-GCM"
	};

	if (argc > 1)
		figure_ns = atol(argv[1]) * TTI_NS_PER_MS;
	printf("%-20s %8s %10s %10s\n", "cipher", "bytes", "seal GB/s", "open GB/s");
	for (int cipher = TTI_SEAL_XCHACHA; cipher <= TTI_SEAL_AES; cipher *= 2) {
		for (size_t size = 64; size <= MOST && tti_seal_ciphers() & (unsigned)cipher;
		     size = size == 64         ? 4096
			    : size * 32 > MOST ? size * 8
					       : size * 32)
			printf("%-20s %8zu %10.2f %10.2f\n", names[cipher], size,
			       measure((enum tti_seal_cipher)cipher, size, false),
			       measure((enum tti_seal_cipher)cipher, size, true));
	}
	return 0;
}
