/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/shm/shm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "boot/boot.h"
#include "transport/shm/shm_link.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/fd.h"
#include "util/mem.h"
#include "util/thread.h"

/* The reader of short messages gives lines back in quarters of a ring, so that
 * its counter's cache line moves rarely. */
#define TELL_EVERY (TTI_SHM_RING / 4)

/* What a message costs by itself, some 0.1 us, is a quarter of what these take. */
#define PIECE_BYTES 8192

/* So many of the lines of a next message are fetched while its writer waits. */
#define OWNED_CELLS 128u

/* From arming the bell to the next look, some 0.7 us, and a sleep: see shm_wait(). */
#define STORED_ROUNDS 16
#define LONGEST_NS    (64 * TTI_NS_PER_MS)

tutti_status tti_shm_fail(const struct tti_shm_port *port, tutti_status status, int peer,
			  const char *what)
{
	char cause[256];

	snprintf(cause, sizeof(cause), "%s", tti_error_text());
	if (peer < 0)
		return tti_fail(status, "shared memory, rank %d, %s: %s", port->base.rank, what,
				cause);
	return tti_fail(status, "shared memory, rank %d, %s rank %d: %s", port->base.rank, what,
			peer, cause);
}

static __attribute__((noinline, cold)) void broken(const struct tti_shm_link *link,
						   const char *what)
{
	struct tti_port *const port = &link->port->base;

	if (port->failure != TUTTI_OK)
		return;
	tti_port_fail(port,
		      tti_fail(TUTTI_EPROTO, "shared memory: rank %d left %s for rank %d",
			       link->base.peer, what, port->rank),
		      link->base.peer);
}

/* Parts of a bell's word (shm_seg.h). */
#define ARMED  UINT32_C(1)
#define COUNTS UINT32_C(2)
#define ONE    UINT32_C(4)
#define FIELD  (UINT32_C(4095) * ONE)
#define STATE  (ARMED | COUNTS | FIELD)

/* What a sleeper writes: who is to ring it, or how many messages are; what does not fit is anybody. */
static uint32_t armed_for(int place, uint32_t missing)
{
	if (missing > 1)
		return missing > 4095 ? ARMED : ARMED | COUNTS | missing * ONE;
	return place < 0 || place >= 4095 ? ARMED : ARMED | (uint32_t)(place + 1) * ONE;
}

__attribute__((noinline, cold)) void tti_shm_ring(const struct tti_shm_link *link, uint32_t word,
						  bool is_message)
{
	_Atomic uint32_t *const bell = &link->bell->word;
	uint32_t next;

	do {
		const uint32_t field = word & FIELD;

		if (!(word & ARMED) || ((word & COUNTS) && !is_message) ||
		    (!(word & COUNTS) && field &&
		     field != (armed_for(link->port->self, 1) & FIELD)))
			return;
		next = (word & COUNTS) && field > ONE ? word - ONE : (word | STATE) + 1;
	} while (!atomic_compare_exchange_strong(bell, &word, next));
	if (!(next & ARMED))
		tti_futex_wake(bell, 1);
}

void tti_shm_look_back(struct tti_shm_link *link)
{
	const uint64_t done = atomic_load_explicit(&link->tx_done->count, memory_order_acquire);
	const uint32_t of_all = atomic_load_explicit(&link->tx_done->of_all, memory_order_acquire);
	const uint32_t start = link->port->start;
	const uint32_t lines = (uint32_t)done + start - (uint32_t)link->tx_lines_back;
	const uint32_t boxed = (uint32_t)(done >> 32) + start - link->tx_room.oldest;
	const uint32_t for_all = of_all - (uint32_t)link->tx_for_all_back;

	tti_tsan_take((uint32_t)link->base.peer, (uint32_t)link->port->base.rank);
	if (lines > link->tx_lines - link->tx_lines_back || boxed > link->tx_room.held ||
	    for_all > link->port->for_all - link->tx_for_all_back) {
		broken(link, "a count of what it read that cannot be");
		return;
	}
	link->tx_lines_back += lines;
	link->tx_for_all_back += for_all;
	tti_shm_room_give(&link->tx_room, boxed);
}

