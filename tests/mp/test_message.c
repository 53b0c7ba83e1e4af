/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages with tags between processes: results, also where they are sealed; a rank that is killed
 * while others wait for it, or for anybody; a forked child; a rank without memory for a channel. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/crew.h"
#include "util/fault.h"

#define MOST ((size_t)400 * 1000)

static const size_t sizes[] = { 8, 0, 20000, 40, MOST };
static unsigned char out[MOST], in[MOST];

static void encrypted(struct crew *crew, int rank)
{
	(void)crew;
	(void)rank;
	(void)setenv("TUTTI_ENCRYPT", "1", 1);
}

/* Two ranks on each: shared memory to one, TCP to the others. */
static void on_two_hosts(struct crew *crew, int rank)
{
	(void)crew;
	(void)setenv("TUTTI_HOST_ID", rank < 2 ? "message-a" : "message-b", 1);
}

static bool is_all(const unsigned char *data, size_t nbytes, int byte)
{
	return nbytes == 0 ||
	       (data[0] == (unsigned char)byte && memcmp(data, data + 1, nbytes - 1) == 0);
}

/* To all others, then from whoever comes first. */
static tutti_status go_round(tutti_channel_t channel, int rank, int n, int round)
{
	const size_t nbytes = sizes[round % 5];
	tutti_request_t requests[CREW_MOST];
	tutti_message_info info;
	tutti_status st = TUTTI_OK;

	memset(out, rank * 50 + round, nbytes);
	for (int peer = 0; peer < n && st == TUTTI_OK; peer++)
		st = tutti_message_isend(channel, out, nbytes, peer, round, &requests[peer]);
	for (int left = n; left > 0 && st == TUTTI_OK; left--) {
		st = tutti_message_recv(channel, in, MOST, TUTTI_ANY_SOURCE, round, &info);
		if (st == TUTTI_OK && info.bytes != nbytes)
			st = TUTTI_EINTERNAL;
		if (st == TUTTI_OK && !is_all(in, nbytes, info.source * 50 + round))
			st = TUTTI_EINTERNAL;
	}
	for (int peer = 0; peer < n && st == TUTTI_OK; peer++)
		st = tutti_message_wait(channel, requests[peer], -1, NULL);
	return st;
}

static tutti_status exchange(struct crew *crew, int rank, tutti_comm_t comm)
{
	tutti_channel_t channel = NULL;
	tutti_status st = tutti_channel_create(comm, &channel), end;

	for (int round = 0; round < 50 && st == TUTTI_OK; round++)
		st = go_round(channel, rank, crew->n, round);
	end = tutti_channel_destroy(channel);
	atomic_store(&crew->stop, 1);
	return st == TUTTI_OK ? end : st;
}

static void run(int n, const char *transport,
		tutti_status (*call)(struct crew *, int, tutti_comm_t),
		void (*prepare)(struct crew *, int))
{
	struct crew *crew = crew_create(n, transport, call);

	crew->prepare = prepare;
	assert_int_equal(crew_start(crew), 0);
	assert_int_equal(crew_wait(crew, 60000, -1), 0);
	for (int rank = 0; rank < n; rank++)
		if (crew->rank[rank].status != TUTTI_OK)
			fail_msg("%d ranks over %s, rank %d: %d, %s", n, transport, rank,
				 crew->rank[rank].status, crew->rank[rank].text);
	crew_free(crew);
}

static void results(void **state)
{
	(void)state;
	for (int n = 1; n <= 4; n++) {
		run(n, "auto", exchange, NULL);
		run(n, "tcp,self", exchange, NULL);
	}
	run(3, "tcp,self", exchange, encrypted);
	run(4, "auto", exchange, on_two_hosts);
}

/* -- Death ------------------------------------------------------------------------------ */

enum { FROM_VICTIM, FROM_ANY, SENDING, NWAYS };
static int way, victim;

