/* SPDX-License-Identifier: BSD-3-Clause */
#include "insight/ping/ping.h"

#include "util/error.h"
#include "util/mem.h"
#include "util/strbuf.h"

/* Findings: what is wrong with the measured figures, and what to do about it. Pure. */

/* A lane should carry this share of the speed that its NICs claim; the payload of TCP is 0.95. */
#define OF_CLAIM      0.7
/* One direction may be slower than the other by so much. */
#define ONE_WAY       1.5
/* All lanes together should carry this share of the sum of their single rates. */
#define OF_SUM        0.7
/* A lane with less than this share of the best lane is worth a note. */
#define OF_SISTER     0.5
/* 1 % of the round trips may take so many times the median, or so many microseconds. */
#define OUTLIER_TIMES 20
#define OUTLIER_US    2000
/* This share of the packets may be lost; packets of the kernel have about 1,400 bytes. */
#define RESENT_OF     0.01
#define PACKET_BYTES  1400
#define RESENT_LEAST  10
/* Takes of one thing that differ by so much. */
#define UNSTEADY      1.25
/* A rank that waits for a core for this share of the time shares the core with other work. */
#define STARVED       0.1

#define BUSY_REMEDY                                                                    \
	"run it again when the machine does nothing else, or with fewer ranks a core " \
	"(TUTTI_SPIN=0 makes waiting ranks give way)"

enum { AB, BA };

static void add(struct tutti_ping_result *ping, int lane, const char *rule, const char *severity,
		const char *remedy, struct tti_strbuf *what)
{
	const struct tti_ping_finding finding = {
		.lane = lane,
		.rule = rule,
		.severity = severity,
		.remedy = remedy,
		.what = tti_strbuf_take(what),
	};

	if (finding.what && tti_vec_push(&ping->findings, finding))
		return;
	tti_free(finding.what);
	ping->starved = true;
}

/* -- Names --------------------------------------------------------------------------- */

static void name_end(struct tti_strbuf *text, int rank, const char *nic, const char *addr)
{
	tti_strbuf_addf(text, "rank %d%s%s%s%s", rank, nic[0] ? " " : "", nic, addr[0] ? " " : "",
			addr);
}

/* "lane 1 (rank 0 eth1 10.0.1.1 - rank 1 eth1 10.0.1.2)" */
static void name_lane(const struct tutti_ping_result *ping, int lane, struct tti_strbuf *text)
{
	const struct tti_lane_info *a, *b;

	if (ping->is_local || lane < 0) {
		tti_strbuf_addf(text, "%s of rank %d and rank %d",
				ping->is_local ? "the shared memory" : "all lanes together",
				ping->rank[0], ping->rank[1]);
		return;
	}
	a = &ping->lanes[lane].side[0];
	b = &ping->lanes[lane].side[1];
	tti_strbuf_addf(text, "lane %d (", lane);
	name_end(text, ping->rank[0], a->local_nic[0] ? a->local_nic : b->remote_nic,
		 a->local_addr[0] ? a->local_addr : b->remote_addr);
	tti_strbuf_add(text, " - ");
	name_end(text, ping->rank[1], b->local_nic[0] ? b->local_nic : a->remote_nic,
		 b->local_addr[0] ? b->local_addr : a->remote_addr);
	tti_strbuf_add(text, ")");
}

/* -- Other work on the machine ---------------------------------------------------------- */

static bool is_busy(const struct tti_ping_measure *measure)
{
	return measure->starved[0] > STARVED || measure->starved[1] > STARVED;
}

static void excuse(const struct tutti_ping_result *ping, const struct tti_ping_measure *measure,
		   struct tti_strbuf *text)
{
	if (is_busy(measure))
		tti_strbuf_addf(
			text,
			"; other work may be the cause: rank %d had to wait for a core %.0f %% "
			"of the time, rank %d %.0f %%",
			ping->rank[0], 100 * measure->starved[0], ping->rank[1],
			100 * measure->starved[1]);
	else if (ping->oversubscribed)
		tti_strbuf_add(text, "; there are more ranks than cores, which may be the cause");
}

