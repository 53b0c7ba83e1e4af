/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses, interfaces, unique ids, and what is packed into few bytes. */
#include "ranks.h"

#include <arpa/inet.h>
#include <unistd.h>

#include "boot/init/id.h"
#include "boot/init/root_group.h"
#include "boot/net/iface.h"
#include "boot/net/wire.h"

static void texts_become_addresses(void **state)
{
	static const struct {
		const char *text, *shown;
	} good[] = {
		{ "127.0.0.1:80", "127.0.0.1:80" },
		{ "[::1]:65535", "[::1]:65535" },
		{ "[::ffff:10.1.2.3]:7", "10.1.2.3:7" },
	};
	static const char *const bad[] = {
		"",        ":",    "host",   "1.2.3.4:",   "1.2.3.4:0", "1.2.3.4:65536", ":80",
		"[::1]80", "[::1", "::1:80", "1.2.3.4:8x", "[]:80",     "1.2.3.4:-1",    "[::1]:"
	};
	struct tti_addr addrs[TTI_IFACE_MOST];
	char text[TTI_ADDR_TEXT];
	size_t n;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		CHECK_OK(tti_addr_parse(good[i].text, 0, addrs, TTI_IFACE_MOST, &n));
		assert_true(n >= 1);
		assert_string_equal(tti_addr_format(&addrs[0], text, sizeof(text)), good[i].shown);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(tti_addr_parse(bad[i], 0, addrs, TTI_IFACE_MOST, &n),
				 TUTTI_EINVAL);
}

static void filters(void **state)
{
	(void)state;
	assert_true(tti_iface_passes(NULL, "eth0"));
	assert_true(tti_iface_passes("eth", "eth0"));
	assert_true(tti_iface_passes("ib,eth", "eth0"));
	assert_false(tti_iface_passes("ib", "eth0"));
	assert_true(tti_iface_passes("=eth0", "eth0"));
	assert_false(tti_iface_passes("=eth", "eth0"));
	assert_true(tti_iface_passes("=ib0,eth0", "eth0"));
	assert_false(tti_iface_passes("^eth", "eth0"));
	assert_true(tti_iface_passes("^docker,lo", "eth0"));
	assert_false(tti_iface_passes("^docker,lo", "lo"));
	assert_false(tti_iface_passes("^docker,lo", "docker0"));
	assert_false(tti_iface_passes("^=lo", "lo"));
	assert_true(tti_iface_passes("^=lo", "lo1"));
	assert_false(tti_iface_passes("", "eth0"));
}

static void interfaces_are_found(void **state)
{
	struct tti_addr addrs[TTI_IFACE_MOST];
	size_t n = 0;

	(void)state;
	CHECK_OK(tti_iface_list(addrs, TTI_IFACE_MOST, &n, NULL));
	assert_in_range(n, 1, TTI_IFACE_MOST);
	/* Loopback is offered, but after all that reaches farther. */
	for (size_t i = 1; i < n; i++)
		assert_false(strcmp(addrs[i - 1].ifname, "lo") == 0 &&
			     strcmp(addrs[i].ifname, "lo") != 0);
}

static void loopback_has_its_facts(void **state)
{
	struct tti_ifaces ifaces;
	bool seen = false;

	(void)state;
	CHECK_OK(tti_ifaces_look(&ifaces, NULL));
	tti_ifaces_measure(&ifaces);
	for (size_t i = 0; i < ifaces.addr.n; i++) {
		const struct tti_iface_addr *at = &ifaces.addr.at[i];
		const struct tti_iface *iface = &ifaces.iface.at[at->iface];

		assert_string_equal(at->addr.ifname, iface->name);
		if (strcmp(iface->name, "lo") != 0 || at->addr.family != 4)
			continue;
		seen = true;
		assert_int_equal(at->prefix, 8);
		assert_int_equal(iface->kind, TTI_IFACE_LOOPBACK);
		assert_int_equal(iface->index, if_nametoindex("lo"));
		assert_true(iface->mtu >= 1280 && iface->running);
		assert_int_equal(iface->mbps, 0);
	}
	assert_true(seen);
	tti_ifaces_release(&ifaces);
}

