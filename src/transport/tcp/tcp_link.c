/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/tcp/tcp.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "util/error.h"
#include "util/fault.h"
#include "util/log.h"
#include "util/mem.h"

/* Credit is sent sooner once so many bytes are released. */
#define TELL_BYTES 32768

#define PAGE 4096

static struct tti_tcp_link *link_of(struct tti_link *link)
{
	return (struct tti_tcp_link *)link;
}

static size_t round_up(size_t value, size_t to)
{
	return (value + to - 1) / to * to;
}

/* -- Coming and going ------------------------------------------------------ */

tutti_status tti_tcp_link_create(struct tti_tcp_port *port, int peer, struct tti_tcp_link **out)
{
	struct tti_tcp_link *link = tti_zalloc(sizeof(*link));

	if (!link || !tti_vec_push(&port->links, link)) {
		tti_free(link);
		return tti_fail(TUTTI_ENOMEM, "link to rank %d", peer);
	}
	link->base.ops = &tti_tcp_link_ops;
	link->base.peer = peer;
	link->port = port;
	link->only = -1;
	tti_tcp_link_assign(link);
	port->link_of[peer] = link;
	*out = link;
	return TUTTI_OK;
}

/* Large slots are pages of their own, which cost nothing until they are touched. */
static tutti_status get_memory(struct tti_tcp_link *link)
{
	const size_t slots = (size_t)link->port->slots, slot_bytes = link->port->base.slot_bytes;
	const size_t in_stride = round_up(slot_bytes, PAGE);
	const size_t out_stride = round_up(TTI_TCP_STAGE_PAYLOAD + slot_bytes, PAGE);
	uint8_t *at;

	at = link->memory = tti_aligned_zalloc(64, slots * (TTI_TCP_STAGE_SMALL + TTI_TCP_SMALL +
							    sizeof(struct tti_tcp_slot) +
							    sizeof(struct tti_tcp_out)));
	if (!at)
		return tti_fail(TUTTI_ENOMEM, "link to rank %d: %zu slots", link->base.peer, slots);
	link->out_small = at;
	at += slots * TTI_TCP_STAGE_SMALL;
	link->in.small = at;
	at += slots * TTI_TCP_SMALL;
	link->in.slot = (struct tti_tcp_slot *)at;
	link->out = (struct tti_tcp_out *)(link->in.slot + slots);
	link->in.slots = (uint32_t)slots;
	link->in.slot_bytes = slot_bytes;
	link->in.stride = in_stride;
	link->out_stride = out_stride;
	link->tell_at = slots > 8 ? (uint32_t)slots / 8 : slots > 1 ? (uint32_t)slots / 2 : 1;

	link->pages_bytes = slots * (in_stride + out_stride);
	at = tti_fault("tcp.mmap") ? MAP_FAILED
				   : mmap(NULL, link->pages_bytes, PROT_READ | PROT_WRITE,
					  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (at == MAP_FAILED)
		return tti_fail(TUTTI_ENOMEM,
				"link to rank %d: %zu bytes for 2 * %zu slots of %zu; use fewer "
				"(TUTTI_TCP_SLOTS) or smaller ones (TUTTI_TCP_SLOT)",
				link->base.peer, link->pages_bytes, slots, slot_bytes);
	link->pages = at;
	link->out_large = at;
	link->in.large = at + slots * out_stride;
	return TUTTI_OK;
}

void tti_tcp_link_raise(struct tti_tcp_link *link)
{
	struct tti_tcp_port *port = link->port;
	tutti_status status = get_memory(link);

	link->nlanes = 1;
	if (!status)
		status = tti_tcp_conn_raise(port, link->conn[0]);
	if (!status)
		tti_tcp_lane_introduce(link, 0);
	if (link->asked)
		port->ncoming--;
	if (status) {
		link->state = TTI_TCP_LINK_LOST;
		tti_port_fail(&port->base, status, link->base.peer);
		return;
	}
	link->state = TTI_TCP_LINK_UP;
	link->single = tti_tcp_nics_single(port, link->base.peer);
	/* One lane delivers messages in order, so late credit keeps no other lane idle. */
	if (link->single && link->port->slots > 8)
		link->tell_at = (uint32_t)link->port->slots / 4;
	tti_log(TTI_LOG_INFO, TTI_TCP, "link to rank %d is up", link->base.peer);
	/* Read what came before this. */
	tti_tcp_link_pull(link, link->conn[0]);
}

static void log_lanes(const struct tti_tcp_link *link)
{
	if (link->nlanes < 2 || !tti_log_enabled(TTI_LOG_INFO, TTI_TCP))
		return;
	for (int i = 0; i < link->nlanes; i++) {
		const struct tti_tcp_lane *lane = &link->lane[i];

		tti_log(TTI_LOG_INFO, TTI_TCP,
			"lane %d to rank %d sent %llu bytes, last at %.3f GB/s, lost %u times", i,
			link->base.peer, (unsigned long long)lane->sent, lane->rate, lane->losses);
	}
}

void tti_tcp_link_free(struct tti_tcp_link *link)
{
	log_lanes(link);
	tti_free(link->dial);
	link->port->nheld -= link->held;
	tti_tcp_lanes_free(link);
	for (int i = 0; i < TTI_TCP_LANES_MOST; i++)
		tti_tcp_conn_drop(link->port, link->conn[i]);
	if (link->pages)
		munmap(link->pages, link->pages_bytes);
	tti_free(link->memory);
	tti_free(link);
}

/* -- Reading --------------------------------------------------------------- */

/* A message is wanted that can no longer come: the link is lost. */
static void miss(struct tti_tcp_link *link)
{
	int error = 0;

	if (link->state != TTI_TCP_LINK_UP || link->nconns)
		return;
	for (int i = 0; i < link->nlanes; i++) {
		if (link->conn[i] && link->conn[i]->error)
			error = link->conn[i]->error;
	}
	tti_tcp_link_lose(link,
			  error ? "its connection broke"
				: "it closed the connection, and more was expected of it",
			  error);
}

static const void *peek(struct tti_link *base, size_t *nbytes, uint64_t *tag)
{
	struct tti_tcp_link *link = link_of(base);
	const struct tti_tcp_slot *slot = tti_tcp_inbox_oldest(&link->in);

	if (!slot) {
		tti_tcp_link_look(link);
		slot = tti_tcp_inbox_oldest(&link->in);
		if (!slot) {
			if (!link->nconns)
				miss(link);
			return NULL;
		}
	}
	*nbytes = slot->nbytes;
	*tag = slot->tag;
	return tti_tcp_inbox_room(&link->in, link->in.released, slot->nbytes);
}

/* Whether to send credit. It costs as much as a short message, so more of those are released
 * first. */
static bool is_worth_telling(const struct tti_tcp_link *link)
{
	const uint64_t n = link->in.released - link->told;

	return n >= link->tell_at && (link->untold >= TELL_BYTES || n >= link->in.slots / 2);
}

static void release(struct tti_link *base)
{
	struct tti_tcp_link *link = link_of(base);
	const size_t nbytes = link->in.slot[link->in.released % link->in.slots].nbytes;

	tti_tcp_inbox_release(&link->in);
	tti_tcp_link_count(link, nbytes);
	link->untold += nbytes;
	if (!is_worth_telling(link) || link->credit_due || link->state != TTI_TCP_LINK_UP ||
	    !link->nconns || link->in.ended)
		return;
	link->credit_due = true;
	tti_tcp_owe(link, TTI_TCP_SEALED);
	tti_tcp_link_push(link);
}

static void *reserve(struct tti_link *base, size_t nbytes, size_t whole)
{
	struct tti_tcp_link *link = link_of(base);

	(void)whole;
	/* A slot that is reserved stays so, whatever becomes of the link. */
	if (!link->reserved && nbytes <= link->in.slot_bytes && !tti_tcp_may_stage(link)) {
		tti_tcp_link_look(link);
		if (!link->nconns)
			miss(link);
	}
	return tti_tcp_stage(link, nbytes);
}

const struct tti_link_ops tti_tcp_link_ops = {
	.reserve = reserve,
	.commit = tti_tcp_commit,
	.peek = peek,
	.release = release,
	.send = tti_tcp_send,
};
