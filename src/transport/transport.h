/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_TRANSPORT_TRANSPORT_H
#define TTI_TRANSPORT_TRANSPORT_H

/* How bytes get from one rank to another.
 *
 * A port is one rank's end of a transport; a link is its end of a connection to one peer, in both
 * directions. A link moves messages in order, each at most slot_bytes long, with credits: the
 * sender writes into a slot of the transport, the receiver reads the slot in place and gives it
 * back.
 *
 *     sender    reserve -> write -> commit
 *     receiver                      peek -> read -> release
 *
 * Nothing blocks but join(), close() and shutdown(). Nothing on the path of a message allocates,
 * locks, logs, or makes a system call other than those that move it. A message carries a tag of 64
 * bits: the signature of the call.
 *
 * Life of a port: open -> (cards of all ranks exchanged) -> join -> (domains of
 * all ranks exchanged) -> settle -> connect ... -> close each link -> shutdown.
 *
 * Threads: one thread at a time uses a port and its links (the communicator's executing thread).
 * Any thread may set *stop.
 *
 * Owner: the one that opened a port shuts it down. Links belong to their port, and close() gives
 * them back. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "reduce/reduce.h"
#include "tutti/status.h"
#include "util/reach.h"

/* What a port tells the ports of its peers: an endpoint address, in the format of its transport. */
#define TTI_CARD_BYTES 512
struct tti_card {
	uint8_t bytes[TTI_CARD_BYTES];
};

/* How to reach ordinary memory: TUTTI_REACH, in the order of its values. */
enum tti_reach_wish { TTI_WISH_AUTO, TTI_WISH_SLOTS, TTI_WISH_COPIED };

struct tti_port_config {
	int rank, nranks;
	const uint8_t *secret; /* TTI_SECRET_BYTES; outlives the port             */
	const char *host_id;   /* TUTTI_HOST_ID or NULL                           */
	size_t slot_bytes;     /* of a slot                                       */
	int slots;             /* of a link, per direction                        */
	size_t heap_bytes;     /* most bytes of memory that peers can address     */
	enum tti_reach_wish reach;
	int64_t ptracer;   /* TUTTI_PTRACER; 0: none */
	bool encrypt;      /* messages that leave the host            */
	int traffic_class; /* of their packets; 0: the system's default */
	/* Measured before, so that join() and settle() need not measure again, and by what, in
	 * words; NULL: nothing was. */
	const struct tti_reach_figures *measured;
	const char *measured_by;
	const _Atomic int *stop; /* nonzero: join() gives up with TUTTI_EABORTED */
	/* How long join() takes at most, and how long the machine of a peer may be unreachable
	 * while connecting. A peer that is reached may take as long as it likes: the caller that
	 * waits knows whether the peer lives. */
	int64_t timeout_ms;
};

/* A reader reads longer messages while they are written (docs/design/limits.md). */
#define TTI_AWAITED_BYTES 2048

struct tti_link {
	const struct tti_link_ops *ops;
	int peer;
	struct tti_copy_way way; /* the engine's: how slots are written */
	/* Set by reserve() of more bytes than fit a ring entry: the peer seems to wait for this
	 * message of at most TTI_AWAITED_BYTES on another core, so tti_copy_for_reader() writes
	 * it. */
	bool is_awaited;

	/* The transport's own fields follow in its larger struct. */
};

struct tti_port {
	const struct tti_transport *transport;
	int rank, nranks;
	size_t slot_bytes;   /* longest message; join() may lower it, alike on all ranks      */
	size_t inline_bytes; /* up to here one slot for several links gains nothing, unless ... */
	bool fans_short;     /* ... join() has set this, alike on all ranks                   */
	/* How all ranks of the domain reach ordinary memory, which is neither allocated nor added
	 * at a port. */
	enum tti_reach plain;
	struct tti_reach_figures figures; /* zeroed: not measured */
	/* Set by the transport when it cannot go on: a link broke, a peer sent nonsense. The engine
	 * looks here while it waits. */
	tutti_status failure;
	int failed_peer;        /* -1: unknown */
	char failure_text[640]; /* the error text of that failure */
	/* Set by the owner of the port when nothing more is expected of peers: the end of a peer is
	 * a failure as before, but is not logged. */
	bool parting;
	/* Set by the engine for sleep: the wait cannot end before so many messages have come, the
	 * one message by this link; 0: anything that a peer does may end it. */
	uint32_t missing;
	const struct tti_link *awaited;
	/* Bytes that are committed but not yet handed to the system: a call is not over before this
	 * is 0. Always 0 for shared memory. */
	size_t unsent;
};