/* In the order in which they are found: loopback before what is only up, what is down last. */
static void what_is_up_is_offered_if_no_nic_runs(void **state)
{
	struct tti_iface iface[] = {
		{ .name = "eth0", .kind = TTI_IFACE_NIC, .up = true, .running = true },
		{ .name = "lo", .kind = TTI_IFACE_LOOPBACK, .up = true, .running = true },
		{ .name = "eth1", .kind = TTI_IFACE_NIC, .up = true },
		{ .name = "eth2", .kind = TTI_IFACE_NIC },
	};
	struct tti_iface_addr addr[] = {
		{ .iface = 0 }, { .iface = 1 }, { .iface = 1 }, { .iface = 2 }, { .iface = 3 },
	};
	struct tti_ifaces all = { .iface = { .at = iface, .n = 4 },
				  .addr = { .at = addr, .n = 5 } };
	struct tti_ifaces no_nic = { .iface = all.iface, .addr = { .at = addr + 1, .n = 4 } };
	struct tti_ifaces late = { .iface = all.iface, .addr = { .at = addr + 3, .n = 2 } };
	struct tti_ifaces down = { .iface = all.iface, .addr = { .at = addr + 4, .n = 1 } };
	size_t nrunning;

	(void)state;
	assert_int_equal(tti_ifaces_offered(&all, &nrunning), 3);
	assert_int_equal(nrunning, 3);
	assert_int_equal(tti_ifaces_offered(&no_nic, &nrunning), 3);
	assert_int_equal(nrunning, 2);
	assert_int_equal(tti_ifaces_offered(&late, &nrunning), 1);
	assert_int_equal(nrunning, 0);
	assert_int_equal(tti_ifaces_offered(&down, &nrunning), 0);
	iface[0].kind = TTI_IFACE_BRIDGE;
	assert_int_equal(tti_ifaces_offered(&all, &nrunning), 4);
	assert_int_equal(nrunning, 3);
}

/* Two of one interface, then one of another, of which only two are kept. */
static void each_interface_keeps_its_first_address(void **state)
{
	const struct tti_iface_addr addr[] = {
		{ .addr.family = 4, .iface = 0 },
		{ .addr.family = 4, .iface = 0 },
		{ .addr.family = 6, .iface = 0, .addr.scope = 1 },
		{ .addr.family = 4, .iface = 1 },
		{ .addr.family = 6, .iface = 0 },
	};
	static const bool expected[][5] = {
		{ false },
		{ true },
		{ true, false, true },
		{ true, false, true, true },
		{ true, false, true, true, true },
		{ true, true, true, true, true },
		{ true, true, true, true, true },
	};
	bool take[5];

	(void)state;
	for (size_t most = 0; most < 7; most++) {
		assert_int_equal(tti_iface_choose(addr, 5, most, take), most < 5 ? most : 5);
		assert_memory_equal(take, expected[most], sizeof(take));
	}
}

static void sockaddrs_come_back(void **state)
{
	struct tti_addr addr = { .family = 6, .port = htons(77), .scope = 3, .ip = { 0xfe, 0x80 } };
	struct tti_addr back;
	struct sockaddr_storage sock;
	const struct sockaddr unknown = { .sa_family = AF_UNIX };

	(void)state;
	tti_addr_to_sock(&addr, &sock);
	assert_int_equal(tti_addr_from_sock((struct sockaddr *)&sock, &back), TUTTI_OK);
	assert_memory_equal(&addr, &back, sizeof(addr));
	assert_int_equal(tti_addr_from_sock(&unknown, &back), TUTTI_EUNSUPPORTED);
}

static void listening_twice_fails(void **state)
{
	uint16_t port = 0, same;
	int fd, second;

	(void)state;
	CHECK_OK(tti_listen(&port, 1, &fd));
	same = port;
	assert_int_equal(tti_listen(&same, 1, &second), TUTTI_ESYS);
	close(fd);
}

static struct tti_id make_id(void)
{
	struct tti_id id = { .flags = TTI_ID_BY_HAND, .naddrs = 4 };

