/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/tcp/tcp.h"

#include <linux/sock_diag.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "util/clock.h"

/* Messages up to this size take the lane of the least latency. */
#define SHORT           4096
/* How much work a lane gets beyond what is on the way, by what it was given and its rate, as
 * acknowledgements are late where they wait behind traffic in the other direction. More would be
 * late where another lane could have carried it, and so would the credits behind it: the buffers of
 * the system hold megabytes. */
#define HORIZON_NS      (5 * TTI_NS_PER_MS / 4)
/* A lane gets no more if nothing was acknowledged for so long. */
#define WAITING_NS      (12 * TTI_NS_PER_MS)
#define ENOUGH          (64 * 1024)
/* How much work a lane gets while its rate is not known. */
#define AT_FIRST        (256 * 1024)
/* A rate is measured over at least this time and these bytes, but over no longer time than the
 * most. */
#define MEASURE_NS      (4 * TTI_NS_PER_MS)
#define MEASURE_MOST_NS (40 * TTI_NS_PER_MS)
#define MEASURE_BYTES   (256 * 1024)
/* More bytes than QUEUED in the queues of this host are more than acknowledgements. Those of the
 * peer may be ACK_NS late. */
#define QUEUED          4096
#define ACK_NS          (4 * TTI_NS_PER_MS)
/* A measurement of at least this part of the known rate counts though the lane may have lacked
 * data. */
#define SUPPLIED_LEAST  0.9
/* A lane that was not looked at for so long may have had nothing to send meanwhile. */
#define SEEN_NS         (3 * TTI_NS_PER_MS)
/* The weight of earlier measurements: acknowledgements come in pieces, so one measurement may be
 * wrong by half. */
#define EARLIER         0.875
/* After so long a lane that has become slower is noticed, before the measurement ends.
 * Acknowledgements come in pieces of PIECE bytes, besides the latency under load. */
#define SLOWER_NS       (2 * TTI_NS_PER_MS)
#define PIECE           (128 * 1024)

/* A lane that gets nothing, as all others deliver sooner, is tried after so long, since it may have
 * become faster; then after twice as long, up to the most. */
#define PATIENCE_NS      (100 * TTI_NS_PER_MS)
#define PATIENCE_MOST_NS (10000 * TTI_NS_PER_MS)
/* It counts as so much faster if it was clearly faster with what it got. */
#define HINT             4
/* Without messages for so long the link was idle, and no lane was passed over. */
#define IDLE_NS          (20 * TTI_NS_PER_MS)

/* What is known of the lanes while one message is placed. */
struct choice {
	int n;
	int lane[TTI_TCP_LANES_MOST];
	bool free[TTI_TCP_LANES_MOST];   /* can take a frame at once        */
	double busy[TTI_TCP_LANES_MOST]; /* bytes that it has to send first */
	double rate[TTI_TCP_LANES_MOST];
};

static bool is_of_use(const struct tti_tcp_conn *conn)
{
	return conn && !conn->broken;
}

static bool is_free(const struct tti_tcp_conn *conn)
{
	return !conn->blocked && !conn->nout;
}

void tti_tcp_sched_handed(struct tti_tcp_conn *conn, size_t nbytes)
{
	struct tti_tcp_pace *pace = &conn->pace;
	const double rate = conn->link->lane[conn->pass.index].rate;

	pace->handed += nbytes;
	pace->waiting += nbytes;
	if (rate > 0) {
		const int64_t now = tti_now_ns();

		if (pace->through_at < now)
			pace->through_at = now;
		pace->through_at += (int64_t)((double)nbytes / rate);
	}
}

/* -- Rates ----------------------------------------------------------------- */

