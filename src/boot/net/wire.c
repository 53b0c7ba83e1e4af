/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/net/wire.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "util/error.h"

/* Bytes of a body of this type; SIZE_MAX: any, not kept. Mail is as long as it is: check_head(). */
static size_t body_size(uint32_t type)
{
	static const size_t sizes[TTI_FRAME_TYPES] = {
		[TTI_FRAME_CHECKIN] = sizeof(struct tti_wire_checkin),
		[TTI_FRAME_NEXT] = sizeof(struct tti_wire_card),
		[TTI_FRAME_FAILURE] = sizeof(struct tti_failure),
		[TTI_FRAME_ANSWER] = sizeof(struct tti_call),
		[TTI_FRAME_BLOCK] = SIZE_MAX,
	};

	return type < TTI_FRAME_TYPES ? sizes[type] : 0;
}

void tti_wire_clean(char *text, size_t size)
{
	text[size - 1] = '\0';
	for (char *c = text; *c; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';
}

const char *tti_wire_name(const struct tti_wire_card *card, int rank, char *buf, size_t size)
{
	if (card->pid)
		(void)snprintf(buf, size, "rank %d (%s, process %d)", rank, card->host, card->pid);
	else
		(void)snprintf(buf, size, "rank %d", rank);
	return buf;
}

static tutti_status check_body(struct tti_framer *framer)
{
	const uint32_t type = framer->head.type;

	if (type == TTI_FRAME_CHECKIN)
		tti_wire_clean(framer->body.checkin.card.host, TTI_CARD_HOST);
	if (type == TTI_FRAME_NEXT)
		tti_wire_clean(framer->body.card.host, TTI_CARD_HOST);
	if (type == TTI_FRAME_ANSWER) {
		tti_wire_clean(framer->body.call.text, TTI_CALL_TEXT);
		tti_wire_clean(framer->body.call.way, TTI_WAY_TEXT);
	}
	if (type == TTI_FRAME_FAILURE) {
		tti_wire_clean(framer->body.failure.text, TTI_FAILURE_TEXT);
		if (framer->body.failure.status > TUTTI_STATUS_LOST ||
		    framer->body.failure.status < TUTTI_EREVOKED)
			return tti_fail_quiet(TUTTI_EPROTO, "a failure with status %d",
					      framer->body.failure.status);
	}
	if (type == TTI_FRAME_MAIL &&
	    (framer->body.mail.kind == 0 || framer->body.mail.kind >= TTI_MAIL_KINDS))
		return tti_fail_quiet(TUTTI_EPROTO, "mail of kind %u", framer->body.mail.kind);
	return TUTTI_OK;
}

static tutti_status check_head(const struct tti_frame *head)
{
	const size_t size = body_size(head->type);

	if (head->type == 0 || head->type >= TTI_FRAME_TYPES)
		return tti_fail_quiet(TUTTI_EPROTO, "a frame of type %u", head->type);
	if (head->type == TTI_FRAME_MAIL && head->nbytes >= TTI_MAIL_HEAD &&
	    head->nbytes <= sizeof(struct tti_mail))
		return TUTTI_OK;
	if (size != SIZE_MAX && head->nbytes != size)
		return tti_fail_quiet(TUTTI_EPROTO, "a frame of type %u with %llu bytes",
				      head->type, (unsigned long long)head->nbytes);
	return TUTTI_OK;
}

tutti_status tti_framer_feed(struct tti_framer *framer, const void *data, size_t nbytes,
			     size_t *used)
{
	const uint8_t *from = data;

	*used = 0;
	if (framer->whole) {
		framer->whole = false;
		framer->head_len = 0;
		framer->body_len = 0;
	}
	if (framer->head_len < sizeof(framer->head)) {
		size_t n = sizeof(framer->head) - framer->head_len;

		n = n < nbytes ? n : nbytes;
		memcpy((uint8_t *)&framer->head + framer->head_len, from, n);
		framer->head_len += n;
		*used += n;
		if (framer->head_len < sizeof(framer->head))
			return TUTTI_AGAIN;
		TTI_TRY(check_head(&framer->head));
	}

	uint64_t n = framer->head.nbytes - framer->body_len;

	n = n < nbytes - *used ? n : nbytes - *used;
	if (n > 0 && body_size(framer->head.type) != SIZE_MAX)
		memcpy(framer->body.bytes + framer->body_len, from + *used, n);
	framer->body_len += n;
	*used += n;
	if (framer->body_len < framer->head.nbytes)
		return TUTTI_AGAIN;
	framer->whole = true;
	return check_body(framer);
}

struct tti_failure tti_failure_vmake(tutti_status status, int failed_rank, int origin,
				     const char *fmt, va_list args)
{
	struct tti_failure failure = { .status = status,
				       .failed_rank = failed_rank,
				       .origin = origin };

	(void)vsnprintf(failure.text, sizeof(failure.text), fmt, args);
	return failure;
}

struct tti_failure tti_failure_make(tutti_status status, int failed_rank, int origin,
				    const char *fmt, ...)
{
	struct tti_failure failure;
	va_list args;

	va_start(args, fmt);
	failure = tti_failure_vmake(status, failed_rank, origin, fmt, args);
	va_end(args);
	return failure;
}

struct tti_failure tti_failure_of(int rank, const char *name, const char *why)
{
	return tti_failure_make(TUTTI_EPEER, rank, rank, "%s gave up: %.500s", name, why);
}

const char *tti_failure_why(const struct tti_failure *failure, const char *name)
{
	const size_t len = strlen(name);

	if (strncmp(failure->text, name, len) != 0 || failure->text[len] != ' ')
		return failure->died ? "died" : "is lost";
	return failure->text + len + 1;
}

bool tti_outbox_put(struct tti_outbox *out, enum tti_frame_type type, uint32_t seq,
		    const void *body, size_t nbytes, size_t spare)
{
	const struct tti_frame head = { .type = type, .seq = seq, .nbytes = nbytes };

	if (out->len + sizeof(head) + nbytes + spare > sizeof(out->bytes))
		return false;
	memcpy(out->bytes + out->len, &head, sizeof(head));
	if (nbytes > 0)
		memcpy(out->bytes + out->len + sizeof(head), body, nbytes);
	out->len += sizeof(head) + nbytes;
	return true;
}

void tti_outbox_flush(struct tti_outbox *out, struct tti_tunnel *tunnel)
{
	while (out->len > 0) {
		const ssize_t n = tti_tunnel_send(tunnel, out->bytes, out->len);

		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0) {
			out->len = 0;
			return;
		}
		out->len -= (size_t)n;
		memmove(out->bytes, out->bytes + n, out->len);
	}
}