	for (int i = 0; i < TTI_SECRET_BYTES; i++)
		id.secret[i] = (uint8_t)(i + 1);
	for (int i = 0; i < 4; i++) {
		id.addrs[i].family = i % 2 ? 6 : 4;
		id.addrs[i].port = htons(1234);
		id.addrs[i].scope = i == 3 ? 9 : 0;
		for (int k = 0; k < (i % 2 ? 16 : 4); k++)
			id.addrs[i].ip[k] = (uint8_t)(i * 20 + k);
	}
	return id;
}

/* It leads there, and its name is nobody else's. */
static void unix_sockets_have_addresses(void **state)
{
	struct tti_addr made[2], back[2];
	struct sockaddr_storage to;
	uint8_t bytes[40];
	int fds[2], fd;
	size_t n;

	(void)state;
	for (int i = 0; i < 2; i++)
		CHECK_OK(tti_listen_unix(4, &made[i], &fds[i]));
	assert_memory_not_equal(made[0].ip, made[1].ip, sizeof(made[0].ip));
	n = tti_addrs_pack(made, 2, bytes, sizeof(bytes));
	assert_int_equal(n, 34);
	CHECK_OK(tti_addrs_unpack(bytes, 34, made[0].port, back, 2, &n));
	assert_int_equal(n, 2);
	assert_memory_equal(back, made, sizeof(made));
	assert_int_equal(tti_addrs_unpack(bytes, 33, made[0].port, back, 2, &n), TUTTI_EPROTO);
	for (int i = 0; i < 2; i++) {
		const socklen_t len = tti_addr_to_sock(&made[1], &to);

		fd = socket(AF_UNIX, SOCK_STREAM, 0);
		assert_int_equal(connect(fd, (const struct sockaddr *)&to, len), i ? -1 : 0);
		close(fd);
		close(fds[1]);
		fds[1] = -1;
	}
	close(fds[0]);
}

static void ids_come_back(void **state)
{
	struct tti_id id = make_id(), back;
	tutti_unique_id wire;

	(void)state;
	tti_id_encode(&id, &wire);
	CHECK_OK(tti_id_decode(&wire, &back));
	assert_int_equal(back.flags, id.flags);
	assert_int_equal(back.naddrs, 4);
	assert_memory_equal(back.secret, id.secret, TTI_SECRET_BYTES);
	assert_memory_equal(back.addrs, id.addrs, 4 * sizeof(*id.addrs));
}

static void key_of(const char *address, const char *secret, uint8_t *key)
{
	tutti_unique_id wire;
	struct tti_id id;

	CHECK_OK(tti_boot_id_from_address(address, secret, 0, &wire));
	CHECK_OK(tti_id_decode(&wire, &id));
	memcpy(key, id.secret, TTI_SECRET_BYTES);
}

/* The same text gives another key at another address: nobody can make a table of them. */
static void a_secret_is_salted_with_the_address(void **state)
{
	static const char *const secret = "0123456789abcdef";
	uint8_t key[4][TTI_SECRET_BYTES];

	(void)state;
	key_of("127.0.0.1:4711", secret, key[0]);
	key_of("127.0.0.1:4711", secret, key[1]);
	key_of("127.0.0.1:4712", secret, key[2]);
	key_of("127.0.0.1:4711", "0123456789abcdeg", key[3]);
	assert_memory_equal(key[0], key[1], TTI_SECRET_BYTES);
	assert_memory_not_equal(key[0], key[2], TTI_SECRET_BYTES);
	assert_memory_not_equal(key[0], key[3], TTI_SECRET_BYTES);
}

static void short_secrets_are_refused(void **state)
{
	tutti_unique_id wire;

	(void)state;
	assert_int_equal(tti_boot_id_from_address("127.0.0.1:4711", "hunter2", 0, &wire),
			 TUTTI_EINVAL);
	assert_non_null(strstr(tti_error_text(), "TUTTI_COMM_SECRET has 7 bytes"));
	assert_non_null(strstr(tti_error_text(), "$(head -c 24 /dev/urandom | base64)"));
	assert_null(strstr(tti_error_text(), "hunter2"));
	assert_int_equal(tti_boot_id_from_address("127.0.0.1:4711", "0123456789abcde", 0, &wire),
			 TUTTI_EINVAL);
}

