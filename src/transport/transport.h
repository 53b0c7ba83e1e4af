/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_TRANSPORT_TRANSPORT_H
#define TTI_TRANSPORT_TRANSPORT_H

/* How bytes get from one rank to another.
 *
 * A port is one rank's end of a transport; a link is its end of a connection to
 * one peer, both directions. A link moves messages in order, each at most
 * slot_bytes long, with credits: the sender writes into a slot the transport
 * lends, the receiver reads in place from a slot and gives it back.
 *
 *     sender    reserve -> write -> commit
 *     receiver                      peek -> read -> release
 *
 * Nothing blocks but join(), close() and shutdown(). Nothing on the way of a
 * message allocates, locks, logs, or makes a system call that is not the moving
 * itself. A message carries a tag of 64 bits: the signature of the call.
 *
 * Life of a port: open -> (cards of all ranks exchanged) -> join -> (domains of
 * all ranks exchanged) -> settle -> connect ... -> close each link -> shutdown.
 *
 * Threads: a port and its links are used by one thread at a time (the
 * communicator's executing thread). *stop may be set by any.
 *
 * Owner: who opened a port shuts it down; links belong to their port, and are
 * given back with close(). */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "reduce/reduce.h"
#include "tutti/status.h"
#include "util/reach.h"

/* What a port tells the peers' ports. Plain data of its transport's making. */
#define TTI_CARD_BYTES 512
struct tti_card {
	uint8_t bytes[TTI_CARD_BYTES];
};

/* How ordinary memory is to be reached: TUTTI_REACH, in the order of its values. */
enum tti_reach_wish { TTI_WISH_AUTO, TTI_WISH_SLOTS, TTI_WISH_COPIED };

struct tti_port_config {
	int rank, nranks;
	const uint8_t *secret; /* TTI_SECRET_BYTES; outlives the port             */
	const char *host_id;   /* TUTTI_HOST_ID or NULL                           */
	size_t slot_bytes;     /* of a slot                                       */
	int slots;             /* of a link, per direction                        */
	size_t heap_bytes;     /* of memory that peers can address, at most       */
	enum tti_reach_wish reach;
	int64_t ptracer;   /* TUTTI_PTRACER; 0: none */
	bool encrypt;      /* messages, where they leave the host */
	int traffic_class; /* of their packets there; 0: the system's */
	/* What was measured before, so that it need not be again, and by whom, in words; NULL: nothing.
	 * Used by join() and settle(). */
	const struct tti_reach_figures *measured;
	const char *measured_by;
	const _Atomic int *stop; /* nonzero: join() gives up with TUTTI_EABORTED */
	/* Of join(); of connecting: how long the machine of a peer may not be reached. How long a peer
	 * that is reached, or is to connect, takes to do its part is not the port's to limit: who waits
	 * for it knows whether it lives. */
	int64_t timeout_ms;
};

/* Longer messages are read while they are written (docs/performance.md). */
#define TTI_AWAITED_BYTES 2048

struct tti_link {
	const struct tti_link_ops *ops;
	int peer;
	struct tti_copy_way way; /* the engine's: how slots are written */
	/* Set by reserve() of more than fits a line: the peer seems to wait for this message of at
	 * most TTI_AWAITED_BYTES, and its cores are others, so it is written by
	 * tti_copy_for_reader(). */
	bool is_awaited;

	/* The transport's own fields follow in its larger struct. */
};

struct tti_port {
	const struct tti_transport *transport;
	int rank, nranks;
	size_t slot_bytes;   /* longest message; join() may lower it: all agree    */
	size_t inline_bytes; /* up to here a message is cheapest to write per link:
				sharing one slot among links gains nothing         */
	bool fans_short;     /* it does gain something: set by join(), all agree   */
	/* How ordinary memory, which is neither allocated nor added at a port, is reached by
	 * all ranks of the domain alike. */
	enum tti_reach plain;
	struct tti_reach_figures figures; /* zeroed: not measured */
	/* Set by the transport when it can go on no more: a link broke, a peer
	 * sent nonsense. The engine looks here while it waits. */
	tutti_status failure;
	int failed_peer;        /* -1: unknown */
	char failure_text[640]; /* the error text of then */
	/* Set by who owns the port: all is said, and a peer that goes is not missed, so its
	 * end is a failure as ever, but nothing to log. */
	bool parting;
	/* The engine's, for sleep: the wait cannot end before so many messages have come, where they
	 * are one by this link; 0: whatever a peer does may end it. */
	uint32_t missing;
	const struct tti_link *awaited;
	/* Bytes committed but not yet handed over to the system: a call is not
	 * over before this is 0. Always 0 for memory. */
	size_t unsent;
};

