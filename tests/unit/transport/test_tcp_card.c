/* SPDX-License-Identifier: BSD-3-Clause */
/* Cards of TCP ports: what they say of NICs and addresses, and what fits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "transport/tcp/tcp.h"

static struct tti_tcp_card some_card(void)
{
	return (struct tti_tcp_card){
		.slot_bytes = 65536,
		.slots = 8,
		.port = 0x3412,
		.nnics = 2,
		.naddrs = 3,
		.nic = { { .is = { .name = "eth0",
				   .index = 7,
				   .mbps = 400000,
				   .mtu = 9000,
				   .running = true },
			   .port = 0x1234 },
			 { .is = { .name = "abcdefghijklmno", .kind = TTI_IFACE_BRIDGE } } },
		.addr = { { .family = 4, .port = 0x3412, .ip = { 10, 0, 0, 1 }, .ifname = "eth0" },
			  { .family = 6,
			    .port = 0x3412,
			    .scope = 7,
			    .ip = { 0xfe, 0x80, 1 },
			    .ifname = "eth0" },
			  { .family = 6,
			    .port = 0x3412,
			    .ip = { 0xfd, 0x80, 1 },
			    .ifname = "abcdefghijklmno" } },
		.nic_of = { 0, 0, 1 },
		.prefix = { 32, 64, 128 },
	};
}

#define USED (TTI_TCP_CARD_HEAD + 2 * TTI_TCP_CARD_NIC + TTI_TCP_CARD_IPV4 + 2 * TTI_TCP_CARD_IPV6)

static void cards_come_back(void **state)
{
	const struct tti_tcp_card in = some_card();
	struct tti_tcp_card out;
	struct tti_card card;
	struct tti_tcp_fault fault;

	(void)state;
	tti_tcp_card_put(&in, &card);
	assert_int_equal(tti_tcp_card_bytes(&in), USED);
	assert_int_equal(tti_tcp_card_get(card.bytes, sizeof(card.bytes), &out, &fault), TUTTI_OK);
	assert_memory_equal(&in, &out, sizeof(in));
	assert_int_equal(tti_tcp_card_offered(&out), 2);
	/* Without eth0 there is no plain NIC that runs. */
	out.nic[0].is.running = false;
	assert_int_equal(tti_tcp_card_offered(&out), 3);
	out.nic[0].is.kind = TTI_IFACE_LOOPBACK;
	out.nic[0].is.running = true;
	assert_int_equal(tti_tcp_card_offered(&out), 3);
	out.nic[1].is.running = true;
	out.nic[0].is.kind = TTI_IFACE_NIC;
	assert_int_equal(tti_tcp_card_offered(&out), 3);
	/* Kept in no more bytes than it uses. */
	assert_int_equal(tti_tcp_card_get(card.bytes, USED, &out, &fault), TUTTI_OK);
	for (size_t nbytes = 0; nbytes < USED; nbytes++)
		assert_int_equal(tti_tcp_card_get(card.bytes, nbytes, &out, &fault), TUTTI_EPROTO);
	memset(&card, 0, sizeof(card));
	assert_int_equal(tti_tcp_card_get(card.bytes, sizeof(card.bytes), &out, &fault), TUTTI_OK);
	assert_int_equal(out.naddrs, 0);
}

static void bad_cards_are_refused_by_name(void **state)
{
	enum { NIC = TTI_TCP_CARD_HEAD, ADDR = NIC + 2 * TTI_TCP_CARD_NIC };
	static const struct {
		size_t at;
		uint8_t value;
		const char *field;
	} bad[] = {
		{ 0, 'x', "magic" },
		{ 4, 1, "version" },
		{ 5, TTI_TCP_ADDRS_MOST + 1, "number of addresses" },
		{ 12, 0, "slots" },
		{ 12, 65, "slots" },
		{ 13, 1, "slots" },
		{ 14, TTI_TCP_NICS_MOST + 1, "number of NICs" },
		{ NIC, 0, "name of a NIC" },
		{ NIC + 1, 0x1b, "name of a NIC" },
		{ NIC + 6, 'x', "name of a NIC" },
		{ NIC + 15, 3, "kind of a NIC" },
		{ NIC + 15, TTI_TCP_CARD_DOWN | 3, "kind of a NIC" },
		{ ADDR, 5, "family of an address" },
		{ ADDR + 1, 2, "NIC of an address" },
		{ ADDR + 2, 33, "network of an address" },
		{ ADDR + TTI_TCP_CARD_IPV4, 0, "family of an address" },
		{ ADDR + TTI_TCP_CARD_IPV4 + 2, 129, "network of an address" },
	};
	const struct tti_tcp_card in = some_card();

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct tti_tcp_card out;
		struct tti_card card;
		struct tti_tcp_fault fault = { 0 };

		tti_tcp_card_put(&in, &card);
		card.bytes[bad[i].at] = bad[i].value;
		assert_int_equal(tti_tcp_card_get(card.bytes, sizeof(card.bytes), &out, &fault),
				 TUTTI_EPROTO);
		assert_string_equal(fault.field, bad[i].field);
	}
}

