/* SPDX-License-Identifier: BSD-3-Clause */
/* What can go wrong while ranks find each other. */
#include "ranks.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "boot/init/id.h"
#include "boot/net/auth.h"
#include "boot/net/iface.h"
#include "boot/net/sock.h"
#include "boot/net/wire.h"
#include "boot/watch/watch.h"
#include "support/port.h"

#define MOST 16

struct stranger {
	_Atomic uint16_t ports[MOST + 1];
	_Atomic int nports;
	_Atomic int stop;
	pthread_barrier_t met;
};

struct job {
	tutti_unique_id ids[4];
	int nids;
	int64_t timeout_ms;
	_Atomic int stop;
	bool rounds; /* exchange something once connected */
	struct stranger *stranger;
	unsigned absent; /* a bit per rank that does not come   */
	int nranks;
	struct tti_boot **local;
};

/* One rank's questions to all others. */
struct talk {
	int rank;
	_Atomic int answers[MOST];
};

static void on_lost(void *self, const struct tti_failure *failure)
{
	(void)self;
	(void)failure;
}

static void on_ask(void *self, struct tti_call *out)
{
	out->seq = (uint64_t)((struct talk *)self)->rank;
}

static void on_answer(void *self, int peer, const struct tti_call *call)
{
	struct talk *talk = self;

	talk->answers[peer] = call && call->seq == (uint64_t)peer ? 1 : -1;
}

/* While strangers knock at all doors, each rank reaches each other one. */
static tutti_status meet_all(struct rank *rank, struct stranger *stranger)
{
	const struct tti_sock *sock = (const struct tti_sock *)rank->boot;
	struct talk talk = { .rank = rank->rank };
	const struct tti_watch_events events = { &talk, on_lost, on_ask, on_answer, NULL };
	bool good = true;

	stranger->ports[1 + rank->rank] = ntohs(sock->cards[rank->rank].port);
	stranger->nports++;
	TTI_TRY(tti_boot_all_gather(rank->boot, NULL, 0));
	TTI_TRY(tti_watch_start(rank->boot, &events));
	for (int far = 1; far < rank->nranks; far++) {
		const int peer = (rank->rank + far) % rank->nranks;

		usleep(20000);
		for (int i = 0; i < 1000 && !talk.answers[peer]; i++) {
			tti_watch_ask(rank->boot, peer);
			usleep(10000);
		}
		good = good && talk.answers[peer] == 1;
	}
	/* Nobody leaves while another still asks. */
	pthread_barrier_wait(&stranger->met);
	tti_watch_stop(rank->boot);
	return good ? TUTTI_OK : tti_fail(TUTTI_EINTERNAL, "a rank did not answer as itself");
}

static tutti_status come(struct rank *rank)
{
	struct job *job = rank->arg;
	uint8_t blobs[MOST] = { 0 };
	tutti_status status = TUTTI_OK;

	rank->nranks = job->nranks;
	if (job->absent >> rank->rank & 1)
		return TUTTI_OK;
	if (job->local)
		rank->boot = job->local[rank->rank];
	else
		status = rank_connect(rank, job->ids, job->nids, job->timeout_ms, &job->stop);
	for (int i = 0; i < 20 && job->rounds && status == TUTTI_OK; i++)
		status = tti_boot_all_gather(rank->boot, blobs, 1);
	if (status == TUTTI_OK && job->stranger)
		status = meet_all(rank, job->stranger);
	tti_boot_close(rank->boot);
	return status;
}

/* All that come must fail like this within the time. */
static void must_fail(struct job *job, tutti_status status, const char *text, int64_t most_ms)
{
	struct rank_thread threads[MOST] = { 0 };
	const int64_t start_ns = tti_now_ns();

	ranks_start(threads, job->nranks, come, job);
	ranks_join(threads, job->nranks);
	assert_in_range((tti_now_ns() - start_ns) / TTI_NS_PER_MS, 0, most_ms);
	for (int i = 0; i < job->nranks; i++) {
		const struct rank *rank = &threads[i].rank;

		if (job->absent >> i & 1)
			continue;
		if (rank->status != status || !strstr(rank->text, text))
			fail_msg("rank %d: %s: %s", i, tutti_status_name(rank->status), rank->text);
	}
}

