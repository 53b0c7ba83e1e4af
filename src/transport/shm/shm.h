/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_TRANSPORT_SHM_H
#define TTI_TRANSPORT_SHM_H

/* What the files of the shm transport share: ports and links.
 *
 * Owner: the port owns its links, their mappings and the segment; close() keeps
 * all of it until shutdown(), so that peers may still read what was sent.
 * Threads: as transport.h says. */

#include <pthread.h>

#include "transport/shm/shm_room.h"
#include "transport/shm/shm_seg.h"
#include "transport/transport.h"
#include "util/vec.h"

#define TTI_SHM_NAME 32 /* of a socket in the abstract name space */

/* Memory of the user's that was registered. */
struct tti_shm_range {
	uintptr_t first;
	size_t nbytes;
};

struct tti_shm_ranges {
	pthread_mutex_t lock; /* also of passing the heap on */
	TTI_VEC(struct tti_shm_range) all;
};

/* The broadcast buffer of a rank and its broadcast ring, as the rank itself sees them. */
struct tti_shm_broadcast {
	struct tti_shm_room room;
	uint32_t unread[TTI_SHM_HELD]; /* links that have not read a message, by its number */
	uint32_t at;                   /* where the next message was given room             */
	struct tti_shm_entry *ring;
	uint64_t for_all_back; /* entries of the ring that all are known to have read */
	/* The messages of the buffer that went over the ring, a bit each, and their entries; by
	 * number. */
	uint64_t is_for_all, for_all[TTI_SHM_HELD];
};

struct tti_shm_view; /* the heap of another process, mapped here (shm_views.c) */

/* The process of a rank, for copies by the kernel and for passing heaps. */
struct tti_shm_process {
	uint32_t pid;
	uint64_t pid_ns; /* in which the id means something; 0: not known             */
	uint64_t number; /* random, the same for all ranks of the process; 0: none      */
	uint64_t
		number_at; /* its address in the process; behind it is a word for anybody to write */
	int64_t found_ns;  /* when it was last found there, 0: never                      */
	uint64_t key;      /* random: with it the rank passes its heap                    */
	char name[TTI_SHM_NAME];   /* of its socket                                        */
	struct tti_shm_view *view; /* NULL: its heap did not come, or was not needed yet   */
};

struct tti_shm_port {
	struct tti_port base;
	struct tti_shm_seg seg;
	struct tti_port_config config;
	char name[TTI_SHM_NAME];
	/* Accepts members during join(), and heaps of peers after it; -1: none. */
	int listener;
	TTI_VEC(int) senders; /* accepted connections on which no heap has come yet */
	/* The ranks that claim to be on this host, ascending, and our place among them. Our domain
	 * is a part of them. */
	int *candidate;
	struct tti_shm_process *process; /* of each candidate */
	int n, self;
	int cores; /* of the host: its ranks may have been given some of them each */
	TTI_VEC(struct tti_shm_link *) links;
	struct tti_shm_broadcast *broadcast; /* NULL before the first link */
	uint64_t for_all;                    /* messages sent over the broadcast ring */
	uint32_t fanouts;                    /* messages sent to all, over either ring */
	uint32_t armed;                      /* what our doorbell was set to last */
	struct tti_shm_ranges ranges;
	uint64_t reach_bytes; /* of each heap that peers map; 0: they map none */
	_Atomic int passed;   /* our heap: 1: to all, -1: it cannot be, 0: not yet */
	bool one_process;     /* all candidates are threads of this process */
	bool has_cores;       /* each rank has one of its own */
	bool demotes;         /* then: cache lines are written for a reader that waits */
	struct tti_shm_link
		*unowned; /* of the last message in a bounce buffer; NULL: we have waited since */
	/* How many messages were read here, and how many of them before the last one was written
	 * for a reader that waits. */
	uint32_t taken, taken_then;
	uint32_t start; /* number of a ring's first message; tests start near the wrap */
};

struct tti_shm_link {
	struct tti_link base;
	struct tti_shm_port *port;
	/* Sending: entries used, and given back as far as we know; the bounce buffer, and where its
	 * next message was given room. The counts never wrap, as out_entry[] may be very old. */
	struct tti_shm_entry *tx_ring;
	uint64_t tx_entries, tx_entries_back;
	uint64_t tx_for_all_back; /* given back of port->for_all */
	uint8_t *tx_bounce;
	uint32_t tx_at;
	struct tti_shm_room tx_room;
	const struct tti_shm_done *tx_done;
	struct tti_shm_doorbell *doorbell; /* the peer's */
	/* Receiving: entries read, how many of them the peer knows of, messages of the bounce
	 * buffer read. */
	struct tti_shm_entry *rx_ring;
	uint32_t rx_entries, rx_entries_told;
	uint32_t rx_bounced;
	/* The same of the peer's broadcast ring; NULL: the peer does not use it. */
	const struct tti_shm_entry *rx_broadcast_ring;
	uint32_t rx_for_all, rx_for_all_told;
	uint32_t rx_kind; /* of the message that peek() showed */
	bool rx_is_for_all;
	const uint8_t *rx_bounce, *rx_broadcast;
	struct tti_shm_done *rx_done;
	struct tti_shm_pair *pair;
	/* Messages of our broadcast buffer that the peer has still to read, a bit each, and the
	 * entries that say so; by number. */
	uint64_t out_unread;
	uint64_t out_entry[TTI_SHM_HELD];
};