static void look_at_rtt(const struct tti_tcp_conn *conn, struct tti_tcp_lane *lane)
{
	struct tcp_info info;

	if (!tti_tcp_conn_info(conn, &info))
		return;
	lane->loaded_ns = (int64_t)info.tcpi_rtt * 1000;
	lane->rtt_ns = info.tcpi_min_rtt && info.tcpi_min_rtt != ~0U
			       ? (int64_t)info.tcpi_min_rtt * 1000
			       : lane->loaded_ns;
}

static void learn(struct tti_tcp_lane *lane, double bytes, double passed)
{
	lane->bytes = lane->bytes * EARLIER + bytes;
	lane->passed = lane->passed * EARLIER + passed;
	lane->rate = lane->bytes / lane->passed;
}

/* All that the lane was given is acknowledged, at an unknown time: it was at least that fast. That
 * says nothing while its rate is not known. A lane that is only tried now and then gets too little
 * for more than a hint. */
static void measure_least(struct tti_tcp_pace *pace, struct tti_tcp_lane *lane, double bytes,
			  double passed)
{
	if (bytes > PIECE && bytes - PIECE > passed * lane->rate) {
		learn(lane, bytes - PIECE, passed);
	} else if (pace->tried && bytes > HINT * passed * lane->rate) {
		lane->bytes *= HINT;
		lane->rate *= HINT;
		pace->patience = 0;
	}
	pace->tried = false;
}

/* Whether more is unacknowledged than late acknowledgements explain. */
static bool is_behind(const struct tti_tcp_pace *pace, const struct tti_tcp_lane *lane)
{
	return (double)pace->waiting > PIECE + lane->rate * (double)(ACK_NS + lane->rtt_ns);
}

/* Whether a lane surely has something to send. */
static bool is_supplied(const struct tti_tcp_pace *pace, const struct tti_tcp_lane *lane)
{
	return pace->unsent || pace->queued || is_behind(pace, lane);
}

static void measure_from(struct tti_tcp_pace *pace, const struct tti_tcp_lane *lane, uint64_t acked,
			 int64_t now)
{
	pace->since = now;
	pace->acked_before = acked;
	pace->supplied = is_supplied(pace, lane);
}

/* Whether a measurement counts. What a lane sends while it always has data is its rate. Otherwise
 * it is what the lane was given, which may be next to nothing, and counts only if it is near the
 * known rate. The first measurement after an idle time does not count: traffic shapers let a burst
 * pass then. */
static bool counts(const struct tti_tcp_pace *pace, const struct tti_tcp_lane *lane, double bytes,
		   double passed)
{
	if (pace->supplied)
		return pace->warm || lane->rate <= 0;
	return pace->warm && lane->rate > 0 && bytes > passed * lane->rate * SUPPLIED_LEAST;
}

static void measure(struct tti_tcp_conn *conn, struct tti_tcp_lane *lane, int64_t now)
{
	struct tti_tcp_pace *pace = &conn->pace;
	const uint64_t acked = pace->handed - pace->waiting;
	const double passed = (double)(now - pace->since);
	const double bytes = (double)(acked - pace->acked_before);

	if (!pace->waiting) {
		if (pace->since && lane->rate > 0)
			measure_least(pace, lane, bytes, passed);
		pace->since = 0;
		return;
	}
	if (!pace->since || now - pace->looked_at > SEEN_NS) {
		measure_from(pace, lane, acked, now);
		pace->warm = false;
		return;
	}
	pace->supplied &= is_supplied(pace, lane);
	if (now - pace->since < MEASURE_NS ||
	    (bytes < MEASURE_BYTES && now - pace->since < MEASURE_MOST_NS))
		return;
	if (counts(pace, lane, bytes, passed))
		learn(lane, bytes, passed);
	look_at_rtt(conn, lane);
	measure_from(pace, lane, acked, now);
	pace->warm = true;
}

/* What is acknowledged is through, whatever the estimate was. */
static void correct(struct tti_tcp_pace *pace, double rate, int64_t now)
{
	const int64_t latest = now + (int64_t)((double)pace->waiting / rate);

	if (pace->through_at > latest)
		pace->through_at = latest;
}

