/* SPDX-License-Identifier: BSD-3-Clause */
#include "insight/ping/ping.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "insight/ping/probe.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/mem.h"

/* The two ranks do the same things in the same order: where they exchange what they know,
 * both have both and so decide alike. What only one can decide (when the time is over) is
 * rank a's. */

/* More than the nearest caches hold, as with a collective's buffers. */
#define BUFFER_BYTES  ((size_t)4 << 20)
#define WARM_ROUNDS   10
#define MOST_ROUNDS   2000
#define FAR_ROUNDS    10
#define FAR_MOST_NS   (2000 * TTI_NS_PER_MS)
#define TAKES         3
/* Lanes are opened in the background: so long at least, and at most if some do not come. */
#define OPEN_LEAST_NS (100 * TTI_NS_PER_MS)
#define OPEN_MOST_NS  (1000 * TTI_NS_PER_MS)
#define OPEN_NAP_NS   (5 * TTI_NS_PER_MS)
#define HORIZON_NS    (10 * TTI_NS_PER_MS)
/* "tutpng", and a version: ranks that do this differently notice it. */
#define PING_TAG      UINT64_C(0x747574706e670001)

struct run {
	struct tti_comm *comm;
	struct tti_port *port;
	struct tti_link *link;
	const struct tti_lane_ops *lane_ops; /* NULL: one lane */
	struct tutti_ping_result *ping;
	struct tti_probe probe;
	int side, peer; /* 0: rank a, which leads; 1: rank b */
	int64_t seconds_ns;
	uint64_t most;
	int64_t rtt_ns;
	char *out, *in;
	size_t nbuffer;
	double *samples; /* [MOST_ROUNDS] */
};

/* Tell each other something of the same size. */
static tutti_status swap(struct run *run, const void *mine, void *theirs, size_t nbytes)
{
	TTI_TRY(tti_probe_send(&run->probe, mine, nbytes));
	return tti_probe_recv(&run->probe, theirs, nbytes);
}

/* -- Beginning -------------------------------------------------------------------- */

struct hello {
	double seconds;
	uint64_t bytes;
};

static tutti_status greet(struct run *run, const struct tutti_ping_options *options)
{
	const struct hello mine = { options->seconds, options->bytes };
	struct hello theirs;

	TTI_TRY(swap(run, &mine, &theirs, sizeof(mine)));
	run->seconds_ns = (int64_t)((run->side ? theirs : mine).seconds * 1e9);
	run->most = (run->side ? theirs : mine).bytes;
	return TUTTI_OK;
}

/* How the lanes stand at one side. */
struct stand {
	int32_t nlanes, nup;
	int32_t enough; /* rank a: no more of this */
};

static struct stand look(const struct run *run)
{
	struct stand stand = { .nlanes = tti_lanes_count(run->port, run->link) };
	struct tti_lane_info info;

	for (int i = 0; i < stand.nlanes; i++) {
		tti_lanes_get(run->port, run->link, i, &info);
		stand.nup += info.up;
	}
	return stand;
}

static bool all_up(const struct stand *mine, const struct stand *theirs)
{
	return mine->nlanes == theirs->nlanes && mine->nup == mine->nlanes &&
	       theirs->nup == theirs->nlanes;
}

/* Wait until all lanes are up at both ends, or will not be; how many there are. */
static tutti_status open_lanes(struct run *run, int *nlanes)
{
	const struct timespec nap = { .tv_nsec = OPEN_NAP_NS };
	const int64_t began = tti_now_ns();
	struct stand mine, theirs = { 0 };

	if (run->lane_ops)
		run->lane_ops->open_all(run->link);
	do {
		const int64_t waited = tti_now_ns() - began;

		mine = look(run);
		mine.enough = !run->lane_ops || waited >= OPEN_MOST_NS ||
			      (waited >= OPEN_LEAST_NS && all_up(&mine, &theirs));
		TTI_TRY(swap(run, &mine, &theirs, sizeof(mine)));
		if (run->side == 0 && !mine.enough)
			nanosleep(&nap, NULL);
	} while (!(run->side ? theirs.enough : mine.enough));
	/* Only the side that tries to open a lane knows about a lane that never came up. */
	*nlanes = mine.nlanes > theirs.nlanes ? mine.nlanes : theirs.nlanes;
	return TUTTI_OK;
}

