/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/shm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "boot/boot.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/fd.h"
#include "util/mem.h"
#include "util/thread.h"

#define LIKELY(condition)   __builtin_expect(!!(condition), 1)
#define UNLIKELY(condition) __builtin_expect(!!(condition), 0)

/* The reader of short messages gives lines back in quarters of a ring, so that
 * its counter's cache line moves rarely. */
#define TELL_EVERY (TTI_SHM_RING / 4)

/* What a message costs by itself, some 0.1 us, is a quarter of what these take. */
#define PIECE_BYTES 8192

/* From arming the bell to the first nap, and the naps: see shm_wait(). */
#define DWELL_NS     20000
#define NAP_LEAST_NS (1 * TTI_NS_PER_MS)
#define NAP_MOST_NS  (64 * TTI_NS_PER_MS)

static struct tti_shm_port *port_of(struct tti_port *port)
{
	return (struct tti_shm_port *)port;
}

static struct tti_shm_link *link_of(struct tti_link *link)
{
	return (struct tti_shm_link *)link;
}

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

static __attribute__((noinline, cold)) void ring(struct tti_shm_bell *bell, uint32_t word)
{
	if (atomic_compare_exchange_strong(&bell->word, &word, word + 1))
		tti_futex_wake(&bell->word, 1);
}

/* A plain load, no fence: shm_wait() makes up for that. */
static inline void ring_if_asleep(struct tti_shm_bell *bell)
{
	const uint32_t word = atomic_load_explicit(&bell->word, memory_order_relaxed);

	if (UNLIKELY(word & 1))
		ring(bell, word);
}

/* Look up what the peer gave back. */
static void look_back(struct tti_shm_link *link)
{
	const uint64_t done = atomic_load_explicit(&link->tx_done->count, memory_order_acquire);
	const uint32_t start = link->port->start;
	const uint32_t lines = (uint32_t)done + start - (uint32_t)link->tx_lines_back;
	const uint32_t boxed = (uint32_t)(done >> 32) + start - link->tx_room.oldest;

	if (lines > link->tx_lines - link->tx_lines_back || boxed > link->tx_room.held) {
		broken(link, "a count of what it read that cannot be");
		return;
	}
	link->tx_lines_back += lines;
	tti_shm_room_give(&link->tx_room, boxed);
}

static inline bool has_line(struct tti_shm_link *link)
{
	if (LIKELY(link->tx_lines - link->tx_lines_back < TTI_SHM_RING))
		return true;
	look_back(link);
	return link->tx_lines - link->tx_lines_back < TTI_SHM_RING;
}

static uint8_t *find_room(struct tti_shm_link *link, size_t nbytes)
{
	const uint32_t cells = tti_shm_cells(nbytes);
	const uint32_t whole = tti_shm_whole(cells, link->base.whole_pages);
	uint32_t at = tti_shm_room_find(&link->tx_room, cells, whole);

	if (UNLIKELY(at == TTI_SHM_FULL)) {
		look_back(link);
		at = tti_shm_room_find(&link->tx_room, cells, whole);
		if (at == TTI_SHM_FULL)
			return NULL;
	}
	link->tx_at = at;
	return link->tx_box + (size_t)at * TTI_SHM_CELL;
}

static inline struct tti_shm_line *tx_line(const struct tti_shm_link *link)
{
	return &link->tx_ring[link->tx_lines % TTI_SHM_RING];
}

static void *reserve(struct tti_link *base, size_t nbytes)
{
	struct tti_shm_link *const link = link_of(base);

	if (UNLIKELY(!has_line(link)))
		return NULL;
	if (LIKELY(nbytes <= TTI_SHM_INLINE))
		return tx_line(link)->data;
	return find_room(link, nbytes);
}

static inline void send_line(struct tti_shm_link *link, enum tti_shm_kind kind, size_t nbytes,
			     uint64_t tag)
{
	struct tti_shm_line *const line = tx_line(link);

	line->meta = (uint32_t)kind << 30 | (uint32_t)nbytes;
	line->tag = tag;
	atomic_store_explicit(&line->seq, (uint32_t)++link->tx_lines, memory_order_release);
	ring_if_asleep(link->bell);
}

static void commit(struct tti_link *base, size_t nbytes, uint64_t tag)
{
	struct tti_shm_link *const link = link_of(base);

	if (LIKELY(nbytes <= TTI_SHM_INLINE)) {
		send_line(link, TTI_SHM_IN_LINE, nbytes, tag);
		return;
	}
	tti_shm_room_take(&link->tx_room, link->tx_at, tti_shm_cells(nbytes));
	memcpy(tx_line(link)->data, &link->tx_at, sizeof(link->tx_at));
	send_line(link, TTI_SHM_IN_BOX, nbytes, tag);
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
		if (LIKELY(kind == TTI_SHM_IN_BOX))
			return link->rx_box + at;
		if (kind == TTI_SHM_IN_OUTBOX)
			return link->rx_outbox + at;
	}
	broken(link, "a message that cannot be");
	return NULL;
}

