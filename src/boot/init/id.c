/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/init/id.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <sodium.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "boot/init/root.h"
#include "boot/net/wire.h"
#include "util/error.h"
#include "util/fd.h"
#include "util/fork.h"
#include "util/hash.h"
#include "util/log.h"
#include "util/params.h"

#define VERSION   1
#define SECRET_AT 12
#define ADDRS_AT  45
#define CHECK_AT  124

/* Bytes of TUTTI_COMM_SECRET, at least. */
#define SECRET_LEAST  16
/* argon2id with the least that OWASP recommends: some 13 ms of one core, on every rank of a host at the same
 * time. */
#define PWHASH_BYTES  (19 << 20)
#define PWHASH_PASSES 2

static const uint8_t magic[8] = { 'T', 'U', 'T', 'T', 'I', '-', 'I', 'D' };

void tti_id_encode(const struct tti_id *id, tutti_unique_id *out)
{
	uint8_t *bytes = (uint8_t *)out->bytes;
	const uint16_t port = id->naddrs > 0 ? id->addrs[0].port : 0;

	memset(out, 0, sizeof(*out));
	memcpy(bytes, magic, 8);
	bytes[8] = VERSION;
	bytes[9] = (uint8_t)id->flags;
	memcpy(bytes + 10, &port, 2);
	memcpy(bytes + SECRET_AT, id->secret, TTI_SECRET_BYTES);
	bytes[44] = (uint8_t)tti_addrs_pack(id->addrs, id->naddrs, bytes + ADDRS_AT,
					    CHECK_AT - ADDRS_AT);

	const uint32_t check = (uint32_t)tti_hash_bytes(bytes, CHECK_AT);

	memcpy(bytes + CHECK_AT, &check, 4);
}

tutti_status tti_id_decode(const tutti_unique_id *in, struct tti_id *out)
{
	const uint8_t *bytes = (const uint8_t *)in->bytes;
	uint16_t port;
	uint32_t check;

	memset(out, 0, sizeof(*out));
	if (memcmp(bytes, magic, 8) != 0)
		return tti_fail(TUTTI_EINVAL,
				"this is no unique id: pass what "
				"tutti_get_unique_id() wrote, all %d bytes",
				TUTTI_UNIQUE_ID_BYTES);
	if (bytes[8] != VERSION)
		return tti_fail(TUTTI_EINVAL,
				"the unique id has version %u, this library makes version %d: "
				"use the same library on all ranks",
				bytes[8], VERSION);
	memcpy(&check, bytes + CHECK_AT, 4);
	if (check != (uint32_t)tti_hash_bytes(bytes, CHECK_AT))
		return tti_fail(TUTTI_EINVAL, "the unique id was damaged on its way: its check "
					      "value does not fit");
	memcpy(&port, bytes + 10, 2);
	out->flags = bytes[9];
	memcpy(out->secret, bytes + SECRET_AT, TTI_SECRET_BYTES);
	if (bytes[44] > CHECK_AT - ADDRS_AT ||
	    tti_addrs_unpack(bytes + ADDRS_AT, bytes[44], port, out->addrs, TTI_IFACE_MOST,
			     &out->naddrs) != TUTTI_OK ||
	    out->naddrs == 0 || port == 0)
		return tti_fail(TUTTI_EINVAL, "the unique id holds no address");
	return TUTTI_OK;
}

/* The key of a secret that people chose. A process that poses as a rank gets a proof of the key from ranks
 * that connect to it, and can try guesses on that: each costs as much as this function does. The address
 * is the salt, so that no guess serves for two jobs. */
