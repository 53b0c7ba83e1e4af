/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/pattern.h"

#include <pthread.h>
#include <string.h>

#include "support/reference.h"

/* A prime, so that what lies by a power of two away is something else. */
#define PERIOD 65521

static uint8_t bytes[PERIOD];
static pthread_once_t drawn = PTHREAD_ONCE_INIT;

static void draw(void)
{
	uint64_t random = 1;

	for (size_t i = 0; i < PERIOD; i++)
		bytes[i] = (uint8_t)(next_random(&random) >> 24);
}

/* Where the bytes of a key begin. */
static size_t begin(uint64_t key)
{
	uint64_t random = key;

	pthread_once(&drawn, draw);
	return (size_t)(next_random(&random) % PERIOD);
}

static size_t piece(size_t nbytes, size_t at)
{
	return nbytes < PERIOD - at ? nbytes : PERIOD - at;
}

void pattern_fill(void *data, size_t nbytes, uint64_t key)
{
	uint8_t *to = data;

	for (size_t at = begin(key); nbytes > 0; at = 0) {
		const size_t n = piece(nbytes, at);

		memcpy(to, bytes + at, n);
		to += n;
		nbytes -= n;
	}
}

size_t pattern_agrees(const void *data, size_t nbytes, uint64_t key)
{
	const uint8_t *from = data;
	size_t agree = 0;

	for (size_t at = begin(key); agree < nbytes; at = 0) {
		const size_t n = piece(nbytes - agree, at);
		size_t i = 0;

		if (memcmp(from + agree, bytes + at, n) == 0)
			i = n;
		while (i < n && from[agree + i] == bytes[at + i])
			i++;
		agree += i;
		if (i < n)
			break;
	}
	return agree;
}