/* Whoever is left waits for the victim in one of the ways; that one never comes. */
static tutti_status wait_for_victim(struct crew *crew, int rank, tutti_comm_t comm)
{
	tutti_channel_t channel = NULL;
	tutti_status st = tutti_channel_create(comm, &channel);
	char word = 0;

	(void)crew;
	if (st != TUTTI_OK)
		return st;
	if (rank == victim)
		for (;;)
			crew_nap_us(100000);
	if (way == SENDING)
		st = tutti_message_send(channel, out, MOST, victim, 1);
	else
		st = tutti_message_recv(channel, &word, 1,
					way == FROM_ANY ? TUTTI_ANY_SOURCE : victim, TUTTI_ANY_TAG,
					NULL);
	(void)tutti_channel_destroy(channel);
	return st;
}

static void deaths(void **state)
{
	static const char *const transports[] = { "shm,self", "tcp,self" };

	(void)state;
	for (int i = 0; i < 2 * NWAYS; i++) {
		const int n = 2 + i % 2;
		struct crew *crew = crew_create(n, transports[i % 2], wait_for_victim);
		char name[32];
		int64_t killed_ns;

		way = i / 2;
		victim = n - 1;
		assert_int_equal(crew_start(crew), 0);
		crew_nap_us(100000);
		killed_ns = crew_now_ns();
		kill(crew->rank[victim].pid, SIGKILL);
		assert_int_equal(crew_wait(crew, 60000, victim), 0);
		(void)snprintf(name, sizeof(name), "rank %d ", victim);
		for (int rank = 0; rank < victim; rank++)
			if (crew->rank[rank].status != TUTTI_EPEER ||
			    crew->rank[rank].failed_ns - killed_ns > 20000000000 ||
			    !strstr(crew->rank[rank].text, name))
				fail_msg("way %d over %s, rank %d of %d: status %d, %s", way,
					 transports[i % 2], rank, n, crew->rank[rank].status,
					 crew->rank[rank].text);
		crew_free(crew);
	}
}

/* -- Fork -------------------------------------------------------------------------------- */

static tutti_status fork_child(struct crew *crew, int rank, tutti_comm_t comm)
{
	tutti_channel_t channel = NULL;
	tutti_status st = tutti_channel_create(comm, &channel);
	int got = -1, ended = 0;
	pid_t child;

	if (st != TUTTI_OK)
		return st;
	child = fork();
	if (child == 0) {
		st = tutti_message_send(channel, &rank, sizeof(rank), 0, 1);
		_exit(st == TUTTI_EUSAGE && tutti_channel_destroy(channel) == TUTTI_EUSAGE ? 0 : 1);
	}
	if (child < 0 || waitpid(child, &ended, 0) != child || ended != 0)
		return TUTTI_EINTERNAL;
	st = tutti_message_send(channel, &rank, sizeof(rank), (rank + 1) % crew->n, 1);
	if (st == TUTTI_OK)
		st = tutti_message_recv(channel, &got, sizeof(got), TUTTI_ANY_SOURCE, 1, NULL);
	if (st == TUTTI_OK && got != (rank + crew->n - 1) % crew->n)
		st = TUTTI_EINTERNAL;
	if (st == TUTTI_OK)
		st = tutti_channel_destroy(channel);
	atomic_store(&crew->stop, 1);
	return st;
}

static void a_child_is_refused(void **state)
{
	(void)state;
	run(2, "shm,self", fork_child, NULL);
	run(2, "tcp,self", fork_child, NULL);
}

/* -- Without memory ------------------------------------------------------------------------ */

/* The last rank cannot make its channel, and the others hear so there, or when they wait for a message
 * from that rank. */
static tutti_status create_in_vain(tutti_comm_t comm, int rank, int n, const char *fault)
{
	tutti_channel_t channel = NULL;
	tutti_status st;
	char byte;

	tti_fault_set(rank == n - 1 ? fault : NULL);
	st = tutti_channel_create(comm, &channel);
	tti_fault_set(NULL);
	if (rank == n - 1)
		return st == TUTTI_ENOMEM ? TUTTI_OK : TUTTI_EINTERNAL;
	if (st == TUTTI_OK)
		st = tutti_message_recv(channel, &byte, 1, n - 1, 1, NULL);
	(void)tutti_channel_destroy(channel);
	return st == TUTTI_EPEER && strstr(tutti_last_error(comm), "could not make its channel")
		       ? TUTTI_OK
		       : TUTTI_EINTERNAL;
}

/* The first allocation, and the last; not "mem:1", which might be the one of another thread. The communicator
 * is as it was. */