static void missing_ranks_are_named(void **state)
{
	struct job job = {
		.nids = 1, .timeout_ms = 4000, .nranks = 8, .absent = 1u << 3 | 1u << 5
	};

	(void)state;
	CHECK_OK(tti_boot_id_create(&job.ids[0]));
	must_fail(&job, TUTTI_ETIMEOUT, "ranks 3, 5 of 8 did not come", 30000);
	job = (struct job){ .nids = 1, .timeout_ms = 4000, .nranks = 2, .absent = 1 };
	CHECK_OK(tti_boot_id_create(&job.ids[0]));
	must_fail(&job, TUTTI_ETIMEOUT, "rank 0 of 2 did not come", 30000);
}

static void a_missing_rank_of_another_root_is_named(void **state)
{
	struct job job = { .nids = 3, .timeout_ms = 4000, .nranks = 12, .absent = 1u << 9 };

	(void)state;
	for (int i = 0; i < 3; i++)
		CHECK_OK(tti_boot_id_create(&job.ids[i]));
	must_fail(&job, TUTTI_ETIMEOUT, "rank 9 of 12 did not come", 30000);
}

static void set_stop(struct job *job, int after_ms, int *elapsed_ms)
{
	struct rank_thread threads[MOST] = { 0 };

	ranks_start(threads, job->nranks, come, job);
	usleep((useconds_t)after_ms * 1000);

	const int64_t start_ns = tti_now_ns();

	job->stop = 1;
	ranks_join(threads, job->nranks);
	*elapsed_ms = (int)((tti_now_ns() - start_ns) / TTI_NS_PER_MS);
	for (int i = 0; i < job->nranks; i++) {
		if (job->absent >> i & 1)
			continue;
		if (threads[i].rank.status != TUTTI_EABORTED &&
		    threads[i].rank.status != TUTTI_EPEER)
			fail_msg("rank %d: %s", i, threads[i].rank.text);
	}
}

static void the_stop_flag_is_obeyed(void **state)
{
	struct job job = { .nids = 1, .timeout_ms = 60000, .nranks = 6, .absent = 1u << 2 };
	int ms;

	(void)state;
	CHECK_OK(tti_boot_id_create(&job.ids[0]));
	set_stop(&job, 150, &ms);
	assert_in_range(ms, 0, 30000);

	/* Nobody serves this one. */
	job = (struct job){ .nids = 1, .timeout_ms = 60000, .nranks = 3, .absent = 1u << 0 };
	CHECK_OK(tti_boot_id_from_address("127.0.0.1:1", NULL, 0, &job.ids[0]));
	set_stop(&job, 100, &ms);
	assert_in_range(ms, 0, 30000);
}

static void a_local_rank_that_is_missing_is_named(void **state)
{
	struct tti_boot *boots[4];
	struct job job = { .nranks = 4, .rounds = true, .absent = 1u << 2, .local = boots };
	struct rank_thread threads[MOST] = { 0 };

	(void)state;
	CHECK_OK(tti_boot_local_create(4, &job.stop, boots));
	ranks_start(threads, 4, come, &job);
	usleep(50000);
	tti_boot_close(boots[2]);
	ranks_join(threads, 4);
	for (int i = 0; i < 4; i++)
		if (i != 2) {
			assert_int_equal(threads[i].rank.status, TUTTI_EPEER);
			assert_non_null(strstr(threads[i].rank.text, "rank 2 left"));
		}
}

/* -- By hand --------------------------------------------------------------------- */

