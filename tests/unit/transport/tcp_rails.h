/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_UNIT_TRANSPORT_TCP_RAILS_H
#define TESTS_UNIT_TRANSPORT_TCP_RAILS_H

/* A link over several NICs: two ranks in one process, each in a network namespace of its own, with
 * cables between them. */
#include "unit/transport/tcp_hosts.h"

#include <stdio.h>
#include <unistd.h>

static inline void drive(struct world *world)
{
	for (int rank = 0; rank < 2; rank++) {
		enter(net.host[rank]);
		tcp->progress(world->port[rank]);
	}
	enter(net.home);
}

static inline struct tti_tcp_link *end(struct world *world, int rank)
{
	return (struct tti_tcp_link *)world->link[rank][1 - rank];
}

#define begin(world, lanes, sockets) begin_with(world, lanes, sockets, NULL)

/* What both ranks are assigned by begin_with(): by NICs of the same name. */
static struct tti_lane_share assigned[4];
static int nassigned;

static inline void want(const char *nic, double share)
{
	struct tti_lane_share *one = &assigned[nassigned++];

	*one = (struct tti_lane_share){ .share = share };
	snprintf(one->local_nic, sizeof(one->local_nic), "%s", nic);
	snprintf(one->remote_nic, sizeof(one->remote_nic), "%s", nic);
}

static inline void assign(struct world *world)
{
	for (int rank = 0; rank < 2; rank++)
		tcp->assign(world->port[rank], 1 - rank, assigned, nassigned);
	nassigned = 0;
}

static inline void begin_with(struct world *world, int lanes, int sockets, const char *prefer)
{
	const int64_t deadline = tti_deadline(60000);
	bool up[2] = { false };

	world_open(world, 2, 8, 65536, sockets);
	world->options.lanes = lanes;
	for (int rank = 0; rank < 2; rank++) {
		enter(net.host[rank]);
		world->config.rank = rank;
		assert_int_equal(tti_tcp_open(&world->config, &world->options, &world->port[rank],
					      &world->card[rank]),
				 TUTTI_OK);
		if (prefer)
			tcp->prefer(world->port[rank], &prefer, 1);
	}
	world_join(world);
	assign(world);
	while (!up[0] || !up[1]) {
		for (int rank = 0; rank < 2; rank++) {
			tutti_status status;

			enter(net.host[rank]);
			status = tcp->connect(world->port[rank], 1 - rank,
					      &world->link[rank][1 - rank]);
			assert_true(status == TUTTI_OK || status == TUTTI_AGAIN);
			up[rank] = status == TUTTI_OK;
		}
		drive(world);
		assert_true(tti_now_ns() < deadline);
	}
}

/* While time has to pass, others may use the core. Of many calls of progress one looks at the
 * sockets. */
static inline void wait_a_moment(struct world *world)
{
	for (int i = 0; i < 64; i++)
		drive(world);
	usleep(1000);
}

/* Until both ends have so many lanes that are up. */
static inline void await(struct world *world, int n)
{
	const int64_t deadline = tti_deadline(60000);

	while (end(world, 0)->nconns != n || end(world, 1)->nconns != n) {
		wait_a_moment(world);
		if (tti_now_ns() > deadline)
			fail_msg("%d and %d lanes, not %d; %s", end(world, 0)->nconns,
				 end(world, 1)->nconns, n, end(world, 1)->lane[1].trouble);
	}
}

/* For so long, nothing but time passes. */
static inline void idle(struct world *world, int64_t ms)
{
	const int64_t until = tti_deadline(ms);

	while (tti_now_ns() < until)
		wait_a_moment(world);
}

static inline void open_all(struct world *world, int n)
{
	for (int rank = 0; rank < 2; rank++) {
		enter(net.host[rank]);
		tcp->lanes->open_all(world->link[rank][1 - rank]);
	}
	enter(net.home);
	await(world, n);
}

/* Both ways at once; all of it comes, once and in order. */
static inline void transfer(struct world *world, uint64_t messages)
{
	const int64_t deadline = tti_deadline(60000);
	uint64_t sent[2] = { 0 }, got[2] = { 0 };

	while (got[0] < messages || got[1] < messages) {
		for (int rank = 0; rank < 2; rank++) {
			struct tti_link *link = world->link[rank][1 - rank];

			while (sent[rank] < messages && put(link, 20000, sent[rank]))
				sent[rank]++;
			while (got[rank] < messages && take(link, 20000, got[rank]))
				got[rank]++;
			assert_int_equal(world->port[rank]->failure, TUTTI_OK);
		}
		drive(world);
		assert_true(tti_now_ns() < deadline);
	}
}

static inline struct tti_lane_info info(struct world *world, int rank, int lane)
{
	struct tti_lane_info out;

	tcp->lanes->get(world->link[rank][1 - rank], lane, &out);
	return out;
}

/* That lane goes by these NICs, seen from rank 1, which connects. */
static inline void check_lane(struct world *world, int lane, const char *local, const char *remote)
{
	const struct tti_lane_info high = info(world, 1, lane), low = info(world, 0, lane);

	assert_true(high.up && low.up);
	assert_string_equal(high.local_nic, local);
	assert_string_equal(high.remote_nic, remote);
	assert_string_equal(low.local_nic, remote);
	assert_string_equal(low.remote_nic, local);
	assert_string_equal(high.trouble, "");
	assert_string_equal(low.trouble, "");
}

static inline int fresh(void **state)
{
	(void)state;
	make_hosts();
	return 0;
}

static inline int gone(void **state)
{
	(void)state;
	remove_hosts();
	return 0;
}

#define test(name) cmocka_unit_test_setup_teardown(name, fresh, gone)

#endif
