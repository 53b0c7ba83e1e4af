/* SPDX-License-Identifier: BSD-3-Clause */
#include "campaign/traffic.h"

#include <string.h>

struct traffic traffic;

static uint64_t word_at(uint64_t key, size_t i)
{
	return (key + i) * UINT64_C(0x9e3779b97f4a7c15);
}

void traffic_fill(uint8_t *bytes, const struct message *message)
{
	for (size_t at = 0; at < message->nbytes; at += sizeof(uint64_t)) {
		const size_t left = message->nbytes - at;
		const uint64_t word = word_at(message->key, at);

		memcpy(bytes + at, &word, left < sizeof(word) ? left : sizeof(word));
	}
}

bool traffic_is_filled(const uint8_t *bytes, const struct message *message)
{
	bool same = true;

	for (size_t at = 0; at < message->nbytes && same; at += sizeof(uint64_t)) {
		const size_t left = message->nbytes - at;
		const uint64_t word = word_at(message->key, at);

		same = memcmp(bytes + at, &word, left < sizeof(word) ? left : sizeof(word)) == 0;
	}
	return same;
}

/* None, short, around the longest that is sent at once, or anything up to the most. */
static size_t draw_size(uint64_t *random)
{
	switch (draw(random, 8)) {
	case 0:
		return 0;
	case 1:
		return 16 * 1024 - 32 + (size_t)draw(random, 64);
	default:
		return (size_t)draw(random, (TRAFFIC_BYTES >> draw(random, 20)) + 1);
	}
}

int traffic_draw(uint64_t seed)
{
	uint64_t random = seed;
	int total = 0;

	memset(&traffic, 0, sizeof(traffic));
	traffic.world = (enum world)(seed % NWORLDS);
	traffic.n = 2 + (int)draw(&random, TRAFFIC_N - 1);
	traffic.is_any = draw(&random, 2);
	traffic.ncalls = (int)draw(&random, 30);
	for (int rank = 0; rank < traffic.n; rank++)
		for (int thread = 0; thread < TRAFFIC_THREADS; thread++) {
			const int n = (int)draw(&random, TRAFFIC_SENDS + 1);

			traffic.nsends[rank][thread] = n;
			total += n;
			for (int i = 0; i < n; i++) {
				struct message *message = &traffic.sends[rank][thread][i];

				message->dest = (int)draw(&random, (uint64_t)traffic.n);
				message->tag =
					thread * TRAFFIC_TAGS + (int)draw(&random, TRAFFIC_TAGS);
				message->nbytes = draw_size(&random);
				message->key = draw(&random, UINT64_MAX);
			}
		}
	return total;
}