/* Whether data of a socket is in the queue of a NIC. */
static bool is_queued(int fd)
{
	uint32_t memory[SK_MEMINFO_VARS] = { 0 };
	socklen_t size = sizeof(memory);

	return !getsockopt(fd, SOL_SOCKET, SO_MEMINFO, memory, &size) &&
	       memory[SK_MEMINFO_WMEM_ALLOC] > QUEUED;
}

static void look_at(struct tti_tcp_link *link, int index, int64_t now)
{
	struct tti_tcp_conn *conn = link->conn[index];
	int waiting = 0;

	if (ioctl(conn->fd, SIOCOUTQ, &waiting) || waiting < 0)
		return;
	if ((uint64_t)waiting > conn->pace.handed)
		waiting = (int)conn->pace.handed;
	conn->pace.waiting = (size_t)waiting;
	if (ioctl(conn->fd, SIOCOUTQNSD, &waiting) || waiting < 0)
		waiting = 0;
	conn->pace.unsent = (size_t)waiting;
	conn->pace.queued = conn->pace.waiting && !waiting && is_queued(conn->fd);
	measure(conn, &link->lane[index], now);
	if (link->lane[index].rate > 0)
		correct(&conn->pace, link->lane[index].rate, now);
	conn->pace.looked_at = now;
}

/* The rate as measured, or less if the lane is just getting slower. */
static double rate_now(const struct tti_tcp_link *link, int index, int64_t now)
{
	const struct tti_tcp_pace *pace = &link->conn[index]->pace;
	const double rate = link->lane[index].rate;
	const double passed = (double)(now - pace->since);
	const double bytes = (double)(pace->handed - pace->waiting - pace->acked_before);
	const double late = PIECE + rate * (double)link->lane[index].loaded_ns;

	if (!pace->supplied && !is_behind(pace, &link->lane[index]))
		return rate;
	if (pace->since && passed > SLOWER_NS && bytes + late < passed * rate)
		return (bytes + late) / passed;
	return rate;
}

/* -- Which lane, which message --------------------------------------------- */

/* `shared`: messages go by the shares of lanes. */
static bool may_take(const struct tti_tcp_link *link, int lane, bool shared)
{
	const bool is_one =
		link->only >= 0 && link->only < link->nlanes && is_of_use(link->conn[link->only]);

	if (!is_of_use(link->conn[lane]))
		return false;
	return is_one ? lane == link->only : !shared || link->lane[lane].share > 0;
}

/* Lanes of unknown rate count as like the others. */
static void fill_in_rates(struct choice *choice)
{
	double sum = 0;
	int known = 0;

	for (int k = 0; k < choice->n; k++) {
		sum += choice->rate[k];
		known += choice->rate[k] > 0;
	}
	for (int k = 0; k < choice->n; k++) {
		if (choice->rate[k] <= 0)
			choice->rate[k] = known ? sum / known : 1;
	}
}

/* What a lane still has to send: between what is not acknowledged, which overstates it, and what
 * the system has not sent, which understates it, what the lane cannot have sent at its rate. */
static double busy_of(const struct tti_tcp_pace *pace, double rate, int64_t now)
{
	const double left = rate * (double)(pace->through_at - now);

	if (rate <= 0 || left > (double)pace->waiting)
		return (double)pace->waiting;
	return left < (double)pace->unsent ? (double)pace->unsent : left;
}

/* Whether more is unacknowledged than should be by now. */
static bool is_late(const struct tti_tcp_pace *pace, double rate, int64_t rtt_ns)
{
	return rate > 0 && (double)pace->waiting > ENOUGH + rate * (double)(WAITING_NS + rtt_ns);
}