/* Log a quiet error, with the ranks that it is about; peer -1: no other rank. */
TUTTI_CHECKED tutti_status tti_shm_fail(const struct tti_shm_port *port, tutti_status status,
					int peer, const char *what);

#define TTI_SHM_CARD_MAGIC   0x546d6873u
#define TTI_SHM_CARD_VERSION 7u

struct tti_shm_card {
	uint32_t magic, version;
	uint64_t boot_hash; /* 0: unknown */
	uint64_t host_hash; /* of TUTTI_HOST_ID, 0: none */
	uint64_t netns;     /* for the log only: numbers may be equal by chance */
	uint64_t pid_ns;
	uint64_t slot_bytes;
	uint32_t slots, cores;
	uint32_t pid, uid;
	uint64_t process, process_at; /* a random number of the process, and where it is kept */
	uint64_t heap_bytes, heap_key;
	char name[TTI_SHM_NAME];
};
_Static_assert(sizeof(struct tti_shm_card) <= TTI_CARD_BYTES, "the card has room");

/* shm_heap.c. */
extern const struct tti_memory_ops tti_shm_memory_ops;
void tti_shm_ranges_init(struct tti_shm_ranges *ranges);
void tti_shm_ranges_release(struct tti_shm_ranges *ranges);

/* shm_views.c. How many bytes of each heap the n ranks of the host map, if one wants at most
 * heap_bytes of its own: each has address space for the heaps of all. */
uint64_t tti_shm_reach_bytes(uint64_t heap_bytes, int n);
/* Pass the heap of this process to all others of the domain, at the first call. Whether all have
 * it. Any thread. */
bool tti_shm_pass(struct tti_shm_port *port);
/* join() is over: drop the connections that wait at the socket. */
void tti_shm_views_begin(struct tti_shm_port *port);
/* Where a part of the heap of that candidate is mapped here, until shutdown(). */
TUTTI_CHECKED tutti_status tti_shm_view_find(struct tti_shm_port *port, int index, uint64_t at,
					     size_t nbytes, void **out);
void tti_shm_views_release(struct tti_shm_port *port);

/* shm_copy.c. Whether memory of that candidate's process can be read and written: 0, or errno;
 * ESRCH: its process id means nothing here. */
int tti_shm_copy_try(const struct tti_shm_port *port, int index);

/* From a process that is the right one; 0, or errno. */
int tti_shm_copy_quietly(const struct tti_shm_process *process, void *to, uint64_t from,
			 size_t nbytes);

/* The entries read and write of tti_memory_ops. */
tutti_status tti_shm_copy_from(struct tti_port *port, int peer, void *to, uint64_t from,
			       size_t nbytes);
tutti_status tti_shm_copy_to(struct tti_port *port, int peer, uint64_t to, const void *from,
			     size_t nbytes);

/* The place of a rank among the candidates, -1: it is none. */
int tti_shm_find_candidate(const struct tti_shm_port *port, int rank);

/* shm_reach.c. Open the port's socket and write its card. */
TUTTI_CHECKED tutti_status tti_shm_listen(struct tti_shm_port *port, struct tti_card *card);

struct tti_shm_card tti_shm_card_get(const struct tti_card *cards, int rank);

/* A connection to a candidate's socket, by its name. TUTTI_OK and *fd == -1: there is nobody of
 * this user to be reached there; TUTTI_AGAIN: it is there and overrun. Quiet. */
TUTTI_CHECKED tutti_status tti_shm_reach(const char *name, int *fd);

/* What Yama allows: 0: processes of one user look into each other; 1: a process into those that it
 * started, and where it is let in; 2: the administrator; 3: nobody; -1: there is no Yama. */
int tti_shm_ptrace_scope(void);

/* shm_join.c: the way into the segment. */
tutti_status tti_shm_join(struct tti_port *port, const struct tti_card *cards, uint64_t *domain);

/* For tests, after join() and before connect(), the same on all ranks: number the
 * messages from here on. */
void tti_shm_set_start(struct tti_port *port, uint32_t start);

#endif