static tutti_status without_memory(struct crew *crew, int rank, tutti_comm_t comm)
{
	tutti_status st = create_in_vain(comm, rank, crew->n, "core.channel:1");

	if (st == TUTTI_OK)
		st = create_in_vain(comm, rank, crew->n, "core.channel:2");
	return st == TUTTI_OK ? exchange(crew, rank, comm) : st;
}

static void all_hear_of_a_rank_without_memory(void **state)
{
	(void)state;
	run(3, "shm,self", without_memory, NULL);
	run(3, "tcp,self", without_memory, NULL);
}

/* -- Without a word -------------------------------------------------------------------------- */

/* How rank 1 waits, and whether rank 0 ends or destroys its communicator alone. */
enum { RECEIVING, PROBING, DESTROYING, NWAITS };
enum { HAS_CHANNEL = 2 }; /* as `ready` of a rank */
static int wait_way;
static bool ends;

static bool is_stopped(pid_t pid)
{
	char path[64], state = 0;
	FILE *file;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	file = fopen(path, "r");
	if (!file)
		return false;
	if (fscanf(file, "%*d %*s %c", &state) != 1)
		state = 0;
	(void)fclose(file);
	return state == 'T';
}

/* More than its link holds, to a rank that is stopped until this one has left. */
static tutti_status leave_silently(struct crew *crew, tutti_comm_t child, tutti_channel_t channel)
{
	tutti_status st = TUTTI_OK;
	static int values[200];
	tutti_request_t request;

	atomic_store(&crew->rank[0].ready, HAS_CHANNEL);
	while (!is_stopped(crew->rank[1].pid))
		crew_nap_us(1000);
	for (int i = 0; i < 200 && st == TUTTI_OK; i++) {
		values[i] = i;
		st = tutti_message_isend(channel, &values[i], sizeof(values[i]), 1, 5, &request);
	}
	if (st == TUTTI_OK)
		st = tutti_comm_destroy(child);
	(void)tutti_channel_destroy(channel);
	if (ends)
		atomic_store(&crew->stop, 1);
	kill(crew->rank[1].pid, SIGCONT);
	while (!atomic_load(&crew->stop))
		crew_nap_us(1000);
	return st;
}

static tutti_status wait_for_the_silent(struct crew *crew, int rank, tutti_comm_t comm)
{
	tutti_channel_t channel = NULL;
	tutti_comm_t child;
	tutti_status st = tutti_comm_dup(comm, &child, NULL);
	int got = -1, want = 0;

	if (st == TUTTI_OK)
		st = tutti_channel_create(child, &channel);
	if (st != TUTTI_OK)
		return st;
	if (rank == 0)
		return leave_silently(crew, child, channel);
	/* What this rank owes the other one is not to stop with it. */
	while (atomic_load(&crew->rank[0].ready) != HAS_CHANNEL)
		crew_nap_us(1000);
	raise(SIGSTOP);
	while (wait_way == RECEIVING && st == TUTTI_OK) {
		st = tutti_message_recv(channel, &got, sizeof(got), 0, 5, NULL);
		if (st == TUTTI_OK && got != want++)
			st = TUTTI_EINTERNAL;
	}
	if (wait_way == PROBING)
		st = tutti_message_probe(channel, 0, 6, -1, NULL);
	else if (wait_way == DESTROYING)
		st = tutti_channel_destroy(channel);
	if (wait_way != DESTROYING)
		(void)tutti_channel_destroy(channel);
	atomic_store(&crew->stop, 1);
	st = st == TUTTI_EPEER && strstr(tutti_last_error(child), "has ended its communicator")
		     ? TUTTI_OK
		     : TUTTI_EINTERNAL;
	(void)tutti_comm_destroy(child);
	return st;
}

static void a_rank_that_was_not_told_ends(void **state)
{
	(void)state;
	for (int i = 0; i < 2 * NWAITS; i++) {
		wait_way = i / 2;
		ends = i % 2;
		run(2, "shm,self", wait_for_the_silent, NULL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(results),
		cmocka_unit_test(deaths),
		cmocka_unit_test(a_child_is_refused),
		cmocka_unit_test(all_hear_of_a_rank_without_memory),
		cmocka_unit_test(a_rank_that_was_not_told_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
