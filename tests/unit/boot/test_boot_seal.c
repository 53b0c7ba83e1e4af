/* SPDX-License-Identifier: BSD-3-Clause */
/* Records that are sealed: known answers, and all that may be done to them on their way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "boot/net/seal.h"
#include "util/error.h"

#define HEAD 4
#define MOST 64

struct record {
	uint8_t bytes[HEAD + MOST + TTI_SEAL_MAC];
	size_t nbytes; /* of its data */
};

static const uint8_t *key_of_tests(void)
{
	static uint8_t key[TTI_SEAL_KEY];

	for (int i = 0; i < TTI_SEAL_KEY; i++)
		key[i] = (uint8_t)i;
	return key;
}

/* Both ends of a direction that gets new keys after `most` records. */
static void make(enum tti_seal_cipher cipher, uint64_t most, struct tti_seal ends[2])
{
	for (int i = 0; i < 2; i++) {
		tti_seal_init(&ends[i], cipher, key_of_tests());
		ends[i].records_most = most;
	}
}

static void put(struct tti_seal *seal, const char *text, struct record *out)
{
	out->nbytes = strlen(text);
	memcpy(out->bytes, "head", HEAD);
	memcpy(out->bytes + HEAD, text, out->nbytes);
	tti_seal_close(seal, out->bytes, HEAD, out->bytes + HEAD, out->nbytes, out->bytes + HEAD,
		       out->bytes + HEAD + out->nbytes);
}

static tutti_status get(struct tti_seal *seal, const struct record *from, char *text)
{
	text[from->nbytes] = '\0';
	return tti_seal_open(seal, from->bytes, HEAD, from->bytes + HEAD, from->nbytes,
			     from->bytes + HEAD + from->nbytes, text);
}

/* The ciphers that this machine has, one after the other. */
static bool next_cipher(enum tti_seal_cipher *cipher)
{
	*cipher = *cipher ? *cipher * 2 : TTI_SEAL_XCHACHA;
	return (tti_seal_ciphers() & *cipher) != 0;
}

/* Worked out by another program (Python's cryptography, and HChaCha20 of the draft): records 0
 * and 1, and the first one of the next key. */
static void known_answers(void **state)
{
	static const char *const expected[3][3] = {
		[TTI_SEAL_XCHACHA] = { "fe68e3b082a8957577e7114d896e4a170f6f4d78e372816858c2ee68b72"
				       "05c",
				       "d16d1420f73dfbeb33ee461d9c1e932a15fb3e4415d4e6fd6f817beb608"
				       "3cc",
				       "dde84804aa49413f589c38b5a80f243b37db4db1657d51fa732328fa1f5"
				       "93c" },
		[TTI_SEAL_AES] = { "65d2daa9db0cf3d169c1c7417d54e5b752e04deb79527e179d6e0bcaaf5943",
				   "8942ed48ca8f9c6b2b6d6bb759b9fc078e1ee651ce2b3764e6914090170080",
				   "2932bbad8fa15060fe6976716d7c91b18b656745dbfbba7a0597ba9a6c51a"
				   "1" },
	};
	enum tti_seal_cipher cipher = 0;

	(void)state;
	while (next_cipher(&cipher)) {
		struct tti_seal ends[2];

		make(cipher, 2, ends);
		for (int i = 0; i < 3; i++) {
			char text[2 * (MOST + TTI_SEAL_MAC) + 1], back[MOST];
			struct record record;

			put(&ends[0], "known plaintext", &record);
			sodium_bin2hex(text, sizeof(text), record.bytes + HEAD,
				       record.nbytes + TTI_SEAL_MAC);
			assert_string_equal(text, expected[cipher][i]);
			assert_int_equal(get(&ends[1], &record, back), TUTTI_OK);
			assert_string_equal(back, "known plaintext");
		}
	}
}

/* Whatever bit of head, data or mac is changed. */
static void a_changed_bit_is_refused(void **state)
{
	enum tti_seal_cipher cipher = 0;

	(void)state;
	while (next_cipher(&cipher)) {
		struct tti_seal ends[2];
		struct record record;
		char back[MOST];

		make(cipher, TTI_SEAL_RECORDS, ends);
		put(&ends[0], "forty-two bytes, more than a block of each", &record);
		for (size_t bit = 0; bit < 8 * (HEAD + record.nbytes + TTI_SEAL_MAC); bit++) {
			record.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
			assert_int_equal(get(&ends[1], &record, back), TUTTI_EPROTO);
			record.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
		}
		for (size_t nbytes = record.nbytes; nbytes-- > 0;) {
			struct record shorter = record;

			shorter.nbytes = nbytes;
			assert_int_equal(get(&ends[1], &shorter, back), TUTTI_EPROTO);
		}
		assert_int_equal(get(&ends[1], &record, back), TUTTI_OK);
	}
}

/* Of ten records, on both sides of a change of keys: only the next one can be opened. */
static void only_the_next_record_opens(void **state)
{
	enum tti_seal_cipher cipher = 0;

	(void)state;
	while (next_cipher(&cipher)) {
		struct tti_seal ends[2];
		struct record record[10];
		char back[MOST];

		make(cipher, 3, ends);
		for (int i = 0; i < 10; i++)
			put(&ends[0], i % 2 ? "odd" : "even", &record[i]);
		for (int next = 0; next < 10; next++) {
			for (int i = 0; i < 10; i++) {
				if (i != next)
					assert_int_equal(get(&ends[1], &record[i], back),
							 TUTTI_EPROTO);
			}
			assert_int_equal(get(&ends[1], &record[next], back), TUTTI_OK);
			assert_string_equal(back, next % 2 ? "odd" : "even");
		}
	}
}

/* What is skipped counts like what is opened; keys change by bytes as well. */
static void both_sides_change_keys_together(void **state)
{
	struct tti_seal ends[2];
	struct record record;
	char back[MOST];

	(void)state;
	for (int skip = 0; skip < 2; skip++) {
		make(TTI_SEAL_XCHACHA, TTI_SEAL_RECORDS, ends);
		ends[0].bytes_most = ends[1].bytes_most = 10;
		put(&ends[0], "123456789", &record);
		assert_memory_equal(ends[0].key, key_of_tests(), TTI_SEAL_KEY);
		if (skip)
			tti_seal_skip(&ends[1], record.nbytes);
		else
			assert_int_equal(get(&ends[1], &record, back), TUTTI_OK);
		put(&ends[0], "0", &record);
		assert_memory_not_equal(ends[0].key, key_of_tests(), TTI_SEAL_KEY);
		assert_int_equal(get(&ends[1], &record, back), TUTTI_OK);
		assert_memory_equal(ends[0].key, ends[1].key, TTI_SEAL_KEY);
		put(&ends[0], "behind it", &record);
		assert_int_equal(get(&ends[1], &record, back), TUTTI_OK);
	}
}

static void the_better_cipher_of_both(void **state)
{
	(void)state;
	assert_int_equal(tti_seal_choose(3, 3), TTI_SEAL_AES);
	assert_int_equal(tti_seal_choose(3, 1), TTI_SEAL_XCHACHA);
	assert_int_equal(tti_seal_choose(1, 3), TTI_SEAL_XCHACHA);
	assert_int_equal(tti_seal_choose(1, 0), TTI_SEAL_XCHACHA);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_answers),
		cmocka_unit_test(a_changed_bit_is_refused),
		cmocka_unit_test(only_the_next_record_opens),
		cmocka_unit_test(both_sides_change_keys_together),
		cmocka_unit_test(the_better_cipher_of_both),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
