/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_TRANSPORT_TCP_SHARE_H
#define TTI_TRANSPORT_TCP_SHARE_H

/* By which NICs a link goes, as it was assigned, and in which shares. A message takes the lane
 * that is farthest behind its share of what was sent lately if that one has nothing else to send, else
 * of those that are not far ahead the one on which it is through first (tcp_sched.c). Lanes in turn would cost up to a fifth where ranks share cores: the lane whose turn it
 * is may have the most to send, and the receiver needs the messages in their order. If a lane that could
 * take a message often waits for another, the link pauses from its shares for a moment, and messages go
 * by what lanes carry: this measures all. If a lane carries clearly less than its share of all of it, it
 * stays that way until the lane is well.
 *
 * Owner and threads: as the port. */

#include "transport/tcp/tcp_pairs.h"
#include "transport/transport.h"

struct tti_tcp_link;
struct tti_tcp_port;

/* What was assigned to a peer. */
struct tti_tcp_wish {
	int peer, n;
	struct tti_lane_share shares[];
};

/* How a link's messages are dealt to its lanes by their shares. */
struct tti_tcp_dealer {
	uint32_t lanes; /* to which messages are dealt now, a bit each   */
	bool paused;    /* messages go by what lanes carry, until again_at at least */
	bool waits;     /* when last looked at, a lane that could take one waited for another */
	int64_t since, waited_ns, looked_at; /* so long of the time since then            */
	int64_t again_at, patience;          /* how long until the next pause, or its end   */
};

/* Of struct tti_transport. */
void tti_tcp_assign(struct tti_port *port, int peer, const struct tti_lane_share *shares, int n);
void tti_tcp_wishes_release(struct tti_tcp_port *port);

/* A new link finds what was assigned to its peer; a lane its share, once its NICs are known. */
void tti_tcp_link_wish(struct tti_tcp_link *link);
void tti_tcp_lane_wish(struct tti_tcp_link *link, int index);

/* Between which NICs, by their numbers in the cards, share `i` of a wish is. false: one of them
 * is not there. */
bool tti_tcp_wish_nics(const struct tti_tcp_wish *wish, int i, const struct tti_tcp_card *mine,
		       const struct tti_tcp_card *theirs, struct tti_tcp_pair *out);

/* Whether messages go by shares now: there are some, a lane that has one is well, and they are not
 * paused from. */
bool tti_tcp_shares_hold(const struct tti_tcp_link *link);

/* Which of lane[0 .. n-1], all of which have shares, a message of nbytes may go to: the one that is
 * farthest behind its share alone if it is idle, as nothing is lost by that; else all that it does not
 * get far ahead, of which there is one at least. `idle` says which have nothing to send. */
void tti_tcp_shares_admit(struct tti_tcp_link *link, const int *lane, const bool *idle, int n,
			  size_t nbytes, bool *may_out);

/* A message was given to a lane. Or, if it `waits`, the lanes that it may go to are full, and others
 * are not; the link may pause from its shares then. */
void tti_tcp_shares_waited(struct tti_tcp_link *link, bool waits, int64_t now);

/* Go by shares again, if it is time, and none is known not to carry its own. */
void tti_tcp_shares_review(struct tti_tcp_link *link, int64_t now);

#endif