static const void *peek(struct tti_link *base, size_t *nbytes, uint64_t *tag)
{
	struct tti_shm_link *const link = link_of(base);
	struct tti_shm_line *const line = &link->rx_ring[link->rx_lines % TTI_SHM_RING];
	uint32_t meta, kind;

	if (atomic_load_explicit(&line->seq, memory_order_acquire) != link->rx_lines + 1)
		return NULL;
	/* Read once: what the peer does to it later cannot fool the checks. */
	meta = *(const volatile uint32_t *)&line->meta;
	kind = meta >> 30;
	link->rx_kind = kind;
	*tag = line->tag;
	*nbytes = meta & TTI_SHM_LONGEST;
	if (LIKELY(kind == TTI_SHM_IN_LINE && *nbytes <= TTI_SHM_INLINE))
		return line->data;
	return find_data(link, line, kind, *nbytes);
}

static void tell(struct tti_shm_link *link)
{
	const uint32_t start = link->port->start;
	const uint64_t done = (uint64_t)(link->rx_boxed - start) << 32 | (link->rx_lines - start);

	link->rx_lines_told = link->rx_lines;
	atomic_store_explicit(&link->rx_done->count, done, memory_order_release);
	ring_if_asleep(link->bell);
}

/* What does not travel inline goes back at once: its writer may have no other room. */
static void release(struct tti_link *base)
{
	struct tti_shm_link *const link = link_of(base);

	link->rx_lines++;
	if (LIKELY(link->rx_kind == TTI_SHM_IN_LINE)) {
		if (UNLIKELY(link->rx_lines - link->rx_lines_told >= TELL_EVERY))
			tell(link);
		return;
	}
	link->rx_boxed += link->rx_kind == TTI_SHM_IN_BOX;
	tell(link);
}

static bool all_released(struct tti_link *base)
{
	struct tti_shm_link *const link = link_of(base);

	if (link->tx_lines_back != link->tx_lines)
		look_back(link);
	return link->tx_lines_back == link->tx_lines;
}

static const struct tti_link_ops link_ops = {
	.reserve = reserve,
	.commit = commit,
	.peek = peek,
	.release = release,
	.all_released = all_released,
	.shares_slots = true,
};

static bool has_read(const struct tti_shm_link *link, uint32_t number)
{
	return link->tx_lines_back > link->out_line[number % TTI_SHM_HELD];
}

/* Whether all have read a message of the outbox. */
static bool is_read(struct tti_shm_port *port, uint32_t number)
{
	const uint64_t bit = UINT64_C(1) << number % TTI_SHM_HELD;
	uint32_t *const unread = &port->out->unread[number % TTI_SHM_HELD];

	for (size_t i = 0; i < port->links.n && *unread; i++) {
		struct tti_shm_link *const link = port->links.at[i];

		if (!(link->out_unread & bit))
			continue;
		if (!has_read(link, number)) {
			look_back(link);
			if (!has_read(link, number))
				return false;
		}
		link->out_unread &= ~bit;
		--*unread;
	}
	return !*unread;
}

static void *fanout_reserve(struct tti_port *base, struct tti_link *const *links, int n,
			    size_t nbytes)
{
	struct tti_shm_port *const port = port_of(base);
	struct tti_shm_room *const room = &port->out->room;
	const uint32_t cells = tti_shm_cells(nbytes);
	uint32_t at;

	for (int i = 0; i < n; i++)
		if (!has_line(link_of(links[i])))
			return NULL;
	at = tti_shm_room_find(room, cells, cells);
	if (at == TTI_SHM_FULL) {
		/* The last one is hardly ever read by all, and asking costs a line of the
		 * first who has not. */
		while (room->held > 1 && is_read(port, room->oldest))
			tti_shm_room_give(room, 1);
		at = tti_shm_room_find(room, cells, cells);
	}
	if (at == TTI_SHM_FULL && room->held == 1 && is_read(port, room->oldest)) {
		tti_shm_room_give(room, 1);
		at = tti_shm_room_find(room, cells, cells);
	}
	if (at == TTI_SHM_FULL)
		return NULL;
	port->out->at = at;
	return tti_shm_seg_outbox(&port->seg, port->self) + (size_t)at * TTI_SHM_CELL;
}

static void fanout_commit(struct tti_port *base, struct tti_link *const *links, int n,
			  size_t nbytes, uint64_t tag)
{
	struct tti_shm_port *const port = port_of(base);
	struct tti_shm_outbox *const out = port->out;
	const uint32_t slot = (out->room.oldest + out->room.held) % TTI_SHM_HELD;

	tti_shm_room_take(&out->room, out->at, tti_shm_cells(nbytes));
	for (int i = 0; i < n; i++) {
		struct tti_shm_link *const link = link_of(links[i]);

		memcpy(tx_line(link)->data, &out->at, sizeof(out->at));
		link->out_line[slot] = link->tx_lines;
		link->out_unread |= UINT64_C(1) << slot;
		out->unread[slot]++;
		send_line(link, TTI_SHM_IN_OUTBOX, nbytes, tag);
	}
}

