/* SPDX-License-Identifier: BSD-3-Clause */
/* The frames of root, ring and pairs, in pieces; and what a root makes of a
 * check-in, a rank of the address it is told. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "boot/init/root_group.h"
#include "boot/net/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look(const struct tti_framer *framer)
{
	struct tti_addr addrs[TTI_IFACE_MOST];
	char text[TTI_ADDR_TEXT];
	const struct tti_wire_card *card = &framer->body.card;
	size_t n = 0;

	if (framer->head.type == TTI_FRAME_CHECKIN) {
		const struct tti_wire_checkin *checkin = &framer->body.checkin;

		if (tti_checkin_check(checkin) != TUTTI_OK)
			return;

		const struct tti_group group =
			tti_group_make(checkin->nranks, checkin->nroots, checkin->iroot);

		if (group.size < 1 || group.first < 0 || group.first + group.size > checkin->nranks)
			__builtin_trap();
		if (!checkin->border &&
		    (checkin->rank < group.first || checkin->rank >= group.first + group.size))
			__builtin_trap();
		card = &checkin->card;
	} else if (framer->head.type == TTI_FRAME_FAILURE) {
		if (memchr(framer->body.failure.text, 0, TTI_FAILURE_TEXT) == NULL)
			__builtin_trap();
		return;
	} else if (framer->head.type != TTI_FRAME_NEXT || card->addr_bytes > TTI_CARD_ADDRS) {
		return;
	}
	if (tti_addrs_unpack(card->addrs, card->addr_bytes, card->port, addrs, TTI_IFACE_MOST,
			     &n) != TUTTI_OK)
		return;
	for (size_t i = 0; i < n; i++)
		(void)tti_addr_format(&addrs[i], text, sizeof(text));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tti_framer framer = { 0 };

	if (size < 1)
		return 0;

	const size_t piece = 1 + data[0];

	for (size_t at = 1, used; at < size; at += used) {
		const size_t n = piece < size - at ? piece : size - at;
		const tutti_status status = tti_framer_feed(&framer, data + at, n, &used);

		if (status < 0)
			return 0;
		if (used == 0)
			__builtin_trap();
		if (status == TUTTI_OK)
			look(&framer);
	}
	return 0;
}