static bool has_excuse(const struct tutti_ping_result *ping, const struct tti_ping_measure *measure)
{
	return ping->oversubscribed || is_busy(measure);
}

/* A limit on the way gives the same rate each time, other work does not. */
static bool is_excused(const struct tutti_ping_result *ping, const struct tti_ping_measure *measure,
		       int way)
{
	return has_excuse(ping, measure) &&
	       (ping->is_local || measure->gbps[way] > UNSTEADY * measure->least[way]);
}

/* -- Rates ------------------------------------------------------------------------------- */

double tti_ping_claim(const struct tti_ping_lane *lane)
{
	uint32_t a = lane->side[0].local_mbps, b = lane->side[1].local_mbps;

	a = a ? a : lane->side[1].remote_mbps;
	b = b ? b : lane->side[0].remote_mbps;
	return (a < b ? a : b) / 8e3;
}

static void find_slow(struct tutti_ping_result *ping, int lane)
{
	const struct tti_ping_measure *m = &ping->lanes[lane].measure;
	const double claim = tti_ping_claim(&ping->lanes[lane]);
	struct tti_strbuf text = { 0 };

	for (int way = AB; way <= BA; way++) {
		if (m->gbps[way] >= OF_CLAIM * claim)
			continue;
		name_lane(ping, lane, &text);
		tti_strbuf_addf(&text,
				" carries %.3g GB/s from rank %d to rank %d, %.0f %% of the %.3g "
				"that its NICs claim",
				m->gbps[way], ping->rank[way], ping->rank[!way],
				100 * m->gbps[way] / claim, claim);
		if (is_excused(ping, m, way))
			excuse(ping, m, &text);
		add(ping, lane, "slow", is_excused(ping, m, way) ? "info" : "error",
		    "look for a limit on the way (a switch port or cable that came up slower, "
		    "tc qdisc, a virtual NIC whose claim means nothing) and for a core that is "
		    "busy with the NIC's interrupts; try TUTTI_TCP_SOCKETS=4",
		    &text);
	}
}

static void find_one_way(struct tutti_ping_result *ping, int lane, const struct tti_ping_measure *m)
{
	const int slow = m->gbps[AB] < m->gbps[BA] ? AB : BA;
	const double least = m->gbps[slow], most = m->gbps[!slow];
	/* Trouble of a lane is reported for that lane; all lanes together vary with the rank
	 * that comes first. */
	const bool excused = lane < 0 || is_excused(ping, m, slow);
	struct tti_strbuf text = { 0 };

	if (most <= ONE_WAY * least)
		return;
	name_lane(ping, lane, &text);
	tti_strbuf_addf(
		&text, ": rank %d to rank %d %.3g GB/s, the other way %.3g, %.1f times as much",
		ping->rank[slow], ping->rank[!slow], least, most, least > 0 ? most / least : 0);
	if (excused)
		excuse(ping, m, &text);
	if (excused || ping->is_local)
		add(ping, lane, "one-way", excused ? "info" : "warning", BUSY_REMEDY, &text);
	else
		add(ping, lane, "one-way", "error",
		    "look at what only this direction passes: a shaper or duplex setting at the "
		    "sender's NIC, losses at the receiver's, another route there than back",
		    &text);
}

static double best_of(const struct tutti_ping_result *ping, int way)
{
	double best = 0;

	for (int i = 0; i < ping->nlanes; i++)
		if (ping->lanes[i].measure.gbps[way] > best)
			best = ping->lanes[i].measure.gbps[way];
	return best;
}