static const struct tti_fanout_ops fanout_ops = {
	.reserve = fanout_reserve,
	.commit = fanout_commit,
};

/* Sleeping without a fence on the senders' side. A sender stores its message and
 * then loads our bell; the load may come first and miss that we armed it, while
 * our last look missed the message. A processor holds a store back for less than
 * a microsecond. So the first call arms the bell and sleeps for 20 us at most; the
 * caller looks once more, and by then the message of everyone who missed the bell
 * is to be seen. The next call sleeps for long. Should it go wrong all the same, it
 * costs one nap. */
static void shm_wait(struct tti_port *base, int64_t timeout_ns)
{
	struct tti_shm_port *const port = port_of(base);
	struct tti_shm_bell *bell;
	int64_t most = DWELL_NS;
	uint32_t word;

	if (!port->seg.base)
		return;
	bell = tti_shm_seg_bell(&port->seg, port->self);
	word = atomic_load_explicit(&bell->word, memory_order_acquire);
	if (port->armed && word == port->armed) {
		most = port->nap_ns;
		if (port->nap_ns < NAP_MOST_NS)
			port->nap_ns *= 2;
	} else {
		port->armed = (word + 1) | 1;
		port->nap_ns = NAP_LEAST_NS;
		atomic_store(&bell->word, port->armed);
	}
	tti_futex_wait(&bell->word, port->armed, timeout_ns < most ? timeout_ns : most);
}

static const struct tti_sleep_ops sleep_ops = {
	.wait = shm_wait,
};

static void shm_shutdown(struct tti_port *base)
{
	struct tti_shm_port *const port = port_of(base);

	if (!port)
		return;
	for (size_t i = 0; i < port->links.n; i++) {
		tti_shm_pair_unmap(&port->seg, port->links.at[i]->pair);
		tti_free(port->links.at[i]);
	}
	tti_vec_release(&port->links);
	tti_shm_heap_release(&port->heap);
	tti_shm_seg_release(&port->seg);
	tti_fd_close(&port->listener);
	tti_free(port->candidate);
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
	tti_shm_heap_init(&port->heap);
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

/* Of the host: its ranks may have been given some of them each. */
static int cores(void)
{
	const long n = sysconf(_SC_NPROCESSORS_ONLN);

	return n > 0 ? (int)n : 1;
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
	tti_shm_room_init(&link->tx_room, box, layout->slots, layout->n, cores(), false,
			  port->start);
	link->rx_ring = pair->ring[rx];
	link->rx_done = &pair->done[rx];
	link->rx_box = boxes + (size_t)rx * box;
	link->rx_outbox = tti_shm_seg_outbox(&port->seg, index);
	link->tx_lines = link->tx_lines_back = port->start;
	link->rx_lines = link->rx_lines_told = link->rx_boxed = port->start;
}

static tutti_status need_outbox(struct tti_shm_port *port)
{
	const struct tti_shm_layout *const layout = &port->seg.layout;

	if (port->out)
		return TUTTI_OK;
	port->out = tti_zalloc(sizeof(*port->out));
	if (!port->out)
		return tti_fail(TUTTI_ENOMEM, "outbox of rank %d: out of memory", port->base.rank);
	tti_shm_room_init(&port->out->room, layout->box_bytes, layout->slots, layout->n, cores(),
			  true, 0);
	return TUTTI_OK;
}

/* A link stays when it is closed: connected again, it goes on where it was. */
static tutti_status shm_connect(struct tti_port *base, int peer, struct tti_link **out)
{
	struct tti_shm_port *const port = port_of(base);
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
	TTI_TRY(need_outbox(port));
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

/* Measured: bench/micro/bench_shm.c. */
static void shm_cost(const struct tti_port *port, struct tti_cost *out)
{
	(void)port;
	out->latency_ns = 140;
	out->bw_gbps = 12;
}

static void shm_close(struct tti_link *link)
{
	(void)link;
}

void tti_shm_set_start(struct tti_port *port, uint32_t start)
{
	port_of(port)->start = start;
}

const struct tti_transport tti_transport_shm = {
	.size = sizeof(struct tti_transport),
	.name = "shm",
	.piece_bytes = PIECE_BYTES,
	.open = shm_open_port,
	.join = tti_shm_join,
	.connect = shm_connect,
	.cost = shm_cost,
	.close = shm_close,
	.shutdown = shm_shutdown,
	.fanout = &fanout_ops,
	.sleep = &sleep_ops,
	.memory = &tti_shm_memory_ops,
};
