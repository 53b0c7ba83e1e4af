/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/tcp/tcp_share.h"

#include <string.h>

#include "transport/tcp/tcp.h"
#include "transport/tcp/tcp_route.h"
#include "util/clock.h"
#include "util/fd.h"
#include "util/log.h"
#include "util/mem.h"

/* How far a lane may get ahead of its share of the last RECENT bytes before it waits for the
 * others. Lanes that are as fast as their shares still carry unlike amounts for a while, since a
 * rank that loses its core finds their queues drained to unlike degrees. Where 8 ranks shared 2
 * cores, 384 KiB of all that was ever sent cost 2 % over four lanes. */
#define AHEAD         (1024.0 * 1024)
#define RECENT        (32.0 * 1024 * 1024)
/* Waiting is reviewed over REVIEW_NS, and is too much if it takes more than one part in
 * WAITING_MOST. One look accounts for at most LOOK_MOST_NS, as the caller may have been busy. */
#define REVIEW_NS     (20 * TTI_NS_PER_MS)
#define WAITING_MOST  4
#define LOOK_MOST_NS  TTI_NS_PER_MS
/* Without messages for so long, nothing waited. */
#define IDLE_NS       (20 * TTI_NS_PER_MS)
/* How long shares are suspended: all lanes are measured by then. How long after that until the next
 * time, or until a lane that fell behind is looked at again; twice as long each time. */
#define PAUSE_NS      (100 * TTI_NS_PER_MS)
#define AGAIN_NS      (1000 * TTI_NS_PER_MS)
#define AGAIN_MOST_NS (60000 * TTI_NS_PER_MS)
/* The least part of its share that a lane must carry. */
#define CARRIES_LEAST 0.8

/* -- Assignments ------------------------------------------------------------- */

void tti_tcp_lane_assign(struct tti_tcp_link *link, int index)
{
	struct tti_tcp_lane *lane = &link->lane[index];

	lane->share = 0;
	for (int i = 0; link->assignment && i < link->assignment->n; i++) {
		const struct tti_lane_share *share = &link->assignment->shares[i];

		if (strcmp(share->local_nic, lane->local_nic) == 0 &&
		    strcmp(share->remote_nic, lane->remote_nic) == 0)
			lane->share = share->share;
	}
}

static size_t nic_named(const struct tti_tcp_card *card, const char *name)
{
	size_t i = 0;

	while (i < card->nnics && strcmp(card->nic[i].is.name, name) != 0)
		i++;
	return i;
}

bool tti_tcp_assignment_nics(const struct tti_tcp_assignment *assignment, int i,
			     const struct tti_tcp_card *mine, const struct tti_tcp_card *theirs,
			     struct tti_tcp_pair *out)
{
	const size_t local = nic_named(mine, assignment->shares[i].local_nic);
	const size_t remote = nic_named(theirs, assignment->shares[i].remote_nic);

	*out = (struct tti_tcp_pair){ (uint8_t)local, (uint8_t)remote };
	return local < mine->nnics && remote < theirs->nnics;
}

/* Whether all pairs of NICs that have a share reach each other: a plan knows nothing of
 * networks. */
static bool can_be(const struct tti_tcp_link *link, const struct tti_tcp_assignment *assignment)
{
	struct tti_tcp_card mine, theirs;
	struct tti_tcp_ways ways;
	struct tti_tcp_pair pair;
	bool good = true;
	int fd = tti_tcp_route_open();

	tti_tcp_cards_get(&link->port->cards, link->port->base.rank, &mine);
	tti_tcp_cards_get(&link->port->cards, link->base.peer, &theirs);
	tti_tcp_ways_find(&mine, &theirs, -1, tti_tcp_route_leaves, &fd, &ways);
	tti_fd_close(&fd);
	for (int i = 0; i < assignment->n && good; i++) {
		const struct tti_lane_share *share = &assignment->shares[i];

		good = share->share <= 0 ||
		       (tti_tcp_assignment_nics(assignment, i, &mine, &theirs, &pair) &&
			ways.at[pair.mine][pair.theirs].kind);
		if (!good)
			tti_log(TTI_LOG_INFO, TTI_TCP,
				"%s does not reach %s of rank %d, which the plan expects: messages "
				"go by what lanes carry",
				share->local_nic, share->remote_nic, link->base.peer);
	}
	return good;
}

