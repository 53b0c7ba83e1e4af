/* SPDX-License-Identifier: BSD-3-Clause */
/* Cards of TCP ports: what is accepted can be used and comes back the same. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "transport/tcp/tcp_card.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes);

static void check(int condition)
{
	if (!condition)
		__builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
	struct tti_tcp_card card, again;
	struct tti_tcp_fault fault = { 0 };
	struct tti_card bytes;
	uint8_t *copy = malloc(nbytes ? nbytes : 1);

	/* A copy of the exact size, so that reading past its end is seen. */
	if (nbytes)
		memcpy(copy, data, nbytes);
	if (tti_tcp_card_get(copy, nbytes, &card, &fault)) {
		check(fault.field != NULL);
		free(copy);
		return 0;
	}
	free(copy);
	check(card.naddrs <= TTI_TCP_ADDRS_MOST && card.nnics <= TTI_TCP_NICS_MOST);
	check(tti_tcp_card_offered(&card) <= card.naddrs &&
	      tti_tcp_card_bytes(&card) <= TTI_CARD_BYTES);
	check(!card.naddrs || (card.slots && card.slots <= TTI_TCP_SLOTS_MOST && card.slot_bytes));
	for (size_t i = 0; i < card.naddrs; i++) {
		struct sockaddr_storage to;
		char text[TTI_ADDR_TEXT];

		check(card.nic_of[i] < card.nnics);
		check(tti_addr_to_sock(&card.addr[i], &to) > 0);
		check(strlen(tti_addr_format(&card.addr[i], text, sizeof(text))) > 0);
	}
	tti_tcp_card_put(&card, &bytes);
	check(!tti_tcp_card_get(bytes.bytes, sizeof(bytes.bytes), &again, &fault));
	check(!memcmp(&card, &again, sizeof(card)));
	return 0;
}