static uint8_t *find_room(struct tti_shm_link *link, size_t nbytes, size_t whole_bytes)
{
	const uint32_t cells = tti_shm_cells(nbytes);
	const uint32_t whole = whole_bytes > nbytes ? tti_shm_cells(whole_bytes) : cells;
	uint32_t at = tti_shm_room_find(&link->tx_room, cells, whole);

	if (TTI_UNLIKELY(at == TTI_SHM_FULL)) {
		tti_shm_look_back(link);
		at = tti_shm_room_find(&link->tx_room, cells, whole);
		if (at == TTI_SHM_FULL)
			at = tti_shm_room_find_far(&link->tx_room, cells);
		else if (link->tx_room.full_since_ns)
			tti_shm_room_is_free(&link->tx_room);
		if (at == TTI_SHM_FULL)
			return NULL;
	}
	link->tx_at = at;
	/* Who sends several messages in a row is ahead of its reader, and each takes a little longer
	 * to write so. */
	link->base.is_awaited = link->port->demotes && cells <= TTI_AWAITED_BYTES / TTI_SHM_CELL &&
				link->port->taken != link->port->taken_then;
	return tti_shm_room_at(&link->tx_room, link->tx_box, at, cells);
}

static void *reserve(struct tti_link *base, size_t nbytes, size_t whole)
{
	struct tti_shm_link *const link = tti_shm_link_of(base);

	if (TTI_UNLIKELY(!tti_shm_has_line(link)))
		return NULL;
	if (TTI_LIKELY(nbytes <= TTI_SHM_INLINE))
		return tti_shm_tx_line(link)->data;
	return find_room(link, nbytes, whole);
}

static void commit(struct tti_link *base, size_t nbytes, uint64_t tag)
{
	struct tti_shm_link *const link = tti_shm_link_of(base);

	if (TTI_LIKELY(nbytes <= TTI_SHM_INLINE)) {
		tti_shm_send_line(link, TTI_SHM_IN_LINE, nbytes, tag);
		return;
	}
	if (link->base.is_awaited)
		link->port->taken_then = link->port->taken;
	tti_shm_room_take(&link->tx_room, link->tx_at, tti_shm_cells(nbytes));
	memcpy(tti_shm_tx_line(link)->data, &link->tx_at, sizeof(link->tx_at));
	tti_shm_send_line(link, TTI_SHM_IN_BOX, nbytes, tag);
	link->port->unowned = link;
}

/* Where the bytes of a message lie that is not in its line; NULL: nonsense. */
static const void *find_data(struct tti_shm_link *link, const struct tti_shm_line *line,
			     uint32_t kind, size_t nbytes)
{
	const struct tti_shm_layout *const layout = &link->port->seg.layout;
	const uint32_t cell = *(const volatile uint32_t *)line->data;
	const size_t at = (size_t)cell * TTI_SHM_CELL;

	if (nbytes <= layout->slot_bytes && at <= layout->box_bytes &&
	    nbytes <= layout->box_bytes - at) {
		if (TTI_LIKELY(kind == TTI_SHM_IN_BOX))
			return link->rx_box + at;
		if (kind == TTI_SHM_IN_OUTBOX)
			return link->rx_outbox + at;
	}
	broken(link, "a message that cannot be");
	return NULL;
}

static inline void own(const uint8_t *line)
{
#ifdef __x86_64__
	__asm__ volatile("prefetchw %0" : : "m"(*line));
#else
	__builtin_prefetch(line, 1);
#endif
}

/* To write to a line that a peer has read is to ask for it first. This rank has nothing to do but
 * wait, so it asks for those of the next message now, which is taken to be as long as the last. */
__attribute__((noinline)) static void own_next(struct tti_shm_port *port)
{
	const struct tti_shm_link *const link = port->unowned;
	const struct tti_shm_room *const room = &link->tx_room;
	const uint32_t cells = room->cells[(room->oldest + room->held - 1) % TTI_SHM_HELD];
	uint32_t at;

	port->unowned = NULL;
	if (!port->has_cores)
		return;
	at = tti_shm_room_find(room, cells, cells);
	for (uint32_t i = 0; at != TTI_SHM_FULL && i < cells && i < OWNED_CELLS; i++)
		own(link->tx_box + (size_t)(at + i) * TTI_SHM_CELL);
}