static void look_around(struct tti_tcp_link *link, struct choice *choice, bool shared, int64_t now)
{
	choice->n = 0;
	for (int i = 0; i < link->nlanes; i++) {
		const struct tti_tcp_conn *conn = link->conn[i];
		const int k = choice->n;
		double rate, most;

		if (!may_take(link, i, shared))
			continue;
		look_at(link, i, now);
		rate = rate_now(link, i, now);
		most = rate > 0 ? rate * (double)(HORIZON_NS + link->lane[i].rtt_ns) : AT_FIRST;
		choice->lane[k] = i;
		choice->rate[k] = rate;
		choice->busy[k] = busy_of(&conn->pace, rate, now) + (double)conn->nout;
		choice->free[k] = is_free(conn) &&
				  choice->busy[k] < (most > ENOUGH ? most : ENOUGH) &&
				  !is_late(&conn->pace, rate, link->lane[i].rtt_ns);
		choice->n++;
	}
	fill_in_rates(choice);
}

/* The lane that would deliver nbytes first. */
static int soonest(const struct choice *choice, size_t nbytes)
{
	double least = 0;
	int best = -1;

	for (int k = 0; k < choice->n; k++) {
		const double takes = (choice->busy[k] + (double)nbytes) / choice->rate[k];

		if (best >= 0 && takes >= least)
			continue;
		least = takes;
		best = k;
	}
	return best;
}

/* Whether an idle lane has been passed over for long enough to be tried. */
static bool is_impatient(struct tti_tcp_link *link, int lane, int64_t now)
{
	struct tti_tcp_pace *pace = &link->conn[lane]->pace;

	if (!pace->passed_over || now - link->placed_at > IDLE_NS || pace->waiting) {
		pace->passed_over = now;
		return false;
	}
	if (!pace->patience)
		pace->patience = PATIENCE_NS;
	if (now - pace->passed_over < pace->patience)
		return false;
	pace->passed_over = now;
	pace->tried = true;
	pace->patience *= pace->patience < PATIENCE_MOST_NS ? 2 : 1;
	return true;
}

/* Choose a lane to try, with the message that is needed last. */
static bool give_a_chance(struct tti_tcp_link *link, const struct choice *choice, int64_t now,
			  int *lane, uint64_t *seq)
{
	int tried = -1;

	for (int k = 0; k < choice->n; k++) {
		if (choice->free[k] && is_impatient(link, choice->lane[k], now))
			tried = choice->lane[k];
	}
	if (tried < 0)
		return false;
	*lane = tried;
	for (uint64_t s = link->first; s < link->in.committed; s++) {
		if (link->todo & UINT64_C(1) << s % link->in.slots)
			*seq = s;
	}
	return true;
}

/* Place messages in their order, without sending them, each on the lane that delivers it first. The
 * first one whose lane is free now is sent; those before it wait for their lanes. So a slow lane
 * gets a message that is needed late, and at the end none that others deliver sooner. */
static bool place_soonest(struct tti_tcp_link *link, struct choice *choice, int *lane,
			  uint64_t *seq)
{
	int nfree = 0;

	for (int k = 0; k < choice->n; k++)
		nfree += choice->free[k];
	for (uint64_t s = link->first; s < link->in.committed && nfree; s++) {
		const size_t index = s % link->in.slots;
		const size_t nbytes = tti_tcp_wire_bytes(link, link->out[index].nbytes);
		int k;

		if (!(link->todo & UINT64_C(1) << index))
			continue;
		k = soonest(choice, nbytes);
		if (choice->free[k]) {
			*lane = choice->lane[k];
			*seq = s;
			return true;
		}
		choice->busy[k] += (double)nbytes;
	}
	return false;
}

/* Leave out the lanes that may not get the next message, as they are ahead of their shares; returns
 * how many of them are free. */