/* Set up a zeroed port, but for what its transport adds; inline_bytes is slot_bytes. */
void tti_port_init(struct tti_port *port, const struct tti_transport *transport,
		   const struct tti_port_config *config);

/* Keep status, peer and the error text of this thread, if this is the first failure of the port. */
void tti_port_fail(struct tti_port *port, tutti_status status, int peer);

struct tti_link_ops {
	/* Room for one message of nbytes <= slot_bytes; NULL: no credit now. Without a commit
	 * between them, two calls give the same room. `whole` > nbytes: the message is a piece of
	 * what would be one message of so many bytes, and as much may be under way as if it were
	 * one. */
	void *(*reserve)(struct tti_link *link, size_t nbytes, size_t whole);
	/* Send what was written, nbytes as reserved. */
	void (*commit)(struct tti_link *link, size_t nbytes, uint64_t tag);
	/* The oldest message, in place, until release(); NULL: there is none yet. */
	const void *(*peek)(struct tti_link *link, size_t *nbytes, uint64_t *tag);
	void (*release)(struct tti_link *link);
	/* Optional: reserve, a copy of `data` and commit in one, which may do without the copy.
	 * `data` is the caller's again on return. false: nothing has happened, as there is no room,
	 * or nothing to gain. */
	bool (*send)(struct tti_link *link, const void *data, size_t nbytes, uint64_t tag);
	/* Another core reads the slots, not the system. */
	bool shares_slots;
	/* Whether the peer has released all that was committed. The last message must be longer
	 * than inline_bytes, as the release of shorter ones is reported late. NULL where the port
	 * has no memory. */
	bool (*all_released)(struct tti_link *link);
};

/* Optional: one slot for several links, which the sender writes once and all of them read. */
struct tti_fanout_ops {
	/* Room for one message to all of links[0..n-1]; NULL: no credit now. */
	void *(*reserve)(struct tti_port *port, struct tti_link *const *links, int n,
			 size_t nbytes);
	void (*commit)(struct tti_port *port, struct tti_link *const *links, int n, size_t nbytes,
		       uint64_t tag);
};

/* Optional: sleeping until something happens on the port, or until port->missing messages have
 * come, at most timeout_ns; may return early. Without it the engine sleeps in short naps. */
struct tti_sleep_ops {
	void (*wait)(struct tti_port *port, int64_t timeout_ns);
	/* Optional: a descriptor that is readable while wait() would find something, but for
	 * connections that accept() could not take, for want of descriptors: wait() tries again. It
	 * belongs to the port; another thread may poll it. */
	int (*descriptor)(const struct tti_port *port);
	/* Where there is no descriptor: end the sleep of the thread that is in wait(). With it one
	 * thread may be in wait() while another uses the port; port->missing is 0 then. */
	void (*wake)(struct tti_port *port);
};

/* One path between the two ends of a link: over a network, a pair of addresses. */
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

/* The part of the bytes from this rank to a peer that a pair of NICs should carry. */
struct tti_lane_share {
	char local_nic[16], remote_nic[16]; /* names of the interfaces */
	/* Relative to the sum of all shares with that peer; 0: only the peer sends over this
	 * pair. */
	double share;
};

/* Optional: links of several lanes. Each message travels on one lane, which the transport chooses
 * by the shares that were assigned to the NICs, else by what each lane carries at the time. */
struct tti_lane_ops {
	/* How many lanes there are, up or not: 0 .. count - 1. May grow. */
	int (*count)(const struct tti_link *link);
	void (*get)(const struct tti_link *link, int lane, struct tti_lane_info *out);
	/* Find and open all lanes now, before there is much to send. Does not wait. */
	void (*open_all)(struct tti_link *link);
	/* Send all messages from now on over this lane; -1: over any. For measuring. */
	void (*only)(struct tti_link *link, int lane);
};

/* Where a range of a rank's memory lies, for its peers: a remote key. Plain data; zeroed: they
 * cannot reach the range. */
struct tti_memory_name {
	uint64_t at;    /* offset in the heap of its process (heap.h), else its address there */
	uint32_t reach; /* enum tti_reach                                                     */
	uint32_t note;  /* for the transport                                                  */
};

/* A named range of a peer, as this rank reaches it. */
struct tti_remote {
	void *mapped;     /* its address here; NULL: only read() and write() reach it */
	uint64_t address; /* in the process of the peer, if it is not mapped          */
};

/* Optional: memory of one rank that others read and write in place: the heap of its process
 * (heap.h), and memory of the caller. A name is valid until its memory is freed or dropped.
 * Threads: any thread may call add, drop and name, also while another uses the port. */