static tutti_status key_of(const char *address, const char *secret, uint8_t *key)
{
	uint8_t salt[crypto_pwhash_SALTBYTES];
	const size_t len = strlen(secret);

	if (len < SECRET_LEAST)
		return tti_fail(
			TUTTI_EINVAL,
			"TUTTI_COMM_SECRET has %zu bytes, which can be guessed; it needs %d "
			"or more, and the same on all ranks: "
			"export TUTTI_COMM_SECRET=$(head -c 24 /dev/urandom | base64)",
			len, SECRET_LEAST);
	crypto_generichash(salt, sizeof(salt), (const uint8_t *)address, strlen(address), NULL, 0);
	if (crypto_pwhash(key, TTI_SECRET_BYTES, secret, len, salt, PWHASH_PASSES, PWHASH_BYTES,
			  crypto_pwhash_ALG_ARGON2ID13) != 0)
		return tti_fail(TUTTI_ENOMEM,
				"no memory for the key of TUTTI_COMM_SECRET: it takes %d MiB",
				PWHASH_BYTES >> 20);
	return TUTTI_OK;
}

static bool loopback_is_off(void)
{
	struct ifreq lo = { .ifr_name = "lo" };
	int fd = tti_fork_socket(AF_INET, SOCK_DGRAM);
	const bool is_off =
		fd >= 0 && ioctl(fd, SIOCGIFFLAGS, &lo) == 0 && !(lo.ifr_flags & IFF_UP);

	tti_fd_close(&fd);
	return is_off;
}

/* A NIC may come up while the ranks wait, but nobody switches the loopback interface on later. */
static tutti_status check_loopback(const char *address, const struct tti_id *id)
{
	for (size_t i = 0; i < id->naddrs; i++)
		if (!tti_addr_is_loopback(&id->addrs[i]))
			return TUTTI_OK;
	if (!loopback_is_off())
		return TUTTI_OK;
	return tti_fail(TUTTI_ESYS,
			"the ranks are to meet at %s, but the loopback interface of this host is "
			"down: switch it on (ip link set lo up), or set TUTTI_COMM_FILE in place "
			"of the address",
			address);
}

tutti_status tti_boot_id_from_address(const char *address, const char *secret, int64_t timeout_ms,
				      tutti_unique_id *out)
{
	struct tti_id id = { .flags = TTI_ID_BY_HAND };

	tti_assert(sodium_init() >= 0);
	TTI_TRY(tti_addr_parse(address, timeout_ms, id.addrs, TTI_IFACE_MOST, &id.naddrs));
	TTI_TRY(check_loopback(address, &id));
	if (secret) {
		TTI_TRY(key_of(address, secret, id.secret));
	} else {
		id.flags |= TTI_ID_OPEN;
		crypto_generichash(id.secret, sizeof(id.secret), (const uint8_t *)address,
				   strlen(address), (const uint8_t *)"tutti address ky", 16);
	}
	tti_id_encode(&id, out);
	sodium_memzero(&id, sizeof(id));
	return TUTTI_OK;
}

/* Listen where others can connect, and put the addresses into the id. */
static tutti_status listen_for_ranks(struct tti_id *id, int *fd)
{
	tutti_status status = tti_iface_list(id->addrs, TTI_IFACE_MOST, &id->naddrs, NULL);
	uint16_t port = 0;

	if (status == TUTTI_ESYS || status == TUTTI_EUSAGE) {
		tti_log(TTI_LOG_INFO, TTI_BOOT, "the unique id is for ranks of this host alone: %s",
			tti_error_text());
		id->naddrs = 1;
		return tti_listen_unix(4096, &id->addrs[0], fd);
	}
	TTI_TRY(status);
	TTI_TRY(tti_listen(&port, 16384, fd));
	for (size_t i = 0; i < id->naddrs; i++)
		id->addrs[i].port = htons(port);
	return TUTTI_OK;
}

tutti_status tti_boot_id_create(tutti_unique_id *out)
{
	const struct tti_param_values *params = tti_params();
	struct tti_id id = { 0 };
	tutti_status status;
	int fd;

	if (params->comm_id)
		return tti_boot_id_from_address(params->comm_id, params->comm_secret,
						params->boot_timeout_ms, out);
	tti_assert(sodium_init() >= 0);
	tti_fd_raise_limit();
	TTI_TRY(listen_for_ranks(&id, &fd));
	randombytes_buf(id.secret, sizeof(id.secret));
	tti_id_encode(&id, out);

	status = tti_root_start(fd, id.secret, params->boot_timeout_ms, NULL);
	sodium_memzero(&id, sizeof(id));
	return status;
}