/* The next message, NULL: it is not there yet. Of those of the link and those for all only one can
 * be next, as a line of the link has the number of its message among both. */
static const struct tti_shm_line *next_line(const struct tti_shm_link *link)
{
	const struct tti_shm_line *const line = &link->rx_ring[link->rx_lines % TTI_SHM_RING];
	const uint32_t next = link->rx_lines + link->rx_for_all + 1;
	const struct tti_shm_line *for_all;

	if (TTI_LIKELY(atomic_load_explicit(&line->seq, memory_order_acquire) == next))
		return line;
	if (!link->rx_ring_for_all)
		return NULL;
	for_all = &link->rx_ring_for_all[link->rx_for_all % TTI_SHM_RING];
	if (atomic_load_explicit(&for_all->seq, memory_order_acquire) != link->rx_for_all + 1)
		return NULL;
	/* What was sent on the link before is to be seen by now. */
	if (atomic_load_explicit(&line->seq, memory_order_acquire) == next)
		return line;
	return for_all;
}

static const void *peek(struct tti_link *base, size_t *nbytes, uint64_t *tag)
{
	struct tti_shm_link *const link = tti_shm_link_of(base);
	const struct tti_shm_line *const line = next_line(link);
	uint32_t meta, kind;

	if (!line) {
		if (link->port->unowned)
			own_next(link->port);
		return NULL;
	}
	tti_tsan_take((uint32_t)base->peer, (uint32_t)link->port->base.rank);
	/* Read once: what the peer does to it later cannot fool the checks. */
	meta = *(const volatile uint32_t *)&line->meta;
	kind = meta >> 30;
	link->rx_kind = kind;
	link->rx_is_for_all = line != &link->rx_ring[link->rx_lines % TTI_SHM_RING];
	*tag = line->tag;
	*nbytes = meta & TTI_SHM_LONGEST;
	if (TTI_LIKELY(kind == TTI_SHM_IN_LINE && *nbytes <= TTI_SHM_INLINE))
		return line->data;
	return find_data(link, line, kind, *nbytes);
}

static void tell(struct tti_shm_link *link)
{
	const uint32_t start = link->port->start;
	const uint64_t done = (uint64_t)(link->rx_boxed - start) << 32 | (link->rx_lines - start);

	tti_tsan_give((uint32_t)link->port->base.rank, (uint32_t)link->base.peer);
	link->rx_lines_told = link->rx_lines;
	if (link->rx_for_all_told != link->rx_for_all) {
		link->rx_for_all_told = link->rx_for_all;
		atomic_store_explicit(&link->rx_done->of_all, link->rx_for_all,
				      memory_order_release);
	}
	atomic_store_explicit(&link->rx_done->count, done, memory_order_release);
	tti_shm_ring_if_asleep(link, false);
}

/* What does not travel inline goes back at once: its writer may have no other room. */
static void release(struct tti_link *base)
{
	struct tti_shm_link *const link = tti_shm_link_of(base);

	link->port->taken++;
	if (link->rx_is_for_all)
		link->rx_for_all++;
	else
		link->rx_lines++;
	if (TTI_LIKELY(link->rx_kind == TTI_SHM_IN_LINE)) {
		if (TTI_UNLIKELY(link->rx_lines - link->rx_lines_told >= TELL_EVERY ||
				 link->rx_for_all - link->rx_for_all_told >= TELL_EVERY))
			tell(link);
		return;
	}
	link->rx_boxed += link->rx_kind == TTI_SHM_IN_BOX;
	tell(link);
}

static bool all_released(struct tti_link *base)
{
	struct tti_shm_link *const link = tti_shm_link_of(base);

	const uint64_t for_all = link->port->for_all;

	if (link->tx_lines_back != link->tx_lines || link->tx_for_all_back != for_all)
		tti_shm_look_back(link);
	return link->tx_lines_back == link->tx_lines && link->tx_for_all_back == for_all;
}