/* The first failure counts: keeps status, peer and this thread's error text. */
void tti_port_fail(struct tti_port *port, tutti_status status, int peer);

struct tti_link_ops {
	/* Room for one message of nbytes <= slot_bytes; NULL: no credit now.
	 * Again without commit: the same room. `whole` > nbytes: it is a piece of what would be a
	 * message of so many bytes, and as much may be under way as if it were. */
	void *(*reserve)(struct tti_link *link, size_t nbytes, size_t whole);
	/* What was written goes out, nbytes as reserved. */
	void (*commit)(struct tti_link *link, size_t nbytes, uint64_t tag);
	/* The oldest message, in place; NULL: none yet. Valid until release. */
	const void *(*peek)(struct tti_link *link, size_t *nbytes, uint64_t *tag);
	void (*release)(struct tti_link *link);
	/* Optional: as reserve, a copy of `data` and commit, but that need not copy first;
	 * `data` is the caller's again on return. false: not now, or not of use here: nothing
	 * has happened. */
	bool (*send)(struct tti_link *link, const void *data, size_t nbytes, uint64_t tag);
	/* Another core reads what is written into a slot, and not the system. */
	bool shares_slots;
	/* Whether the peer has released all that was committed, the last message of it longer
	 * than inline_bytes (what is shorter may be said to be released later than it is). Of
	 * ports that have memory, NULL elsewhere. */
	bool (*all_released)(struct tti_link *link);
};

/* Optional: one slot for several links, written once and read by all. */
struct tti_fanout_ops {
	/* Room for one message to all of links[0..n-1], or NULL: not now. */
	void *(*reserve)(struct tti_port *port, struct tti_link *const *links, int n,
			 size_t nbytes);
	void (*commit)(struct tti_port *port, struct tti_link *const *links, int n, size_t nbytes,
		       uint64_t tag);
};

/* Optional: sleeping until something happens on the port, at most timeout_ns;
 * may return early, and need not return before port->missing messages have come. Where it is NULL the
 * engine sleeps in short naps. */
struct tti_sleep_ops {
	void (*wait)(struct tti_port *port, int64_t timeout_ns);
	/* Optional: a descriptor that is readable while wait() would find something. Belongs
	 * to the port; may be polled beside its thread. */
	int (*descriptor)(const struct tti_port *port);
	/* Where there is no descriptor: end the sleep of the thread that is in wait(). So that
	 * one thread may be in wait() while another uses the port; port->missing is 0 then. */
	void (*wake)(struct tti_port *port);
};

/* One way between the two ends of a link: over a network, a pair of addresses. */
struct tti_lane_info {
	char local_nic[16], remote_nic[16];   /* names of the interfaces, "" if unknown */
	char local_addr[64], remote_addr[64]; /* as text                                */
	uint32_t local_mbps, remote_mbps;     /* speeds the NICs claim, 0: unknown      */
	bool up;
	double gbps;        /* GB/s that it carries, as measured; 0: not yet       */
	int64_t rtt_ns;     /* smoothed, 0: unknown                                */
	uint64_t sent;      /* bytes, of messages                                  */
	uint32_t losses;    /* how often it was given up                           */
	uint32_t local_mtu; /* of the local NIC, 0: unknown                        */
	uint64_t resent;    /* packets that had to be sent again, so far           */
	char trouble[128];  /* why it is not up, or what is odd about it; "" if nothing */
};

/* What part of the bytes that this rank sends to a peer a pair of NICs should carry. */
struct tti_lane_share {
	char local_nic[16], remote_nic[16]; /* names of the interfaces */
	/* Of the sum of all shares with that peer. 0: of none, but the peer sends by it. */
	double share;
};

/* Optional: links that are made of several lanes. Each message travels on one of them;
 * which one is the transport's choice, by the shares that were assigned to its NICs, else by
 * what each carries at the time. */
struct tti_lane_ops {
	/* How many lanes there are, up or not: 0 .. count - 1. May grow. */
	int (*count)(const struct tti_link *link);
	void (*get)(const struct tti_link *link, int lane, struct tti_lane_info *out);
	/* Find and open all lanes now, not when there is much to send. Does not wait. */
	void (*open_all)(struct tti_link *link);
	/* Messages from now on take this lane alone; -1: any. For measuring. */
	void (*only)(struct tti_link *link, int lane);
};

/* Where a range of a rank's memory lies, as its peers need it. Plain data; zeroed: they
 * cannot get at it. */
struct tti_memory_name {
	uint64_t at;    /* in the heap of its process (heap.h); else its address there */
	uint32_t reach; /* enum tti_reach: how peers get at it                         */
	uint32_t note;  /* the transport's own                                         */
};

/* A named range of a peer as this rank gets at it. */
struct tti_remote {
	void *mapped;     /* its address here; NULL: it can only be copied, by read() and write() */
	uint64_t address; /* in the process of the peer, if it is not mapped                   */
};