static void damaged_ids_are_refused(void **state)
{
	struct tti_id id = make_id(), back;
	tutti_unique_id wire;

	(void)state;
	tti_id_encode(&id, &wire);
	for (size_t i = 0; i < sizeof(wire); i++) {
		wire.bytes[i] = (char)(wire.bytes[i] ^ 0x10);
		assert_int_equal(tti_id_decode(&wire, &back), TUTTI_EINVAL);
		wire.bytes[i] = (char)(wire.bytes[i] ^ 0x10);
	}
	memset(&wire, 0, sizeof(wire));
	assert_int_equal(tti_id_decode(&wire, &back), TUTTI_EINVAL);
	id.naddrs = 0;
	tti_id_encode(&id, &wire);
	assert_int_equal(tti_id_decode(&wire, &back), TUTTI_EINVAL);
}

static void groups_are_contiguous_and_even(void **state)
{
	(void)state;
	for (int n = 1; n <= 40; n++) {
		for (int roots = 1; roots <= n; roots++) {
			int next = 0, least = n, most = 0;

			for (int i = 0; i < roots; i++) {
				const struct tti_group group = tti_group_make(n, roots, i);

				assert_int_equal(group.first, next);
				next = group.first + group.size;
				least = group.size < least ? group.size : least;
				most = group.size > most ? group.size : most;
				for (int r = group.first; r < next; r++)
					assert_int_equal(tti_group_of(n, roots, r), i);
				assert_int_equal(tti_group_rank(&group, group.size), next % n);
			}
			assert_int_equal(next, n);
			assert_true(most - least <= 1 && least >= 1);
		}
	}
}

static void frames_in_pieces(void **state)
{
	struct tti_failure failure = { .status = TUTTI_EPEER, .failed_rank = 2, .text = "a\001b" };
	const struct tti_frame skip = { .type = TTI_FRAME_BLOCK, .nbytes = 1000 };
	struct tti_outbox out = { 0 };
	uint8_t bytes[4096] = { 0 };
	size_t total;

	(void)state;
	assert_true(tti_outbox_put(&out, TTI_FRAME_FAILURE, 5, &failure, sizeof(failure), 0));
	assert_true(tti_outbox_put(&out, TTI_FRAME_BYE, 1, NULL, 0, 0));
	assert_false(tti_outbox_put(&out, TTI_FRAME_ASK, 1, NULL, 0, TTI_OUTBOX - out.len));
	memcpy(bytes, out.bytes, out.len);
	memcpy(bytes + out.len, &skip, sizeof(skip));
	total = out.len + sizeof(skip) + 1000;
	for (size_t piece = 1; piece < 700; piece += 13) {
		struct tti_framer framer = { 0 };
		int nframes = 0;

		for (size_t at = 0, used; at < total; at += used) {
			const size_t n = piece < total - at ? piece : total - at;
			const tutti_status status = tti_framer_feed(&framer, bytes + at, n, &used);

			assert_true(status >= 0);
			if (status == TUTTI_OK && nframes++ == 0) {
				assert_int_equal(framer.head.seq, 5);
				assert_string_equal(framer.body.failure.text, "a?b");
			}
		}
		assert_int_equal(nframes, 3);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts_become_addresses),
		cmocka_unit_test(filters),
		cmocka_unit_test(interfaces_are_found),
		cmocka_unit_test(loopback_has_its_facts),
		cmocka_unit_test(what_is_up_is_offered_if_no_nic_runs),
		cmocka_unit_test(each_interface_keeps_its_first_address),
		cmocka_unit_test(sockaddrs_come_back),
		cmocka_unit_test(listening_twice_fails),
		cmocka_unit_test(unix_sockets_have_addresses),
		cmocka_unit_test(ids_come_back),
		cmocka_unit_test(a_secret_is_salted_with_the_address),
		cmocka_unit_test(short_secrets_are_refused),
		cmocka_unit_test(damaged_ids_are_refused),
		cmocka_unit_test(groups_are_contiguous_and_even),
		cmocka_unit_test(frames_in_pieces),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