static void find_uneven(struct tutti_ping_result *ping, int lane)
{
	const struct tti_ping_measure *m = &ping->lanes[lane].measure;
	const int way = m->gbps[AB] < m->gbps[BA] ? AB : BA;
	const double best = best_of(ping, way);
	struct tti_strbuf text = { 0 };

	if (m->gbps[way] >= OF_SISTER * best)
		return;
	name_lane(ping, lane, &text);
	tti_strbuf_addf(
		&text,
		" carries %.3g GB/s from rank %d to rank %d, the best of the other lanes %.3g",
		m->gbps[way], ping->rank[way], ping->rank[!way], best);
	excuse(ping, m, &text);
	add(ping, lane, "uneven", "info",
	    "nothing to do if that is how the NICs are: each lane gets its share", &text);
}

static void find_not_together(struct tutti_ping_result *ping)
{
	const struct tti_ping_measure *all = &ping->together;
	struct tti_strbuf text = { 0 };
	double sum[2] = { 0 };
	int way, nmeasured = 0;

	for (int i = 0; i < ping->nlanes; i++) {
		nmeasured += ping->lanes[i].measure.measured != 0;
		for (way = AB; way <= BA; way++)
			sum[way] += ping->lanes[i].measure.gbps[way];
	}
	way = all->gbps[AB] * sum[BA] < all->gbps[BA] * sum[AB] ? AB : BA;
	if (nmeasured < 2 || all->gbps[way] >= OF_SUM * sum[way])
		return;
	name_lane(ping, -1, &text);
	tti_strbuf_addf(&text,
			": %.3g GB/s from rank %d to rank %d, one by one they make %.3g: they "
			"share something",
			all->gbps[way], ping->rank[way], ping->rank[!way], sum[way]);
	excuse(ping, all, &text);
	add(ping, -1, "together", "info",
	    "lanes of one NIC or one switch port share it, and all share the core that moves "
	    "them; fewer sockets (TUTTI_TCP_SOCKETS) do as well then",
	    &text);
}

/* -- Latency, losses, settings ------------------------------------------------------------ */

static void find_outliers(struct tutti_ping_result *ping, int lane,
			  const struct tti_ping_measure *m)
{
	struct tti_strbuf text = { 0 };

	if (m->round_trips < 100 || m->rtt_p99_us <= OUTLIER_TIMES * m->rtt_us ||
	    m->rtt_p99_us <= OUTLIER_US)
		return;
	name_lane(ping, lane, &text);
	tti_strbuf_addf(&text, ": 1 %% of round trips take %.4g us and more, half of them %.4g",
			m->rtt_p99_us, m->rtt_us);
	excuse(ping, m, &text);
	add(ping, lane, "latency", has_excuse(ping, m) ? "info" : "warning",
	    "look for other work on the ranks' cores, power saving of CPU or NIC, and interrupts "
	    "that are held back (ethtool -c)",
	    &text);
}

static void find_resent(struct tutti_ping_result *ping, int lane, const struct tti_ping_measure *m)
{
	for (int side = 0; side < 2; side++) {
		const double packets = (double)m->sent[side] / PACKET_BYTES;
		struct tti_strbuf text = { 0 };

		if (m->resent[side] < RESENT_LEAST ||
		    (double)m->resent[side] <= RESENT_OF * packets)
			continue;
		name_lane(ping, lane, &text);
		tti_strbuf_addf(&text,
				": rank %d had to send %llu packets again, about %.1f %% of all",
				ping->rank[side], (unsigned long long)m->resent[side],
				100 * (double)m->resent[side] / packets);
		add(ping, lane, "resent", "warning",
		    "look for errors and drops of both NICs (ip -s link, ethtool -S), a switch "
		    "whose buffers overflow, a bad cable",
		    &text);
	}
}

static void find_down(struct tutti_ping_result *ping, int lane)
{
	const struct tti_lane_info *side = ping->lanes[lane].side;
	struct tti_strbuf text = { 0 };
	const char *why = side[0].trouble[0] ? side[0].trouble : side[1].trouble;

	name_lane(ping, lane, &text);
	tti_strbuf_addf(&text, " is not up: %s", why[0] ? why : "it has not come up in time");
	add(ping, lane, "lane-down", "error",
	    "give these NICs a route to each other, or leave them out with "
	    "TUTTI_SOCKET_IFNAME=^NIC",
	    &text);
}