void tti_tcp_link_assign(struct tti_tcp_link *link)
{
	const struct tti_tcp_port *port = link->port;

	link->assignment = NULL;
	link->dealer = (struct tti_tcp_dealer){ 0 };
	for (size_t i = 0; i < port->assignments.n; i++)
		if (port->assignments.at[i]->peer == link->base.peer &&
		    can_be(link, port->assignments.at[i]))
			link->assignment = port->assignments.at[i];
	for (int i = 0; i < link->nlanes; i++)
		tti_tcp_lane_assign(link, i);
}

/* Drop what was assigned to a peer. */
static void forget(struct tti_tcp_port *port, int peer)
{
	for (size_t i = 0; i < port->assignments.n; i++) {
		if (port->assignments.at[i]->peer != peer)
			continue;
		tti_free(port->assignments.at[i]);
		port->assignments.at[i] = port->assignments.at[--port->assignments.n];
		return;
	}
}

static void log_assignment(const struct tti_tcp_port *port,
			   const struct tti_tcp_assignment *assignment)
{
	double sum = 0;

	for (int i = 0; i < assignment->n; i++)
		sum += assignment->shares[i].share;
	for (int i = 0; i < assignment->n && sum > 0; i++)
		if (assignment->shares[i].share > 0)
			tti_log(TTI_LOG_INFO, TTI_TCP,
				"rank %d sends to rank %d by %s to %s: %.1f %% of it",
				port->base.rank, assignment->peer, assignment->shares[i].local_nic,
				assignment->shares[i].remote_nic,
				100 * assignment->shares[i].share / sum);
}

void tti_tcp_assign(struct tti_port *base, int peer, const struct tti_lane_share *shares, int n)
{
	struct tti_tcp_port *port = tti_tcp_port_of(base);
	struct tti_tcp_assignment *assignment =
		n > 0 ? tti_alloc(sizeof(*assignment) + (size_t)n * sizeof(*shares)) : NULL;

	forget(port, peer);
	if (assignment) {
		assignment->peer = peer;
		assignment->n = n;
		memcpy(assignment->shares, shares, (size_t)n * sizeof(*shares));
		/* Without memory for an assignment it has no effect. */
		if (!tti_vec_push(&port->assignments, assignment))
			tti_free(assignment);
		else
			log_assignment(port, assignment);
	}
	if (port->link_of[peer])
		tti_tcp_link_assign(port->link_of[peer]);
}

void tti_tcp_assignments_release(struct tti_tcp_port *port)
{
	while (port->assignments.n)
		tti_free(port->assignments.at[--port->assignments.n]);
	tti_vec_release(&port->assignments);
}

/* -- Whether they hold ----------------------------------------------------------- */

static bool is_well(const struct tti_tcp_link *link, int lane)
{
	return link->conn[lane] && !link->conn[lane]->broken;
}

bool tti_tcp_shares_hold(const struct tti_tcp_link *link)
{
	if (!link->assignment || link->dealer.paused)
		return false;
	for (int i = 0; i < link->nlanes; i++)
		if (link->lane[i].share > 0 && is_well(link, i))
			return true;
	return false;
}

/* The lane that carries the least part of its share, of the lanes that were measured; -1: all carry
 * theirs. */
static int find_slow(const struct tti_tcp_link *link)
{
	double rates = 0, shares = 0, least = CARRIES_LEAST;
	int slow = -1;

	for (int i = 0; i < link->nlanes; i++) {
		if (link->lane[i].share <= 0 || link->lane[i].rate <= 0 || !is_well(link, i))
			continue;
		rates += link->lane[i].rate;
		shares += link->lane[i].share;
	}
	for (int i = 0; i < link->nlanes; i++) {
		const struct tti_tcp_lane *lane = &link->lane[i];

		if (lane->share <= 0 || lane->rate <= 0 || !is_well(link, i) ||
		    lane->rate * shares >= least * rates * lane->share)
			continue;
		least = lane->rate * shares / (rates * lane->share);
		slow = i;
	}
	return slow;
}

