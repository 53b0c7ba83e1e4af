/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_TRANSPORT_TCP_SHARE_H
#define TTI_TRANSPORT_TCP_SHARE_H

/* The NICs and shares that were assigned to a link. A message takes the lane that is farthest
 * behind its share of what was sent lately, if that lane has nothing else to send. Otherwise it
 * takes, of the lanes that are not far ahead, the one that delivers it first (tcp_sched.c). Round
 * robin would cost up to a fifth where ranks share cores, as the next lane may have the most to
 * send, and the receiver needs the messages in order. If a lane that could take a message often
 * waits for another, the link suspends its shares for a moment: messages go by what lanes carry,
 * which measures all lanes. Shares stay suspended while some lane carries clearly less than its
 * share.
 *
 * Owner and threads: as the port. */

#include "transport/tcp/tcp_pairs.h"
#include "transport/transport.h"

struct tti_tcp_link;
struct tti_tcp_port;

/* What was assigned to a peer. */
struct tti_tcp_assignment {
	int peer, n;
	struct tti_lane_share shares[];
};

/* How the messages of a link are dealt to its lanes by their shares. */
struct tti_tcp_dealer {
	uint32_t lanes; /* to which messages are dealt now, a bit each   */
	bool paused;    /* messages go by what lanes carry, until again_at at least */
	bool waits;     /* at the last look, a lane that could take a message waited for another */
	int64_t since, waited_ns, looked_at; /* so long of the time since then            */
	int64_t again_at, patience;          /* how long until the next pause, or its end   */
};

/* Entries of struct tti_transport. */
void tti_tcp_assign(struct tti_port *port, int peer, const struct tti_lane_share *shares, int n);
void tti_tcp_assignments_release(struct tti_tcp_port *port);

/* Find what was assigned to the peer of a new link; and the share of a lane whose NICs are
 * known. */
void tti_tcp_link_assign(struct tti_tcp_link *link);
void tti_tcp_lane_assign(struct tti_tcp_link *link, int index);

/* The NICs of share `i` of an assignment, by their numbers in the cards. false: one of them
 * is not there. */
bool tti_tcp_assignment_nics(const struct tti_tcp_assignment *assignment, int i,
			     const struct tti_tcp_card *mine, const struct tti_tcp_card *theirs,
			     struct tti_tcp_pair *out);

/* Whether messages go by shares now: there are some, a lane that has one works, and they are not
 * suspended. */
bool tti_tcp_shares_hold(const struct tti_tcp_link *link);

/* Which of lane[0 .. n-1], all of which have shares, may get a message of nbytes. If the lane that
 * is farthest behind its share is idle, only that one, as nothing is lost by it. Else all lanes
 * that do not get far ahead by it, which is one at least. `idle` says which lanes have nothing to
 * send. */
void tti_tcp_shares_admit(struct tti_tcp_link *link, const int *lane, const bool *idle, int n,
			  size_t nbytes, bool *may_out);

/* A message was given to a lane; or, if it `waits`, the lanes that may get it are full while others
 * are not, and the link may suspend its shares. */
void tti_tcp_shares_waited(struct tti_tcp_link *link, bool waits, int64_t now);

/* Resume shares, if it is time, and no lane is known to carry less than its own. */
void tti_tcp_shares_review(struct tti_tcp_link *link, int64_t now);

#endif