/* -- What fits --------------------------------------------------------------- */

static void add_nic(struct tti_ifaces *ifaces, int ipv4, int ipv6)
{
	struct tti_iface nic = { .index = (uint32_t)ifaces->iface.n + 2, .running = true };
	struct tti_iface_addr one = { .iface = (uint8_t)ifaces->iface.n, .prefix = 24 };

	snprintf(nic.name, sizeof(nic.name), "eth%zu", ifaces->iface.n);
	assert_true(tti_vec_push(&ifaces->iface, nic));
	for (int i = 0; i < ipv4 + ipv6; i++) {
		one.addr.family = i < ipv4 ? 4 : 6;
		one.addr.ip[0] = i < ipv4 ? 10 : 0xfd;
		one.addr.ip[1] = one.iface;
		one.addr.ip[2] = (uint8_t)i;
		assert_true(tti_vec_push(&ifaces->addr, one));
	}
}

static void fill(struct tti_ifaces *ifaces, struct tti_tcp_card *card)
{
	struct tti_card bytes;
	struct tti_tcp_fault fault;
	struct tti_tcp_card again;

	memset(card, 0, sizeof(*card));
	card->slots = 8;
	card->slot_bytes = 4096;
	assert_int_equal(tti_tcp_card_fill(card, ifaces), TUTTI_OK);
	assert_true(tti_tcp_card_bytes(card) <= TTI_CARD_BYTES);
	tti_tcp_card_put(card, &bytes);
	assert_int_equal(tti_tcp_card_get(bytes.bytes, TTI_CARD_BYTES, &again, &fault), TUTTI_OK);
	assert_int_equal(again.naddrs, card->naddrs);
	for (size_t i = 0; i < card->naddrs; i++) {
		assert_int_equal(again.addr[i].ip[1], card->addr[i].ip[1]);
		assert_int_equal(again.nic[again.nic_of[i]].is.index, card->addr[i].ip[1] + 2);
	}
	tti_ifaces_release(ifaces);
}

/* Addresses in the card of NIC `nic` and of that family. */
static int count(const struct tti_tcp_card *card, int nic, int family)
{
	int n = 0;

	for (size_t i = 0; i < card->naddrs; i++)
		n += card->addr[i].ip[1] == nic && (!family || card->addr[i].family == family);
	return n;
}

static void no_nic_is_lost_to_another_with_many_addresses(void **state)
{
	struct tti_ifaces ifaces = { 0 };
	struct tti_tcp_card card;

	(void)state;
	add_nic(&ifaces, 100, 100);
	for (int nic = 1; nic < 8; nic++)
		add_nic(&ifaces, 1, 1);
	fill(&ifaces, &card);
	assert_int_equal(card.nnics, 8);
	for (int nic = 0; nic < 8; nic++) {
		assert_true(count(&card, nic, 4) > 0);
		assert_true(count(&card, nic, 6) > 0);
	}
}

/* Ranks of a host differ in their ports; the last is of another host, the one before has no
 * address. */
static void what_ranks_of_a_host_share_is_kept_once(void **state)
{
	enum { RANKS = 6 };
	struct tti_tcp_card given[RANKS], back;
	struct tti_tcp_cards cards = { .of.n = 0 };

	(void)state;
	for (int rank = 0; rank < RANKS; rank++) {
		struct tti_tcp_card *card = &given[rank];

		*card = some_card();
		if (rank == RANKS - 2)
			memset(card, 0, sizeof(*card));
		if (rank == RANKS - 1)
			card->addr[0].ip[3]++;
		for (size_t i = 0; i < card->nnics; i++)
			card->nic[i].port = (uint16_t)(100 * rank + (int)i);
		card->port = card->naddrs ? (uint16_t)(1000 + rank) : 0;
		for (size_t i = 0; i < card->naddrs; i++)
			card->addr[i].port = card->port;
		assert_int_equal(tti_tcp_cards_add(&cards, card), TUTTI_OK);
	}
	assert_int_equal(cards.bodies.n, 3);
	for (int rank = 0; rank < RANKS; rank++) {
		tti_tcp_cards_get(&cards, rank, &back);
		assert_memory_equal(&back, &given[rank], sizeof(back));
	}
	tti_tcp_cards_release(&cards);
	tti_tcp_cards_get(&cards, 0, &back);
	assert_int_equal(back.naddrs, 0);
}

