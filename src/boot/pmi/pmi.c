/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/pmi/pmi.h"

#include <pthread.h>
#include <sodium.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "boot/boot.h"
#include "util/clock.h"
#include "util/error.h"

/* A value is one letter, and bytes in hexadecimal: no launcher changes these. */
#define IS_ID    'i'
#define IS_ERROR 'e'

/* Characters of a value in texts of errors: less than comes before the secret in an id. */
#define SHOWN 16

#define BYTES_MOST ((TTI_PMI_VALUE_MOST - 1) / 2)

static void encode(char kind, const void *bytes, size_t nbytes, char *out)
{
	out[0] = kind;
	sodium_bin2hex(out + 1, TTI_PMI_VALUE_MOST, bytes, nbytes);
}

/* Rank 0 says its id, or why it has none. */
static tutti_status make_value(tutti_unique_id *id, char *value)
{
	const tutti_status st = tti_boot_id_create(id);
	const char *words = tti_error_text();

	if (st == TUTTI_OK)
		encode(IS_ID, id->bytes, sizeof(id->bytes), value);
	else
		encode(IS_ERROR, words, strnlen(words, BYTES_MOST), value);
	return st;
}

static tutti_status read_value(const char *value, tutti_unique_id *id)
{
	char bytes[BYTES_MOST + 1] = "";
	size_t nbytes = 0;
	const char *end = value;
	const bool is_hex = *value && sodium_hex2bin((uint8_t *)bytes, BYTES_MOST, value + 1,
						     strlen(value + 1), NULL, &nbytes, &end) == 0;

	if (is_hex && !*end && *value == IS_ID && nbytes == sizeof(id->bytes)) {
		memcpy(id->bytes, bytes, nbytes);
		sodium_memzero(bytes, sizeof(bytes));
		return TUTTI_OK;
	}
	if (is_hex && !*end && *value == IS_ERROR)
		return tti_fail(TUTTI_EPEER, "rank 0 has made no unique id: %s", bytes);
	return tti_fail(TUTTI_EINVAL,
			"what the launcher says that rank 0 said is no unique id: \"%.*s\", %zu "
			"bytes; use the same library on all ranks",
			SHOWN, value, strlen(value));
}

/* How this process stands with its launcher. */
static struct {
	pthread_mutex_t lock;
	unsigned ncalls;
	pid_t pid; /* that has called first; 0: nobody has */
	bool is_late;
} own = { .lock = PTHREAD_MUTEX_INITIALIZER };

static tutti_status check_own(void)
{
	if (own.pid && own.pid != getpid())
		return tti_fail(TUTTI_EUSAGE,
				"process %d has begun to talk with the launcher, and this is "
				"process %d, a child of it: only the process that the launcher "
				"has started is a rank",
				(int)own.pid, (int)getpid());
	if (own.is_late)
		return tti_fail(TUTTI_EUSAGE,
				"the launcher has not answered this process in time before, and is "
				"not asked again, for a late answer would be taken for the next "
				"one: start the job again, or set TUTTI_COMM_ID to host:port of "
				"rank 0, with TUTTI_COMM_SECRET");
	own.pid = getpid();
	return TUTTI_OK;
}

tutti_status tti_pmi_share_id(tti_pmi_way way, int rank, int nranks, int64_t timeout_ms,
			      tutti_unique_id *out)
{
	char key[32], value[TTI_PMI_VALUE_MOST + 1] = "";
	struct tti_pmi_call call = {
		.key = key,
		.value = rank == 0 ? value : NULL,
		.rank = rank,
		.nranks = nranks,
		.deadline_ns = tti_deadline(timeout_ms),
		.out = value,
		.out_size = sizeof(value),
	};
	tutti_status made = TUTTI_OK, st;

	tti_assert(sodium_init() >= 0);
	pthread_mutex_lock(&own.lock);
	st = check_own();
	if (st == TUTTI_OK) {
		(void)snprintf(key, sizeof(key), "tutti-id-%u", own.ncalls++);
		if (rank == 0)
			made = make_value(out, value);
		st = way(&call);
		own.is_late = st == TUTTI_ETIMEOUT;
	}
	pthread_mutex_unlock(&own.lock);
	if (made != TUTTI_OK)
		st = made;
	else if (st == TUTTI_OK && rank > 0)
		st = read_value(value, out);
	sodium_memzero(value, sizeof(value));
	return st;
}
