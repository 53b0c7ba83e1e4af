/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/net/seal.h"

#include <string.h>

#include "util/error.h"
#include "util/wire.h"

unsigned tti_seal_ciphers(void)
{
	tti_assert(sodium_init() >= 0);
	return TTI_SEAL_XCHACHA | (crypto_aead_aes256gcm_is_available() ? TTI_SEAL_AES : 0);
}

enum tti_seal_cipher tti_seal_choose(unsigned mine, unsigned theirs)
{
	return mine & theirs & TTI_SEAL_AES ? TTI_SEAL_AES : TTI_SEAL_XCHACHA;
}

static void use_key(struct tti_seal *seal, const uint8_t key[TTI_SEAL_KEY])
{
	memcpy(seal->key, key, TTI_SEAL_KEY);
	if (seal->cipher == TTI_SEAL_AES)
		(void)crypto_aead_aes256gcm_beforenm(&seal->aes, key);
	seal->nrecords = seal->nbytes = 0;
}

void tti_seal_init(struct tti_seal *seal, enum tti_seal_cipher cipher,
		   const uint8_t key[TTI_SEAL_KEY])
{
	memset(seal, 0, sizeof(*seal));
	seal->cipher = cipher;
	seal->records_most = TTI_SEAL_RECORDS;
	seal->bytes_most = TTI_SEAL_BYTES;
	use_key(seal, key);
}

/* A record is done. */
static void count(struct tti_seal *seal, size_t nbytes)
{
	static const uint8_t label[] = "tutti next key";
	uint8_t next[TTI_SEAL_KEY];

	seal->number++;
	seal->nrecords++;
	seal->nbytes += nbytes;
	if (seal->nrecords < seal->records_most && seal->nbytes < seal->bytes_most)
		return;
	(void)crypto_generichash(next, sizeof(next), label, sizeof(label) - 1, seal->key,
				 sizeof(seal->key));
	use_key(seal, next);
	sodium_memzero(next, sizeof(next));
}

/* Both ciphers begin with the number; XChaCha's nonce is the longer one. */
_Static_assert(crypto_aead_xchacha20poly1305_ietf_NPUBBYTES >= crypto_aead_aes256gcm_NPUBBYTES,
	       "one buffer is for both");
#define NONCE crypto_aead_xchacha20poly1305_ietf_NPUBBYTES

static void put_nonce(const struct tti_seal *seal, uint8_t nonce[NONCE])
{
	memset(nonce, 0, NONCE);
	tti_wire_put64(nonce, seal->number);
}

void tti_seal_close(struct tti_seal *seal, const void *head, size_t nhead, const void *data,
		    size_t nbytes, void *sealed, uint8_t mac[TTI_SEAL_MAC])
{
	uint8_t nonce[NONCE];

	put_nonce(seal, nonce);
	if (seal->cipher == TTI_SEAL_AES)
		(void)crypto_aead_aes256gcm_encrypt_detached_afternm(
			sealed, mac, NULL, data, nbytes, head, nhead, NULL, nonce, &seal->aes);
	else
		(void)crypto_aead_xchacha20poly1305_ietf_encrypt_detached(
			sealed, mac, NULL, data, nbytes, head, nhead, NULL, nonce, seal->key);
	count(seal, nbytes);
}

tutti_status tti_seal_open(struct tti_seal *seal, const void *head, size_t nhead,
			   const void *sealed, size_t nbytes, const uint8_t mac[TTI_SEAL_MAC],
			   void *data)
{
	uint8_t nonce[NONCE];
	int bad;

	put_nonce(seal, nonce);
	if (seal->cipher == TTI_SEAL_AES)
		bad = crypto_aead_aes256gcm_decrypt_detached_afternm(
			data, NULL, sealed, nbytes, mac, head, nhead, nonce, &seal->aes);
	else
		bad = crypto_aead_xchacha20poly1305_ietf_decrypt_detached(
			data, NULL, sealed, nbytes, mac, head, nhead, nonce, seal->key);
	if (bad)
		return tti_fail_quiet(TUTTI_EPROTO,
				      "what came was changed, left out, repeated or made up on "
				      "its way");
	count(seal, nbytes);
	return TUTTI_OK;
}

void tti_seal_skip(struct tti_seal *seal, size_t nbytes)
{
	count(seal, nbytes);
}