/* Optional: memory of one rank that the others read and write in place: that of its process's heap
 * (heap.h), and the caller's own. A name is valid until its memory is freed or dropped.
 * Threads: add, drop and name may be called by any, also beside the one that uses the port. */
struct tti_memory_ops {
	/* The caller's own memory; drop() with the same range. */
	tutti_status (*add)(struct tti_port *port, const void *memory, size_t nbytes);
	tutti_status (*drop)(struct tti_port *port, const void *memory, size_t nbytes);
	/* The name of a range that is all of the heap or added here, or of any memory where
	 * port->plain is TTI_REACH_COPIED; false: it has none that every peer of the domain
	 * understands. */
	bool (*name)(struct tti_port *port, const void *range, size_t nbytes,
		     struct tti_memory_name *out);
	/* Where a peer's range is to be found here; if it is mapped, until shutdown(), though the
	 * peer may free it. */
	tutti_status (*find)(struct tti_port *port, int peer, const struct tti_memory_name *name,
			     size_t nbytes, struct tti_remote *out);
	/* Copy from or to memory of a peer's process at an address that find() gave, or further
	 * on in the same range. All of it or an error, after which some of it may have been
	 * copied. Only the port's thread, and only while the peer keeps its memory: it is in
	 * the same call and waits for this rank before it leaves it. */
	tutti_status (*read)(struct tti_port *port, int peer, void *to, uint64_t from,
			     size_t nbytes);
	tutti_status (*write)(struct tti_port *port, int peer, uint64_t to, const void *from,
			      size_t nbytes);
};

struct tti_transport {
	size_t size;      /* sizeof(*this); lets a newer core load us */
	const char *name; /* "shm": shown to users, kept stable       */

	/* What one rank has for another alone is cut into messages of no less, where it is long:
	 * one is read while the next one is written. 0: in as few as there can be. The same on
	 * both sides. */
	size_t piece_bytes;

	/* Open a port and describe it in *card. */
	tutti_status (*open)(const struct tti_port_config *config, struct tti_port **out,
			     struct tti_card *card);

	/* With everybody's card: find out which peers are really reachable, by
	 * trying. *domain is a number that is equal on two ranks if and only if
	 * this transport connects them; 0: none. All ranks call it, it may block
	 * until they have, or until the deadline. */
	tutti_status (*join)(struct tti_port *port, const struct tti_card *cards, uint64_t *domain);

	/* Optional: once all ranks have joined: what was agreed on meanwhile is in the port. Does
	 * not wait. TUTTI_EUNSUPPORTED, on all ranks of the domain: config.reach cannot be. */
	tutti_status (*settle)(struct tti_port *port);

	/* The link to `peer` (of the same domain); TUTTI_AGAIN until it is there:
	 * call progress() and then again. Both sides ask for it. */
	tutti_status (*connect)(struct tti_port *port, int peer, struct tti_link **out);

	/* Accept, read, write, hand out credits: what memory does by itself. NULL
	 * if nothing is to be done. Failures go to port->failure. */
	void (*progress)(struct tti_port *port);

	/* Give a link back; what was committed still arrives. */
	void (*close)(struct tti_link *link);

	/* After the last close(). Waits until the machines of the peers have what was committed, while
	 * they take something of it within each second, at most 10 s. What they have not taken then
	 * is lost, and logged. NULL and half-built ok. */
	void (*shutdown)(struct tti_port *port);

	const struct tti_fanout_ops *fanout; /* optional */
	const struct tti_sleep_ops *sleep;   /* optional */
	const struct tti_lane_ops *lanes;    /* optional */
	const struct tti_memory_ops *memory; /* optional */

	/* Optional: this rank's NICs in the order in which it should use them, nearest
	 * first and dealt out fairly among the ranks of its host; those not named come
	 * last. Before the first connect(). Names are copied. */
	void (*prefer)(struct tti_port *port, const char *const *nics, int n);

	/* Optional: the NICs by which a link goes, and in what shares what is sent is dealt to
	 * them (one after the other, where nothing else is known); NICs that are not named carry
	 * something when these are lost, or fall behind their shares. In place of what was
	 * assigned to that peer before; n 0: nothing. After join(); shares are copied. */
	void (*assign)(struct tti_port *port, int peer, const struct tti_lane_share *shares, int n);

	/* Optional: a link to `peer` that connect() was called for and that has never been up
	 * is wanted no more. Why it is not up is then port->failure_text, but the port has not
	 * failed; connect() to that peer does from now on. */
	void (*give_up)(struct tti_port *port, int peer);
};

extern const struct tti_transport tti_transport_self, tti_transport_shm, tti_transport_tcp;

#endif