static void by_hand(const char *format, const char *secret)
{
	struct job job = { .nids = 1, .timeout_ms = 60000, .nranks = 5, .rounds = true };
	char address[64];

	(void)snprintf(address, sizeof(address), format, port_for_later());
	for (int round = 0; round < 3; round++) {
		CHECK_OK(tti_boot_id_from_address(address, secret, 0, &job.ids[0]));
		ranks_run(5, come, &job);
	}
}

static void an_address_by_hand_serves(void **state)
{
	(void)state;
	by_hand("127.0.0.1:%u", "a secret that is long enough");
	by_hand("127.0.0.1:%u", NULL);
	by_hand("localhost:%u", "another one of that length");
}

static void ipv6_serves(void **state)
{
	const struct sockaddr_in6 to = { .sin6_family = AF_INET6, .sin6_addr = in6addr_loopback };
	const int fd = socket(AF_INET6, SOCK_STREAM, 0);

	(void)state;
	if (fd < 0 || bind(fd, (const struct sockaddr *)&to, sizeof(to)) < 0) {
		if (fd >= 0)
			close(fd);
		print_message("no IPv6 here\n");
		skip();
	}
	close(fd);
	by_hand("[::1]:%u", "a secret that is long enough");
}

static tutti_status come_with_two_secrets(struct rank *rank)
{
	struct job *job = rank->arg;
	struct job own = *job;
	tutti_status status;

	rank->nranks = job->nranks;
	if (rank->rank == 3) {
		own.ids[0] = job->ids[1];
		own.timeout_ms = job->timeout_ms / 2;
	}
	status = rank_connect(rank, own.ids, 1, own.timeout_ms, NULL);
	tti_boot_close(rank->boot);
	return status;
}

static void a_wrong_secret_does_not_get_in(void **state)
{
	struct rank_thread threads[4] = { 0 };
	struct job job = { .nranks = 4, .timeout_ms = 6000 };
	char address[64];

	(void)state;
	(void)snprintf(address, sizeof(address), "127.0.0.1:%u", port_for_later());
	CHECK_OK(tti_boot_id_from_address(address, "the right one, to be sure", 0, &job.ids[0]));
	CHECK_OK(tti_boot_id_from_address(address, "the wrong one, to be sure", 0, &job.ids[1]));
	ranks_start(threads, 4, come_with_two_secrets, &job);
	ranks_join(threads, 4);
	for (int i = 0; i < 4; i++) {
		/* Rank 3 may be sure of it before its time is over. */
		if (i < 3 || threads[i].rank.status != TUTTI_EMISMATCH)
			assert_int_equal(threads[i].rank.status, TUTTI_ETIMEOUT);
		assert_non_null(strstr(threads[i].rank.text,
				       i == 3 ? "another secret" : "rank 3 of 4 did not come"));
		if (i < 3)
			assert_non_null(strstr(threads[i].rank.text,
					       "one was turned away, it holds another secret"));
	}
}

/* -- Contradictions ------------------------------------------------------------------ */

static tutti_status come_as_told(struct rank *rank)
{
	const struct job *job = rank->arg;
	const int real = rank->rank;
	tutti_status status;

	rank->nranks = real == 2 && !job->absent ? 5 : 4;
	rank->rank = real == 2 && job->absent ? 1 : real;
	status = rank_connect(rank, job->ids, 1, 20000, NULL);
	tti_boot_close(rank->boot);
	return status;
}

static void contradictions_are_explained(void **state)
{
	(void)state;
	for (unsigned twice = 0; twice < 2; twice++) {
		struct rank_thread threads[4] = { 0 };
		struct job job = { .absent = twice };
		const char *text = twice ? "rank 1 came twice" : "others say";
		const int64_t start_ns = tti_now_ns();

		CHECK_OK(tti_boot_id_create(&job.ids[0]));
		ranks_start(threads, 4, come_as_told, &job);
		ranks_join(threads, 4);
		assert_in_range((tti_now_ns() - start_ns) / TTI_NS_PER_MS, 0, 50000);
		for (int i = 0; i < 4; i++) {
			assert_int_equal(threads[i].rank.status, TUTTI_EMISMATCH);
			assert_non_null(strstr(threads[i].rank.text, text));
		}
	}
}