void tti_tcp_shares_review(struct tti_tcp_link *link, int64_t now)
{
	struct tti_tcp_dealer *dealer = &link->dealer;
	int slow;

	if (!dealer->paused || now < dealer->again_at)
		return;
	slow = find_slow(link);
	if (slow >= 0 && !link->lane[slow].fell_behind)
		tti_log(TTI_LOG_INFO, TTI_TCP,
			"lane %d to rank %d (%s to %s) falls behind its share in the plan: others "
			"carry what it does not",
			slow, link->base.peer, link->lane[slow].local_nic,
			link->lane[slow].remote_nic);
	if (slow >= 0)
		link->lane[slow].fell_behind = true;
	dealer->paused = slow >= 0;
	dealer->lanes = 0;
	dealer->patience = dealer->patience ? 2 * dealer->patience : AGAIN_NS;
	if (dealer->patience > AGAIN_MOST_NS)
		dealer->patience = AGAIN_MOST_NS;
	dealer->again_at = now + dealer->patience;
}

void tti_tcp_shares_waited(struct tti_tcp_link *link, bool waits, int64_t now)
{
	struct tti_tcp_dealer *dealer = &link->dealer;
	const int64_t passed = now - dealer->looked_at;

	if (passed > IDLE_NS) {
		dealer->since = now;
		dealer->waited_ns = 0;
	} else if (dealer->waits) {
		dealer->waited_ns += passed < LOOK_MOST_NS ? passed : LOOK_MOST_NS;
	}
	dealer->looked_at = now;
	dealer->waits = waits;
	if (now - dealer->since < REVIEW_NS)
		return;
	if (dealer->waited_ns > (now - dealer->since) / WAITING_MOST && now >= dealer->again_at) {
		dealer->paused = true;
		dealer->again_at = now + PAUSE_NS;
	}
	dealer->since = now;
	dealer->waited_ns = 0;
}

/* -- Whose turn it is --------------------------------------------------------------- */

/* Several lanes of one pair of NICs divide its share. */
static double share_of(const struct tti_tcp_link *link, const int *lane, int n, int k)
{
	const struct tti_tcp_lane *one = &link->lane[lane[k]];
	int alike = 0;

	for (int i = 0; i < n; i++)
		alike += strcmp(link->lane[lane[i]].local_nic, one->local_nic) == 0 &&
			 strcmp(link->lane[lane[i]].remote_nic, one->remote_nic) == 0;
	return one->share / alike;
}

/* Count what was dealt anew where the set of lanes has changed. */
static void begin_anew(struct tti_tcp_link *link, const int *lane, int n)
{
	uint32_t lanes = 0;

	for (int k = 0; k < n; k++)
		lanes |= UINT32_C(1) << lane[k];
	if (lanes == link->dealer.lanes)
		return;
	link->dealer.lanes = lanes;
	for (int k = 0; k < n; k++)
		link->lane[lane[k]].dealt = 0;
}

void tti_tcp_shares_admit(struct tti_tcp_link *link, const int *lane, const bool *idle, int n,
			  size_t nbytes, bool *may_out)
{
	double share[TTI_TCP_LANES_MOST], mine[TTI_TCP_LANES_MOST];
	double shares = 0, dealt = (double)nbytes;
	int due = 0;

	begin_anew(link, lane, n);
	for (int k = 0; k < n; k++) {
		share[k] = share_of(link, lane, n, k);
		mine[k] = (double)link->lane[lane[k]].dealt + (double)nbytes;
		shares += share[k];
		dealt += mine[k] - (double)nbytes;
		if (mine[k] * share[due] < mine[due] * share[k])
			due = k;
	}
	for (int k = 0; k < n; k++)
		may_out[k] =
			k == due || (!idle[due] && mine[k] <= dealt * share[k] / shares + AHEAD);
	if (dealt > RECENT)
		for (int k = 0; k < n; k++)
			link->lane[lane[k]].dealt /= 2;
}