/* Trouble that the transport reports for a lane that is up: with its NICs and routes. */
static void find_odd(struct tutti_ping_result *ping, int lane)
{
	for (int s = 0; s < 2; s++) {
		const struct tti_lane_info *side = &ping->lanes[lane].side[s];
		struct tti_strbuf text = { 0 };

		if (!side->trouble[0])
			continue;
		name_lane(ping, lane, &text);
		tti_strbuf_addf(&text, ", as rank %d sees it: %s", ping->rank[s], side->trouble);
		add(ping, lane, "odd", "warning",
		    "NICs of one subnet need policy routing (ip rule from ADDRESS table ...) or "
		    "subnets of their own",
		    &text);
	}
}

static void find_lost(struct tutti_ping_result *ping, int lane)
{
	const struct tti_lane_info *side = ping->lanes[lane].side;
	const uint32_t losses = side[0].losses > side[1].losses ? side[0].losses : side[1].losses;
	struct tti_strbuf text = { 0 };

	if (!losses)
		return;
	name_lane(ping, lane, &text);
	tti_strbuf_addf(&text, " was lost %u time%s since the ranks began", losses,
			losses == 1 ? "" : "s");
	add(ping, lane, "lost", "warning",
	    "look at what the kernel says of the NIC (dmesg, ip monitor link) and at the cable",
	    &text);
}

static void find_mtu(struct tutti_ping_result *ping, int lane)
{
	const uint32_t a = ping->lanes[lane].side[0].local_mtu;
	const uint32_t b = ping->lanes[lane].side[1].local_mtu;
	struct tti_strbuf text = { 0 };

	if (!a || !b || a == b)
		return;
	name_lane(ping, lane, &text);
	tti_strbuf_addf(&text, ": MTU %u at rank %d, %u at rank %d", a, ping->rank[0], b,
			ping->rank[1]);
	add(ping, lane, "mtu", "warning",
	    "set both alike (ip link set NIC mtu BYTES): the smaller counts, and packets get "
	    "lost where the larger is not noticed",
	    &text);
}

/* -- All of them ----------------------------------------------------------------------------- */

static void find_in_lane(struct tutti_ping_result *ping, int lane)
{
	const struct tti_ping_lane *at = &ping->lanes[lane];

	find_lost(ping, lane);
	find_mtu(ping, lane);
	if (!at->side[0].up || !at->side[1].up) {
		find_down(ping, lane);
		return;
	}
	find_odd(ping, lane);
	if (!at->measure.measured)
		return;
	find_slow(ping, lane);
	find_one_way(ping, lane, &at->measure);
	find_uneven(ping, lane);
	find_outliers(ping, lane, &at->measure);
	find_resent(ping, lane, &at->measure);
}

tutti_status tti_ping_find(struct tutti_ping_result *ping)
{
	int nmeasured = 0;

	if (!ping->reached) {
		struct tti_strbuf text = { 0 };

		tti_strbuf_addf(&text, "rank %d and rank %d do not reach each other: %s",
				ping->rank[0], ping->rank[1], ping->why);
		add(ping, -1, "unreachable", "error",
		    "give them a route to each other, choose interfaces with "
		    "TUTTI_SOCKET_IFNAME, or let firewalls pass their ports",
		    &text);
	}
	for (int lane = 0; lane < ping->nlanes; lane++) {
		find_in_lane(ping, lane);
		nmeasured += ping->lanes[lane].measure.measured != 0;
	}
	if (nmeasured > 1) {
		find_one_way(ping, -1, &ping->together);
		find_outliers(ping, -1, &ping->together);
		find_not_together(ping);
	}
	if (ping->starved)
		return tti_fail(TUTTI_ENOMEM, "findings of a ping: out of memory");
	return TUTTI_OK;
}