/* -- Strangers ------------------------------------------------------------------------- */

static int knock(uint16_t port)
{
	const struct sockaddr_in to = { .sin_family = AF_INET,
					.sin_port = htons(port),
					.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

	if (fd >= 0 && connect(fd, (const struct sockaddr *)&to, sizeof(to)) < 0 &&
	    errno != EINPROGRESS) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Silence, garbage, halves of the handshake, other versions, other secrets. */
static void *bother(void *self)
{
	struct stranger *stranger = self;
	unsigned seed = 1;
	int open[400];
	int nopen = 0;

	memset(open, -1, sizeof(open));
	while (!stranger->stop) {
		const int fd = knock(stranger->ports[rand_r(&seed) % stranger->nports]);
		const uint8_t *data;
		uint8_t bytes[200];
		struct tti_auth auth;
		const uint8_t secret[32] = { 1 };

		if (fd < 0)
			continue;
		for (size_t i = 0; i < sizeof(bytes); i++)
			bytes[i] = (uint8_t)rand_r(&seed);
		tti_auth_init(&auth, true, TTI_AUTH_ROOT, secret, bytes, 16);

		const size_t n = tti_auth_output(&auth, &data);

		usleep(50);
		switch (rand_r(&seed) % 5) {
		case 0:
			(void)!send(fd, bytes, sizeof(bytes), MSG_NOSIGNAL);
			break;
		case 1:
			(void)!send(fd, "GET / HTTP/1.0\r\n\r\n", 18, MSG_NOSIGNAL);
			break;
		case 2:
			(void)!send(fd, data, n / 2, MSG_NOSIGNAL);
			break;
		case 3:
			(void)!send(fd, data, n, MSG_NOSIGNAL);
			(void)!send(fd, bytes, 48, MSG_NOSIGNAL);
			break;
		default:
			break;
		}
		/* Some stay open for long. */
		if (open[nopen % 400] >= 0)
			close(open[nopen % 400]);
		open[nopen++ % 400] = fd;
	}
	for (int i = 0; i < 400; i++)
		if (open[i] >= 0)
			close(open[i]);
	return NULL;
}

static void strangers_do_not_disturb(void **state)
{
	struct job job = { .nids = 1, .timeout_ms = 60000, .nranks = 8, .rounds = true };
	struct stranger stranger = { .nports = 1 };
	struct tti_id id;
	pthread_t thread;

	(void)state;
	CHECK_OK(tti_boot_id_create(&job.ids[0]));
	CHECK_OK(tti_id_decode(&job.ids[0], &id));
	stranger.ports[0] = ntohs(id.addrs[0].port);
	pthread_barrier_init(&stranger.met, NULL, 8);
	pthread_create(&thread, NULL, bother, &stranger);
	job.stranger = &stranger;
	usleep(200 * 1000);

	const int64_t start_ns = tti_now_ns();

	ranks_run(8, come, &job);
	assert_in_range((tti_now_ns() - start_ns) / TTI_NS_PER_MS, 0, 50000);
	stranger.stop = 1;
	pthread_join(thread, NULL);
	pthread_barrier_destroy(&stranger.met);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(missing_ranks_are_named),
		cmocka_unit_test(a_missing_rank_of_another_root_is_named),
		cmocka_unit_test(the_stop_flag_is_obeyed),
		cmocka_unit_test(a_local_rank_that_is_missing_is_named),
		cmocka_unit_test(an_address_by_hand_serves),
		cmocka_unit_test(ipv6_serves),
		cmocka_unit_test(a_wrong_secret_does_not_get_in),
		cmocka_unit_test(contradictions_are_explained),
		cmocka_unit_test(strangers_do_not_disturb),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