static const struct tti_link_ops link_ops = {
	.reserve = reserve,
	.commit = commit,
	.peek = peek,
	.release = release,
	.all_released = all_released,
	.shares_slots = true,
};

/* Sleeping without a fence on the senders' side. Who sleeps arms its bell, and whoever then sends
 * or reads a message rings it. A sender stores its message and then loads the bell; the load may
 * come first and find it not armed, while our last look missed the message. A processor holds a
 * store back for less than a microsecond, mostly for less than 0.2. So the first call arms the
 * bell, lets that pass and returns, for the caller to look again; the next one sleeps. Should it
 * go wrong all the same, it costs one sleep. A short one to be safe would cost more each time:
 * timers that end before the next tick are dear, in virtual machines above all. */
static void shm_wait(struct tti_port *base, int64_t timeout_ns)
{
	struct tti_shm_port *const port = tti_shm_port_of(base);
	struct tti_shm_bell *bell;
	uint32_t word, armed;

	if (!port->seg.base)
		return;
	armed = armed_for(base->missing == 1 ? tti_shm_find_candidate(port, base->awaited->peer)
					     : -1,
			  base->missing);
	bell = tti_shm_seg_bell(&port->seg, port->self);
	word = atomic_load_explicit(&bell->word, memory_order_acquire);
	armed |= word & ~STATE;
	/* A count may also have come down to this one, by messages that the look did not see. */
	if (word == armed && armed == port->armed) {
		tti_futex_wait(&bell->word, word,
			       timeout_ns < LONGEST_NS ? timeout_ns : LONGEST_NS);
		return;
	}
	port->armed = armed;
	atomic_store(&bell->word, armed);
	for (int i = 0; i < STORED_ROUNDS; i++)
		tti_cpu_relax();
}

/* As if somebody had rung. */
static void shm_wake(struct tti_port *base)
{
	struct tti_shm_port *const port = tti_shm_port_of(base);
	struct tti_shm_bell *bell;
	uint32_t word;

	if (!port->seg.base)
		return;
	bell = tti_shm_seg_bell(&port->seg, port->self);
	word = atomic_load(&bell->word);
	while (!atomic_compare_exchange_weak(&bell->word, &word, (word | STATE) + 1))
		;
	tti_futex_wake(&bell->word, 1);
}

static const struct tti_sleep_ops sleep_ops = {
	.wait = shm_wait,
	.wake = shm_wake,
};

static void shm_shutdown(struct tti_port *base)
{
	struct tti_shm_port *const port = tti_shm_port_of(base);

	if (!port)
		return;
	for (size_t i = 0; i < port->links.n; i++) {
		tti_shm_pair_unmap(&port->seg, port->links.at[i]->pair);
		tti_free(port->links.at[i]);
	}
	tti_vec_release(&port->links);
	tti_shm_views_release(port);
	tti_shm_ranges_release(&port->ranges);
	tti_shm_seg_release(&port->seg);
	tti_fd_close(&port->listener);
	tti_free(port->candidate);
	tti_free(port->process);
	tti_free(port->out);
	tti_free(port);
}

static tutti_status shm_open_port(const struct tti_port_config *config, struct tti_port **out,
				  struct tti_card *card)
{
	struct tti_shm_port *port;
	struct tti_shm_layout layout;
	tutti_status st;

	if (tti_shm_layout_init(&layout, 1, config->slot_bytes, config->slots) != TUTTI_OK)
		return tti_fail(TUTTI_EINVAL, "%s", tti_error_text());
	port = tti_zalloc(sizeof(*port));
	if (!port)
		return tti_fail(TUTTI_ENOMEM, "shared memory port of rank %d: out of memory",
				config->rank);
	port->base.transport = &tti_transport_shm;
	port->base.rank = config->rank;
	port->base.nranks = config->nranks;
	port->base.slot_bytes = config->slot_bytes;
	port->base.inline_bytes = TTI_SHM_INLINE;
	port->base.failed_peer = -1;
	port->config = *config;
	port->listener = -1;
	port->seg.fd = -1;
	tti_shm_ranges_init(&port->ranges);
	st = tti_shm_listen(port, card);
	if (st != TUTTI_OK) {
		shm_shutdown(&port->base);
		return st;
	}
	*out = &port->base;
	return TUTTI_OK;
}