static int keep_to_shares(struct tti_tcp_link *link, struct choice *choice)
{
	const size_t nbytes = link->out[link->first % link->in.slots].nbytes;
	bool may[TTI_TCP_LANES_MOST], idle[TTI_TCP_LANES_MOST];
	int n = 0, nbarred = 0;

	if (choice->n < 2)
		return 0;
	for (int k = 0; k < choice->n; k++)
		idle[k] = choice->free[k] && !link->conn[choice->lane[k]]->pace.waiting;
	tti_tcp_shares_admit(link, choice->lane, idle, choice->n, nbytes, may);
	for (int k = 0; k < choice->n; k++) {
		nbarred += !may[k] && choice->free[k];
		if (!may[k])
			continue;
		choice->lane[n] = choice->lane[k];
		choice->free[n] = choice->free[k];
		choice->busy[n] = choice->busy[k];
		choice->rate[n++] = choice->rate[k];
	}
	choice->n = n;
	return nbarred;
}

static bool place(struct tti_tcp_link *link, int *lane, uint64_t *seq)
{
	const int64_t now = tti_now_ns();
	struct choice choice;
	bool shared, placed;
	int nbarred = 0;

	tti_tcp_shares_review(link, now);
	shared = tti_tcp_shares_hold(link);
	look_around(link, &choice, shared, now);
	if (shared)
		nbarred = keep_to_shares(link, &choice);
	placed = !shared && choice.n > 1 && give_a_chance(link, &choice, now, lane, seq);
	link->placed_at = now;
	placed = placed || place_soonest(link, &choice, lane, seq);
	if (shared)
		tti_tcp_shares_waited(link, !placed && nbarred > 0, now);
	return placed;
}

/* The lane of least latency; a later lane has to be clearly better than an earlier one. */
static int quickest(const struct tti_tcp_link *link, bool shared)
{
	double least = 0;
	int best = -1;

	for (int i = 0; i < link->nlanes; i++) {
		const struct tti_tcp_conn *conn = link->conn[i];
		double takes;

		if (!may_take(link, i, shared) || !is_free(conn))
			continue;
		takes = (double)link->lane[i].rtt_ns;
		if (conn->pace.waiting > ENOUGH && link->lane[i].rate > 0)
			takes += (double)conn->pace.waiting / link->lane[i].rate;
		if (best >= 0 && takes * 1.25 >= least)
			continue;
		least = takes;
		best = i;
	}
	return best;
}

/* The system is only asked about lanes that were given much since the last time. */
static int quick_lane(struct tti_tcp_link *link)
{
	const bool shared = tti_tcp_shares_hold(link);

	for (int i = 0; i < link->nlanes; i++) {
		if (may_take(link, i, shared) && link->conn[i]->pace.waiting > ENOUGH)
			look_at(link, i, tti_now_ns());
	}
	return quickest(link, shared);
}

/* The lane that is left, preferably one on which the peer still sends. */
static int only_lane(const struct tti_tcp_link *link)
{
	int best = -1;

	for (int i = link->nlanes - 1; i >= 0; i--) {
		if (is_of_use(link->conn[i]) && (best < 0 || !link->conn[i]->ended))
			best = i;
	}
	return best >= 0 && is_free(link->conn[best]) ? best : -1;
}

bool tti_tcp_sched_next(struct tti_tcp_link *link, int *lane, uint64_t *seq)
{
	*seq = link->first;
	if (link->nconns <= 1)
		*lane = only_lane(link);
	else if (link->out[link->first % link->in.slots].nbytes <= SHORT)
		*lane = quick_lane(link);
	else
		return place(link, lane, seq);
	return *lane >= 0;
}

/* Preferably the lane on which something came last, as the peer reads it. */
int tti_tcp_sched_credit(const struct tti_tcp_link *link)
{
	const struct tti_tcp_conn *heard = link->conn[link->heard];

	if (is_of_use(heard) && is_free(heard))
		return link->heard;
	for (int i = 0; i < link->nlanes; i++) {
		if (is_of_use(link->conn[i]) && is_free(link->conn[i]))
			return i;
	}
	return -1;
}