struct tti_memory_ops {
	/* Register memory of the caller; drop() takes the same range. */
	tutti_status (*add)(struct tti_port *port, const void *memory, size_t nbytes);
	tutti_status (*drop)(struct tti_port *port, const void *memory, size_t nbytes);
	/* Name a range that lies in the heap or was added here, or any range where port->plain is
	 * TTI_REACH_COPIED; false: there is no name that every peer of the domain understands. */
	bool (*name)(struct tti_port *port, const void *range, size_t nbytes,
		     struct tti_memory_name *out);
	/* Find the range of a peer here. A mapped range stays mapped until shutdown(), though the
	 * peer may free it. */
	tutti_status (*find)(struct tti_port *port, int peer, const struct tti_memory_name *name,
			     size_t nbytes, struct tti_remote *out);
	/* Copy from or to memory of a peer's process, at an address that find() gave or further on
	 * in the same range: all of it, or an error, after which some may have been copied. Only
	 * the thread of the port calls this, and only while the peer keeps its memory: the peer is
	 * in the same call and waits for this rank before it leaves. */
	tutti_status (*read)(struct tti_port *port, int peer, void *to, uint64_t from,
			     size_t nbytes);
	tutti_status (*write)(struct tti_port *port, int peer, uint64_t to, const void *from,
			      size_t nbytes);
};

struct tti_transport {
	size_t size;      /* sizeof(*this); lets a newer core load us */
	const char *name; /* "shm": shown to users, kept stable       */

	/* Least bytes of the messages into which a long transfer between two ranks is cut, so that
	 * one is read while the next one is written; 0: into as few messages as possible. */
	size_t piece_bytes;

	/* Open a port and describe it in *card. */
	tutti_status (*open)(const struct tti_port_config *config, struct tti_port **out,
			     struct tti_card *card);

	/* With the cards of all ranks: find out by trying which peers are really reachable. *domain
	 * is equal on two ranks if and only if this transport connects them; 0: with no other. All
	 * ranks call it, and it may block until they have, or until the deadline. */
	tutti_status (*join)(struct tti_port *port, const struct tti_card *cards, uint64_t *domain);

	/* Optional, once all ranks have joined: put what was agreed on meanwhile into the port.
	 * Does not wait. TUTTI_EUNSUPPORTED, on all ranks of the domain: config.reach is not
	 * possible. */
	tutti_status (*settle)(struct tti_port *port);

	/* The link to `peer` of the same domain; TUTTI_AGAIN until it is up: call progress() and
	 * then this again. Both sides call it. */
	tutti_status (*connect)(struct tti_port *port, int peer, struct tti_link **out);

	/* Accept, read, write, hand out credits. NULL where memory does so by itself. Failures go
	 * to port->failure. */
	void (*progress)(struct tti_port *port);

	/* Optional: what links need while nobody is in a call, so that what was committed arrives
	 * though a part of a link fails. Takes no time. Returns when to call it again (tti_now_ns);
	 * TTI_NEVER, from join() on: the system sees to all of it. */
	int64_t (*tend)(struct tti_port *port);

	/* Give a link back; what was committed still arrives. */
	void (*close)(struct tti_link *link);

	/* After the last close(). Waits until the machines of the peers have what was committed, as
	 * long as they take some of it every second, at most 10 s; the rest is lost, and logged.
	 * NULL and half-built ok. */
	void (*shutdown)(struct tti_port *port);

	const struct tti_fanout_ops *fanout; /* optional */
	const struct tti_sleep_ops *sleep;   /* optional */
	const struct tti_lane_ops *lanes;    /* optional */
	const struct tti_memory_ops *memory; /* optional */

	/* Optional, before the first connect(): the NICs in the order in which this rank should use
	 * them, nearest first and dealt out fairly among the ranks of its host. NICs that are not
	 * named come last. Names are copied. */
	void (*prefer)(struct tti_port *port, const char *const *nics, int n);

	/* Optional, after join(): the NICs of a link, and the share of each in what is sent. Other
	 * NICs carry something only when these are lost or fall behind their shares. Replaces what
	 * was assigned to that peer before; n 0: nothing is. Shares are copied. */
	void (*assign)(struct tti_port *port, int peer, const struct tti_lane_share *shares, int n);

	/* Optional: stop connecting to `peer`, whose link has never been up. port->failure_text
	 * says why it is not up. The port has not failed, but connect() to that peer fails from now
	 * on. */
	void (*give_up)(struct tti_port *port, int peer);
};

extern const struct tti_transport tti_transport_self, tti_transport_shm, tti_transport_tcp;

#endif