size_t tti_addrs_pack(const struct tti_addr *addrs, size_t n, uint8_t *out, size_t room)
{
	size_t used = 0;

	for (size_t i = 0; i < n; i++) {
		const struct tti_addr *addr = &addrs[i];
		const size_t ip = addr->family == 4 ? 4 : 16;
		const size_t scope = addr->family == 6 && addr->scope ? 4 : 0;

		if (addr->family == 0 || 1 + ip + scope > room - used)
			continue;
		out[used] = (uint8_t)(addr->family + (scope ? 1 : 0));
		memcpy(out + used + 1, addr->ip, ip);
		memcpy(out + used + 1 + ip, &addr->scope, scope);
		used += 1 + ip + scope;
	}
	return used;
}

tutti_status tti_addrs_unpack(const uint8_t *data, size_t nbytes, uint16_t port,
			      struct tti_addr *out, size_t most, size_t *n)
{
	*n = 0;
	for (size_t at = 0; at < nbytes;) {
		const uint8_t tag = data[at];
		const size_t ip = tag == 4 ? 4 : 16;
		const size_t scope = tag == 7 ? 4 : 0;
		struct tti_addr addr = { .family = tag == 7 ? 6 : tag, .port = port };

		if ((tag != 4 && tag != 6 && tag != 7 && tag != TTI_ADDR_UNIX) ||
		    ip + scope > nbytes - at - 1)
			return tti_fail_quiet(TUTTI_EPROTO, "malformed list of addresses");
		memcpy(addr.ip, data + at + 1, ip);
		memcpy(&addr.scope, data + at + 1 + ip, scope);
		at += 1 + ip + scope;
		if (*n < most)
			out[(*n)++] = addr;
	}
	return TUTTI_OK;
}
