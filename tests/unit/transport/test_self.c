/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "transport/transport.h"
#include "util/fault.h"

static struct tti_port *open_port(int slots)
{
	const struct tti_port_config config = {
		.rank = 3, .nranks = 5, .slot_bytes = 1000, .slots = slots, .timeout_ms = 1000
	};
	struct tti_card cards[5] = { 0 };
	struct tti_port *port = NULL;
	uint64_t domain = 0;

	assert_int_equal(tti_transport_self.open(&config, &port, &cards[3]), TUTTI_OK);
	assert_int_equal(tti_transport_self.join(port, cards, &domain), TUTTI_OK);
	assert_int_equal(domain, 4);
	return port;
}

static void messages_come_back_in_order(void **state)
{
	(void)state;
	for (int slots = 1; slots <= 8; slots++) {
		struct tti_port *const port = open_port(slots);
		uint64_t sent = 0, received = 0, tag;
		struct tti_link *link = NULL;
		size_t nbytes;

		assert_int_equal(tti_transport_self.connect(port, 3, &link), TUTTI_OK);
		assert_int_equal(link->peer, 3);
		assert_null(link->ops->peek(link, &nbytes, &tag));
		while (received < 100) {
			uint8_t *room;
			const uint8_t *data;

			while (sent < 100 &&
			       (room = link->ops->reserve(link, (size_t)sent * 10, 0))) {
				assert_true(sent - received < (uint64_t)slots);
				assert_ptr_equal(room,
						 link->ops->reserve(link, (size_t)sent * 10, 0));
				memset(room, (int)sent, (size_t)sent * 10);
				link->ops->commit(link, (size_t)sent * 10, sent);
				sent++;
			}
			assert_true(sent == 100 || sent - received == (uint64_t)slots);
			data = link->ops->peek(link, &nbytes, &tag);
			assert_non_null(data);
			assert_int_equal(tag, received);
			assert_int_equal(nbytes, received * 10);
			for (size_t i = 0; i < nbytes; i++)
				assert_int_equal(data[i], received);
			link->ops->release(link);
			received++;
		}
		assert_null(link->ops->peek(link, &nbytes, &tag));
		tti_transport_self.close(link);
		tti_transport_self.shutdown(port);
	}
}

static void only_the_own_rank_is_connected(void **state)
{
	struct tti_port *const port = open_port(2);
	struct tti_link *link = NULL;

	(void)state;
	assert_int_equal(tti_transport_self.connect(port, 2, &link), TUTTI_EINVAL);
	assert_int_equal(port->failed_peer, -1);
	tti_transport_self.shutdown(port);
	tti_transport_self.shutdown(NULL);
}

static void out_of_memory_is_an_error(void **state)
{
	const struct tti_port_config config = { .slot_bytes = 8, .slots = 1 };
	struct tti_port *port = NULL;
	struct tti_link *link = NULL;
	struct tti_card card;

	(void)state;
	tti_fault_set("mem:1");
	assert_int_equal(tti_transport_self.open(&config, &port, &card), TUTTI_ENOMEM);
	tti_fault_set("mem:2");
	assert_int_equal(tti_transport_self.open(&config, &port, &card), TUTTI_OK);
	assert_int_equal(tti_transport_self.connect(port, 0, &link), TUTTI_ENOMEM);
	tti_fault_set("mem:2");
	assert_int_equal(tti_transport_self.connect(port, 0, &link), TUTTI_ENOMEM);
	tti_fault_set(NULL);
	assert_int_equal(tti_transport_self.connect(port, 0, &link), TUTTI_OK);
	tti_transport_self.shutdown(port);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_come_back_in_order),
		cmocka_unit_test(only_the_own_rank_is_connected),
		cmocka_unit_test(out_of_memory_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
