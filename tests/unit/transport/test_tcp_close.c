/* SPDX-License-Identifier: BSD-3-Clause */
/* How long a TCP port waits, when it is shut down, for peers that have not read all. */
#include "unit/transport/tcp_world.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MESSAGES = 64, SIZE = 16384 };

static char log_file[] = "/tmp/tutti-test-XXXXXX";

static size_t count_untaken(void)
{
	FILE *file = fopen(log_file, "re");
	char line[1024];
	size_t n = 0;

	assert_non_null(file);
	while (fgets(line, sizeof(line), file))
		n += strstr(line, "rank 1 did not take the last ") != NULL;
	fclose(file);
	return n;
}

/* Rank 0 has committed MESSAGES to rank 1, whose machine takes little of them by itself. The rest
 * waits in the port, or all of it with the system of rank 0. */
static void commit_all(struct world *world, bool with_system)
{
	const int64_t deadline = tti_deadline(20000);
	const int little = 65536;

	world_open(world, 2, MESSAGES, SIZE, 1);
	world->options.sndbuf = with_system ? 0 : 1;
	world_start(world);
	world_join(world);
	world_link(world, 0, 1);
	assert_int_equal(setsockopt(((struct tti_tcp_link *)world->link[1][0])->conn[0]->fd,
				    SOL_SOCKET, SO_RCVBUF, &little, sizeof(little)),
			 0);
	for (uint64_t i = 0; i < MESSAGES; i++)
		assert_true(put(world->link[0][1], SIZE, i));
	while (with_system && world->port[0]->unsent && tti_now_ns() < deadline)
		tcp->progress(world->port[0]);
	assert_int_equal(world->port[0]->unsent == 0, with_system);
}

static void shut_down(struct world *world)
{
	tcp->close(world->link[0][1]);
	tcp->shutdown(world->port[0]);
	world->port[0] = NULL;
	world->link[0][1] = NULL;
}

struct reader {
	struct world *world;
	uint64_t taken;
};

/* All of it takes longer than a peer that reads nothing is waited for. */
static void *read_slowly(void *arg)
{
	struct reader *reader = arg;
	struct tti_port *port = reader->world->port[1];
	struct tti_link *link = reader->world->link[1][0];
	const int64_t deadline = tti_deadline(60000);
	size_t nbytes;
	uint64_t tag;

	while (reader->taken < MESSAGES && !port->failure && tti_now_ns() < deadline) {
		tcp->progress(port);
		if (!link->ops->peek(link, &nbytes, &tag))
			continue;
		link->ops->release(link);
		reader->taken++;
		usleep(40 * 1000);
	}
	return NULL;
}

static bool all_arrives(bool with_system)
{
	struct world world;
	struct reader reader = { &world, 0 };
	const size_t logged = count_untaken();
	pthread_t thread;
	bool arrives;

	commit_all(&world, with_system);
	assert_int_equal(pthread_create(&thread, NULL, read_slowly, &reader), 0);
	shut_down(&world);
	assert_int_equal(pthread_join(thread, NULL), 0);
	arrives = reader.taken == MESSAGES && !world.port[1]->failure && count_untaken() == logged;
	world_end(&world);
	return arrives;
}

/* A reader that gets no turn for a second on a busy machine is given up. One that shutdown does not
 * wait for never gets all, however idle the machine. */
static void shutdown_flushes_while_the_peer_reads(void **state)
{
	(void)state;
	for (int with_system = 0; with_system <= 1; with_system++) {
		int tries = 5;

		while (!all_arrives(with_system))
			assert_int_not_equal(--tries, 0);
	}
}

/* The peer never reads: that is said. */
static void shutdown_has_an_end(void **state)
{
	(void)state;
	for (int with_system = 0; with_system <= 1; with_system++) {
		struct world world;
		const size_t logged = count_untaken();

		commit_all(&world, with_system);
		shut_down(&world);
		assert_int_equal(count_untaken(), logged + 1);
		world_end(&world);
	}
}

static int64_t shut_down_after_messages(void)
{
	struct world world;
	int64_t begun;

	world_pair(&world, 8, 262144, 2);
	for (uint64_t i = 0; i < 4; i++)
		assert_true(put(world.link[0][1], 1000, i));
	begun = tti_now_ns();
	shut_down(&world);
	begun = tti_now_ns() - begun;
	world_end(&world);
	return begun;
}

/* Where it waits until its patience ends, it never is quick, however idle the machine. */
static void shutdown_is_quick_when_all_is_sent(void **state)
{
	int tries = 20;

	(void)state;
	while (shut_down_after_messages() > 500 * TTI_NS_PER_MS)
		assert_int_not_equal(--tries, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shutdown_flushes_while_the_peer_reads),
		cmocka_unit_test(shutdown_has_an_end),
		cmocka_unit_test(shutdown_is_quick_when_all_is_sent),
	};
	const int fd = mkstemp(log_file);
	int failed;

	if (fd < 0 || setenv("TUTTI_DEBUG_FILE", log_file, 1))
		return 1;
	close(fd);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(log_file);
	return failed;
}