/* bsearch: the place of a rank among the candidates, -1: it is none. */
static int compare_ranks(const void *a, const void *b)
{
	const int left = *(const int *)a, right = *(const int *)b;

	return (left > right) - (left < right);
}

int tti_shm_find_candidate(const struct tti_shm_port *port, int rank)
{
	const int *const found = bsearch(&rank, port->candidate, (size_t)port->n,
					 sizeof(port->candidate[0]), compare_ranks);

	return found ? (int)(found - port->candidate) : -1;
}

static void set_up(struct tti_shm_link *link, int index, struct tti_shm_pair *pair)
{
	struct tti_shm_port *const port = link->port;
	const struct tti_shm_layout *const layout = &port->seg.layout;
	const size_t box = layout->box_bytes;
	const int tx = port->self < index ? 0 : 1, rx = 1 - tx;
	uint8_t *const boxes = (uint8_t *)(pair + 1);

	link->base.ops = &link_ops;
	link->base.peer = port->candidate[index];
	link->pair = pair;
	link->bell = tti_shm_seg_bell(&port->seg, index);
	link->tx_ring = pair->ring[tx];
	link->tx_done = &pair->done[tx];
	link->tx_box = boxes + (size_t)tx * box;
	tti_shm_room_init(&link->tx_room, box, layout->slot_bytes, layout->slots, layout->n,
			  port->cores, false, port->start);
	link->rx_ring = pair->ring[rx];
	link->rx_done = &pair->done[rx];
	link->rx_box = boxes + (size_t)rx * box;
	link->rx_outbox = tti_shm_seg_outbox(&port->seg, index);
	if (port->base.fans_short)
		link->rx_ring_for_all = tti_shm_seg_ring(&port->seg, index);
	link->tx_lines = link->tx_lines_back = port->start;
	link->rx_lines = link->rx_lines_told = link->rx_boxed = port->start;
}

/* A link stays when it is closed: connected again, it goes on where it was. */
static tutti_status shm_connect(struct tti_port *base, int peer, struct tti_link **out)
{
	struct tti_shm_port *const port = tti_shm_port_of(base);
	const int index = port->seg.base ? tti_shm_find_candidate(port, peer) : -1;
	struct tti_shm_link *link;
	struct tti_shm_pair *pair;
	tutti_status st;

	if (index < 0 || index == port->self)
		return tti_fail(TUTTI_EINVAL, "rank %d shares no memory with rank %d", base->rank,
				peer);
	for (size_t i = 0; i < port->links.n; i++)
		if (port->links.at[i]->base.peer == peer) {
			*out = &port->links.at[i]->base;
			return TUTTI_OK;
		}
	TTI_TRY(tti_shm_need_outbox(port));
	link = tti_zalloc(sizeof(*link));
	if (!link || !tti_vec_grow(&port->links)) {
		st = tti_fail(TUTTI_ENOMEM, "link of rank %d to rank %d: out of memory", base->rank,
			      peer);
		goto fail;
	}
	st = tti_shm_pair_map(&port->seg, port->self, index, &pair);
	if (st != TUTTI_OK) {
		st = tti_shm_fail(port, st, peer, "connecting");
		goto fail;
	}
	link->port = port;
	set_up(link, index, pair);
	port->links.at[port->links.n++] = link;
	*out = &link->base;
	return TUTTI_OK;

fail:
	tti_free(link);
	return st;
}

static void shm_close(struct tti_link *link)
{
	(void)link;
}

void tti_shm_set_start(struct tti_port *port, uint32_t start)
{
	tti_shm_port_of(port)->start = start;
}

const struct tti_transport tti_transport_shm = {
	.size = sizeof(struct tti_transport),
	.name = "shm",
	.piece_bytes = PIECE_BYTES,
	.open = shm_open_port,
	.join = tti_shm_join,
	.settle = tti_shm_settle,
	.connect = shm_connect,
	.close = shm_close,
	.shutdown = shm_shutdown,
	.fanout = &tti_shm_fanout_ops,
	.sleep = &sleep_ops,
	.memory = &tti_shm_memory_ops,
};