/* Every rank tells its loopback interface, over which there is no lane to another host. */
static void one_nic_is_one_way(void **state)
{
	static const uint8_t kinds[] = { TTI_IFACE_LOOPBACK, TTI_IFACE_BRIDGE, TTI_IFACE_NIC };

	(void)state;
	for (int sockets = 1; sockets <= 2; sockets++) {
		for (size_t i = 0; i < 3; i++) {
			struct tti_tcp_card mine = some_card();
			struct tti_tcp_port port = { .options.sockets = sockets };

			mine.nic[1].is.kind = TTI_IFACE_LOOPBACK;
			assert_int_equal(tti_tcp_cards_add(&port.cards, &mine), TUTTI_OK);
			mine.nic[1].is.kind = kinds[i];
			assert_int_equal(tti_tcp_cards_add(&port.cards, &mine), TUTTI_OK);
			assert_int_equal(tti_tcp_nics_single(&port, 1), sockets == 1 && i == 0);
			tti_tcp_cards_release(&port.cards);
		}
	}
}

static void what_is_there_is_all_told(void **state)
{
	struct tti_ifaces ifaces = { 0 };
	struct tti_tcp_card card;

	(void)state;
	add_nic(&ifaces, 3, 2);
	add_nic(&ifaces, 0, 1);
	fill(&ifaces, &card);
	assert_int_equal(card.nnics, 2);
	assert_int_equal(card.naddrs, 6);
	assert_int_equal(count(&card, 0, 4), 3);
	assert_int_equal(count(&card, 1, 6), 1);
}

static void as_many_nics_as_fit(void **state)
{
	struct tti_ifaces ifaces = { 0 };
	struct tti_tcp_card card;

	(void)state;
	for (int nic = 0; nic < 40; nic++)
		add_nic(&ifaces, 1, 0);
	fill(&ifaces, &card);
	assert_int_equal(card.nnics, TTI_TCP_NICS_MOST);
	for (int nic = 0; nic < (int)TTI_TCP_NICS_MOST; nic++)
		assert_int_equal(count(&card, nic, 0), 1);
}

static char log_file[] = "/tmp/tutti-test-XXXXXX";

/* Lines of the log that tell of a name that no card can have. */
static int count_refused(void)
{
	FILE *file = fopen(log_file, "re");
	char line[1024];
	int n = 0;

	assert_non_null(file);
	while (fgets(line, sizeof(line), file))
		n += strstr(line, "takes no part in TCP: its name") != NULL;
	fclose(file);
	return n;
}

/* Every rank refuses a card with such a name, so one interface would end the init of all. */
static void a_name_that_no_card_can_have_is_left_out(void **state)
{
	static const char *const names[] = { "lan-b\xc3\xbcro", "\x1b[2J", "del\x7f" };

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const int before = count_refused();
		struct tti_ifaces ifaces = { 0 };
		struct tti_tcp_card card;

		for (int nic = 0; nic < 3; nic++)
			add_nic(&ifaces, 2, 1);
		snprintf(ifaces.iface.at[1].name, IFNAMSIZ, "%s", names[i]);
		fill(&ifaces, &card);
		assert_int_equal(card.nnics, 2);
		assert_int_equal(card.naddrs, 6);
		assert_int_equal(count(&card, 1, 0), 0);
		assert_int_equal(count_refused(), before + 1);
	}
}

/* An address of eth0 may have the label eth0:1, of which the interface's name is the beginning. */
static void nothing_is_told_behind_the_end_of_a_name(void **state)
{
	struct tti_ifaces ifaces = { 0 };
	struct tti_tcp_card card;

	(void)state;
	add_nic(&ifaces, 1, 0);
	memcpy(ifaces.iface.at[0].name, "eth0\0001", 7);
	fill(&ifaces, &card);
	assert_int_equal(card.nnics, 1);
	assert_string_equal(card.nic[0].is.name, "eth0");
}

static void no_interface_is_an_empty_card(void **state)
{
	struct tti_ifaces ifaces = { 0 };
	struct tti_tcp_card card;

	(void)state;
	fill(&ifaces, &card);
	assert_int_equal(card.nnics, 0);
	assert_int_equal(tti_tcp_card_offered(&card), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cards_come_back),
		cmocka_unit_test(bad_cards_are_refused_by_name),
		cmocka_unit_test(no_nic_is_lost_to_another_with_many_addresses),
		cmocka_unit_test(what_is_there_is_all_told),
		cmocka_unit_test(what_ranks_of_a_host_share_is_kept_once),
		cmocka_unit_test(one_nic_is_one_way),
		cmocka_unit_test(as_many_nics_as_fit),
		cmocka_unit_test(a_name_that_no_card_can_have_is_left_out),
		cmocka_unit_test(nothing_is_told_behind_the_end_of_a_name),
		cmocka_unit_test(no_interface_is_an_empty_card),
	};
	const int fd = mkstemp(log_file);
	int failed;

	if (fd < 0 || setenv("TUTTI_DEBUG_FILE", log_file, 1))
		return 1;
	close(fd);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(log_file);
	return failed;
}
