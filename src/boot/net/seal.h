/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_BOOT_SEAL_H
#define TTI_BOOT_SEAL_H

/* Authenticated encryption of one direction of one connection (AEAD, libsodium).
 *
 * A direction is a sequence of records. The nonce of a record is its number, which both sides count and
 * neither sends. So a record that was changed, left out, repeated or moved cannot be opened, nor can any
 * record after it. The key comes from the handshake (tti_auth_keys()). Both sides replace it after
 * TTI_SEAL_RECORDS records or TTI_SEAL_BYTES bytes: the next key is a hash of the one before, which is
 * forgotten.
 *
 * Owner: who holds the struct, in memory of util/secret.h.
 * Threads: not synchronised. */

#include <sodium.h>
#include <stddef.h>
#include <stdint.h>

#include "tutti/status.h"

#define TTI_SEAL_KEY 32
#define TTI_SEAL_MAC 16

/* A key serves for so many records, and ends with the record that brings it to so many bytes. */
#define TTI_SEAL_RECORDS (UINT64_C(1) << 24)
#define TTI_SEAL_BYTES   (UINT64_C(1) << 34)

/* On the wire: bits of the set that a side of the handshake can do. */
enum tti_seal_cipher {
	TTI_SEAL_XCHACHA = 1, /* XChaCha20-Poly1305: every build can                */
	TTI_SEAL_AES = 2,     /* AES-256-GCM: where the CPU has instructions for it */
};

/* The result of a handshake. */
struct tti_seal_keys {
	uint8_t out[TTI_SEAL_KEY], in[TTI_SEAL_KEY];
	enum tti_seal_cipher cipher;
};

struct tti_seal {
	crypto_aead_aes256gcm_state aes;
	uint8_t key[TTI_SEAL_KEY];
	enum tti_seal_cipher cipher;
	uint64_t number;                   /* of the next record                    */
	uint64_t nrecords, nbytes;         /* under this key                        */
	uint64_t records_most, bytes_most; /* of one key; tests set smaller ones */
};

/* The set of ciphers of this process; and the one that two such sets agree on. */
unsigned tti_seal_ciphers(void);
enum tti_seal_cipher tti_seal_choose(unsigned mine, unsigned theirs);

void tti_seal_init(struct tti_seal *seal, enum tti_seal_cipher cipher,
		   const uint8_t key[TTI_SEAL_KEY]);

/* The next record: nbytes of `data` become as many at `sealed` (which may be `data`), and a
 * mac. The nhead bytes of `head` are protected against change, but not hidden. */
void tti_seal_close(struct tti_seal *seal, const void *head, size_t nhead, const void *data,
		    size_t nbytes, void *sealed, uint8_t mac[TTI_SEAL_MAC]);

/* Open the next record; `data` may be `sealed`. TUTTI_EPROTO, quiet: this is not the record that the other
 * side sealed with this number. `data` is useless then, and so is all that the connection brings later. */
TUTTI_CHECKED tutti_status tti_seal_open(struct tti_seal *seal, const void *head, size_t nhead,
					 const void *sealed, size_t nbytes,
					 const uint8_t mac[TTI_SEAL_MAC], void *data);

/* The next record, of nbytes, is not looked at. */
void tti_seal_skip(struct tti_seal *seal, size_t nbytes);

#endif