static void terminate(struct tti_lane_info *info)
{
	info->local_nic[sizeof(info->local_nic) - 1] = 0;
	info->remote_nic[sizeof(info->remote_nic) - 1] = 0;
	info->local_addr[sizeof(info->local_addr) - 1] = 0;
	info->remote_addr[sizeof(info->remote_addr) - 1] = 0;
	info->trouble[sizeof(info->trouble) - 1] = 0;
}

/* Exchange what each side knows about each lane. */
static tutti_status describe(struct run *run)
{
	struct tutti_ping_result *ping = run->ping;

	for (int i = 0; i < ping->nlanes; i++) {
		struct tti_lane_info *side = ping->lanes[i].side;

		tti_lanes_get(run->port, run->link, i, &side[run->side]);
		TTI_TRY(swap(run, &side[run->side], &side[!run->side], sizeof(*side)));
		terminate(&side[!run->side]);
	}
	return TUTTI_OK;
}

/* -- Latency ------------------------------------------------------------------------ */

static int compare(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void sum_up(struct run *run, int rounds, struct tti_ping_measure *out)
{
	double *at = run->samples;

	qsort(at, (size_t)rounds, sizeof(*at), compare);
	out->round_trips = (uint32_t)rounds;
	out->rtt_least_us = at[0];
	out->rtt_us = at[rounds / 2];
	out->rtt_p99_us = at[(rounds * 99 - 1) / 100];
}

/* Rank a sends the number of rounds that are left, 0: this was the last. */
static tutti_status lead_rounds(struct run *run, struct tti_ping_measure *out)
{
	const int64_t began = tti_now_ns(), lasts = run->seconds_ns / 4;
	int64_t now = began, sent_at;
	uint64_t more, answer;
	int rounds = 0, kept = 0;

	do {
		sent_at = now;
		more = now - began < lasts && kept + 1 < MOST_ROUNDS;
		TTI_TRY(tti_probe_send(&run->probe, &more, sizeof(more)));
		TTI_TRY(tti_probe_recv(&run->probe, &answer, sizeof(answer)));
		now = tti_now_ns();
		if (rounds++ >= WARM_ROUNDS || !more || now - began > lasts / 4)
			run->samples[kept++] = (double)(now - sent_at) / 1e3;
	} while (more);
	sum_up(run, kept, out);
	return TUTTI_OK;
}

static tutti_status follow_rounds(struct run *run)
{
	uint64_t more;

	do {
		TTI_TRY(tti_probe_recv(&run->probe, &more, sizeof(more)));
		TTI_TRY(tti_probe_send(&run->probe, &more, sizeof(more)));
	} while (more);
	return TUTTI_OK;
}

static tutti_status measure_latency(struct run *run, struct tti_ping_measure *out)
{
	double mine = 0, theirs;

	if (run->side == 0)
		TTI_TRY(lead_rounds(run, out));
	else
		TTI_TRY(follow_rounds(run));
	mine = out->rtt_us;
	TTI_TRY(swap(run, &mine, &theirs, sizeof(mine)));
	run->rtt_ns = (int64_t)((run->side ? theirs : mine) * 1e3);
	return TUTTI_OK;
}

/* -- Rates --------------------------------------------------------------------------- */

/* A far peer needs some round trips until all is under way. */
static int64_t flow_lasts(const struct run *run)
{
	const int64_t far = FAR_ROUNDS * run->rtt_ns, lasts = run->seconds_ns / 4;

	if (far <= lasts)
		return lasts;
	return far < FAR_MOST_NS ? far : FAR_MOST_NS;
}

/* `sender` is the side that sends, -1: both. *gbps_out: what this side received, 0: it sent. */
static tutti_status flow(struct run *run, int sender, struct tti_ping_measure *out,
			 double *gbps_out)
{
	struct tti_flow flow = {
		.sends = sender != !run->side,
		.receives = sender != run->side,
		.out = run->out,
		.in = run->in,
		.nbuffer = run->nbuffer,
		.lasts_ns = flow_lasts(run),
		.most = run->most,
		.horizon_ns = 4 * run->rtt_ns > HORIZON_NS ? 4 * run->rtt_ns : HORIZON_NS,
	};

	TTI_TRY(tti_probe_flow(&run->probe, &flow));
	out->sent[run->side] += flow.sent;
	*gbps_out = flow.took_ns > 0 ? (double)flow.nbytes / (double)flow.took_ns : 0;
	return TUTTI_OK;
}

/* A direction is measured where it arrives: a's figures and b's make one. */
static tutti_status combine(struct run *run, struct tti_ping_measure *mine)
{
	struct tti_ping_measure theirs;
	const struct tti_ping_measure *b = run->side ? mine : &theirs;
	struct tti_ping_measure all;

	TTI_TRY(swap(run, mine, &theirs, sizeof(*mine)));
	all = run->side ? theirs : *mine;
	all.gbps[0] = b->gbps[0];
	all.least[0] = b->least[0];
	all.both_gbps[0] = b->both_gbps[0];
	all.resent[1] = b->resent[1];
	all.sent[1] = b->sent[1];
	all.starved[1] = b->starved[1];
	*mine = all;
	return TUTTI_OK;
}

static tutti_status measure_one_way(struct run *run, struct tti_ping_measure *out)
{
	for (int sender = 0; sender < 2; sender++) {
		double gbps;

		TTI_TRY(flow(run, sender, out, &gbps));
		if (sender == run->side)
			continue;
		if (gbps > out->gbps[sender])
			out->gbps[sender] = gbps;
		if (gbps < out->least[sender] || out->least[sender] <= 0)
			out->least[sender] = gbps;
	}
	return TUTTI_OK;
}

/* Other work on the machine slows one measurement and not the next; what is wrong with the
 * wires is so again. */
static bool is_odd(const struct run *run, int lane, const struct tti_ping_measure *measure)
{
	const double a = measure->gbps[0], b = measure->gbps[1];
	const double claim = lane < 0 ? 0 : tti_ping_claim(&run->ping->lanes[lane]);

	return a > 1.3 * b || b > 1.3 * a || (a < b ? a : b) < 0.8 * claim;
}

/* Each direction, and again what looks odd. */
static tutti_status measure_rates(struct run *run, int lane, struct tti_ping_measure *out)
{
	for (int take = 0; take < TAKES; take++) {
		TTI_TRY(measure_one_way(run, out));
		TTI_TRY(combine(run, out));
		if (!is_odd(run, lane, out))
			return TUTTI_OK;
	}
	return TUTTI_OK;
}

static uint64_t resent_so_far(const struct run *run, int lane)
{
	struct tti_lane_info info;
	uint64_t resent = 0;

	for (int i = 0; i < run->ping->nlanes; i++) {
		if (lane >= 0 && i != lane)
			continue;
		tti_lanes_get(run->port, run->link, i, &info);
		resent += info.resent;
	}
	return resent;
}

/* How long this thread has waited for a core, in ns, as the kernel counts it; 0: not known. */
static uint64_t starved_so_far(void)
{
	FILE *file = fopen("/proc/thread-self/schedstat", "re");
	uint64_t ran, waited = 0;

	if (!file)
		return 0;
	if (fscanf(file, "%" SCNu64 " %" SCNu64, &ran, &waited) != 2)
		waited = 0;
	fclose(file);
	return waited;
}

/* lane -1: all together. */
static tutti_status measure(struct run *run, int lane, struct tti_ping_measure *out)
{
	const int64_t began = tti_now_ns();
	const uint64_t resent = resent_so_far(run, lane);
	const uint64_t starved = starved_so_far();
	uint64_t now;

	if (run->lane_ops)
		run->lane_ops->only(run->link, lane);
	TTI_TRY(measure_latency(run, out));
	TTI_TRY(measure_rates(run, lane, out));
	TTI_TRY(flow(run, -1, out, &out->both_gbps[!run->side]));
	/* It counts from 0 on a lane that was opened anew. */
	now = resent_so_far(run, lane);
	out->resent[run->side] = now > resent ? now - resent : 0;
	out->starved[run->side] =
		(double)(starved_so_far() - starved) / (double)(tti_now_ns() - began);
	out->measured = 1;
	return combine(run, out);
}

/* Lanes that are up, one by one, then all together. */
static tutti_status measure_all(struct run *run)
{
	struct tutti_ping_result *ping = run->ping;
	int nup = 0, last = 0;

	for (int i = 0; i < ping->nlanes; i++)
		if (ping->lanes[i].side[0].up && ping->lanes[i].side[1].up) {
			last = i;
			nup++;
		}
	for (int i = 0; i < ping->nlanes && nup > 1; i++)
		if (ping->lanes[i].side[0].up && ping->lanes[i].side[1].up)
			TTI_TRY(measure(run, i, &ping->lanes[i].measure));
	TTI_TRY(measure(run, nup > 1 || !ping->nlanes ? -1 : last, &ping->together));
	if (nup == 1)
		ping->lanes[last].measure = ping->together;
	return TUTTI_OK;
}

/* -- All of it ------------------------------------------------------------------------- */

static tutti_status prepare(struct run *run)
{
	run->nbuffer = BUFFER_BYTES > run->port->slot_bytes ? BUFFER_BYTES : run->port->slot_bytes;
	run->out = tti_zalloc(run->nbuffer);
	run->in = tti_zalloc(run->nbuffer);
	run->samples = tti_calloc(MOST_ROUNDS, sizeof(*run->samples));
	if (!run->out || !run->in || !run->samples)
		return tti_fail(TUTTI_ENOMEM, "ping: 2 buffers of %zu bytes: out of memory",
				run->nbuffer);
	return TUTTI_OK;
}

static tutti_status measure_link(struct run *run, const struct tutti_ping_options *options)
{
	struct tutti_ping_result *ping = run->ping;
	int nlanes;

	TTI_TRY(prepare(run));
	TTI_TRY(greet(run, options));
	TTI_TRY(open_lanes(run, &nlanes));
	ping->lanes = tti_calloc((size_t)nlanes, sizeof(*ping->lanes));
	if (!ping->lanes)
		return tti_fail(TUTTI_ENOMEM, "ping of %d lanes: out of memory", nlanes);
	ping->nlanes = nlanes;
	TTI_TRY(describe(run));
	TTI_TRY(measure_all(run));
	TTI_TRY(describe(run));
	return tti_probe_flush(&run->probe);
}

tutti_status tti_ping_run(struct tti_comm *comm, const struct tutti_ping_options *options,
			  struct tutti_ping_result *ping, int *mismatch_peer)
{
	const int side = comm->rank != ping->rank[0], peer = ping->rank[!side];
	struct tti_engine *engine = &comm->engine;
	struct run run = {
		.comm = comm,
		.ping = ping,
		.probe = { .engine = engine, .peer = peer, .tag = PING_TAG },
		.port = comm->ports[comm->port_of[peer]],
		.side = side,
		.peer = peer,
	};
	const char *why;
	tutti_status st;

	st = tti_probe_reach(engine, peer, tti_now_ns() + (int64_t)(options->reach * 1e9), &why);
	if (st == TUTTI_AGAIN) {
		ping->why = tti_strdup(why);
		return ping->why ? TUTTI_OK : tti_fail(TUTTI_ENOMEM, "ping: out of memory");
	}
	TTI_TRY(st);
	ping->reached = true;
	ping->is_local = run.port->transport == &tti_transport_shm;
	run.link = engine->links[peer];
	run.lane_ops = run.port->transport->lanes;
	st = measure_link(&run, options);
	if (run.lane_ops)
		run.lane_ops->only(run.link, -1);
	if (run.probe.mismatch)
		*mismatch_peer = peer;
	tti_free(run.out);
	tti_free(run.in);
	tti_free(run.samples);
	return st;
}
