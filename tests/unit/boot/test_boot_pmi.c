/* SPDX-License-Identifier: BSD-3-Clause */
/* The unique id through a launcher's key-value store: the wire protocol of PMI-1 against a server of
 * our own, which also answers what it should not; and what ranks make of the values. */
#include "ranks.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "boot/init/id.h"
#include "boot/pmi/pmi_event.h"
#include "boot/pmi/pmi_wire.h"

#define RANKS_MOST 9

static int64_t soon(void)
{
	return tti_deadline(60000);
}

/* -- A launcher ------------------------------------------------------------------------- */

struct launcher {
	int n;
	int server[RANKS_MOST], client[RANKS_MOST];
	char key[3][64], value[3][TTI_PMI_VALUE_MOST + 1];
	int nkeys, nwaiting, nfinished;
	unsigned random;
};

/* In pieces, as a stream may come. */
static void say(struct launcher *l, int rank, const char *line)
{
	const size_t length = strlen(line);

	for (size_t at = 0; at < length;) {
		size_t piece = 1 + (size_t)rand_r(&l->random) % 40;

		if (piece > length - at)
			piece = length - at;
		assert_int_equal(send(l->server[rank], line + at, piece, MSG_NOSIGNAL), piece);
		at += piece;
	}
}

static void keep(struct launcher *l, const char *line)
{
	assert_true(l->nkeys < 3);
	assert_int_equal(sscanf(line, "cmd=put kvsname=kvs_1 key=%63s value=%1023s",
				l->key[l->nkeys], l->value[l->nkeys]),
			 2);
	l->nkeys++;
}

static void give(struct launcher *l, int rank, const char *line)
{
	char key[64] = "", answer[2048] = "cmd=get_result rc=-1 msg=key_not_found\n";

	assert_int_equal(sscanf(line, "cmd=get kvsname=kvs_1 key=%63s", key), 1);
	for (int i = 0; i < l->nkeys; i++)
		if (strcmp(l->key[i], key) == 0)
			(void)snprintf(answer, sizeof(answer),
				       "cmd=get_result rc=0 msg=success value=%s\n", l->value[i]);
	say(l, rank, answer);
}

static void answer(struct launcher *l, int rank, const char *line)
{
	if (strncmp(line, "cmd=init ", 9) == 0) {
		say(l, rank, "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n");
	} else if (strcmp(line, "cmd=get_my_kvsname") == 0) {
		say(l, rank, "cmd=my_kvsname kvsname=kvs_1\n");
	} else if (strncmp(line, "cmd=put ", 8) == 0) {
		keep(l, line);
		say(l, rank, "cmd=put_result rc=0 msg=success\n");
	} else if (strcmp(line, "cmd=barrier_in") == 0) {
		if (++l->nwaiting < l->n)
			return;
		l->nwaiting = 0;
		for (int i = 0; i < l->n; i++)
			say(l, i, "cmd=barrier_out\n");
	} else if (strncmp(line, "cmd=get ", 8) == 0) {
		give(l, rank, line);
	} else {
		assert_string_equal(line, "cmd=finalize");
		say(l, rank, "cmd=finalize_ack\n");
		l->nfinished++;
	}
}

static void *serve(void *self)
{
	struct launcher *l = self;
	char line[RANKS_MOST][2048];
	size_t have[RANKS_MOST] = { 0 };

	while (l->nfinished < l->n) {
		struct pollfd fds[RANKS_MOST];

		for (int i = 0; i < l->n; i++)
			fds[i] = (struct pollfd){ .fd = l->server[i], .events = POLLIN };
		assert_true(poll(fds, (nfds_t)l->n, 60000) > 0);
		for (int i = 0; i < l->n; i++) {
			if (!fds[i].revents)
				continue;
			assert_int_equal(recv(l->server[i], line[i] + have[i], 1, 0), 1);
			if (line[i][have[i]++] != '\n')
				continue;
			line[i][have[i] - 1] = '\0';
			have[i] = 0;
			answer(l, i, line[i]);
		}
	}
	return NULL;
}

static tutti_status talk(struct rank *rank)
{
	struct launcher *l = rank->arg;
	struct tti_pmi_wire wire;
	char value[TTI_PMI_VALUE_MOST + 1], out[TTI_PMI_VALUE_MOST + 1];

	TTI_TRY(tti_pmi_wire_begin(&wire, l->client[rank->rank], soon()));
	for (int k = 0; k < 3; k++) {
		const struct tti_pmi_call call = {
			.key = k == 0   ? "a"
			       : k == 1 ? "b"
					: "c",
			.value = rank->rank == 0 ? value : NULL,
			.rank = rank->rank,
			.nranks = rank->nranks,
			.deadline_ns = soon(),
			.out = out,
			.out_size = sizeof(out),
		};

		/* The last one is as long as a value may be. */
		memset(value, 'x' + k, sizeof(value));
		value[k == 2 ? sizeof(value) - 1 : 10] = '\0';
		TTI_TRY(tti_pmi_wire_exchange(&wire, &call));
		if (rank->rank > 0)
			assert_string_equal(out, value);
	}
	tti_pmi_wire_finish(&wire, soon());
	return TUTTI_OK;
}

static void ranks_hear_what_rank_0_says(void **state)
{
	(void)state;
	for (int n = 1; n <= RANKS_MOST; n += 4) {
		struct launcher l = { .n = n, .random = (unsigned)n };
		pthread_t server;

		for (int i = 0; i < n; i++) {
			int pair[2];

			assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair),
					 0);
			l.server[i] = pair[0];
			l.client[i] = pair[1];
		}
		assert_int_equal(pthread_create(&server, NULL, serve, &l), 0);
		ranks_run(n, talk, &l);
		pthread_join(server, NULL);
		assert_int_equal(l.nfinished, n);
		for (int i = 0; i < n; i++) {
			close(l.server[i]);
			close(l.client[i]);
		}
	}
}

/* -- Answers that are wrong -------------------------------------------------------------- */

/* What rank 1 makes of all the answers at once, after which the launcher is gone, or silent. */
static tutti_status hear(const char *answers, size_t nbytes, bool is_gone, char *out, size_t size)
{
	const struct tti_pmi_call call = { .key = "k",
					   .rank = 1,
					   .nranks = 2,
					   .deadline_ns = is_gone ? soon() : tti_deadline(20),
					   .out = out,
					   .out_size = size };
	struct tti_pmi_wire wire;
	tutti_status st;
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(send(pair[0], answers, nbytes, 0), nbytes);
	/* It reads on, but says no more. */
	if (is_gone)
		shutdown(pair[0], SHUT_WR);
	st = tti_pmi_wire_begin(&wire, pair[1], call.deadline_ns);
	if (st == TUTTI_OK)
		st = tti_pmi_wire_exchange(&wire, &call);
	close(pair[0]);
	close(pair[1]);
	return st;
}

/* A launcher that answers whatever it is asked by the next line. */
struct script {
	const char *lines[4];
	int fd;
};

static void *recite(void *self)
{
	const struct script *script = self;
	char asked[2048];

	for (int i = 0; i < 4 && script->lines[i]; i++) {
		if (recv(script->fd, asked, sizeof(asked), 0) <= 0)
			break;
		if (send(script->fd, script->lines[i], strlen(script->lines[i]), MSG_NOSIGNAL) < 0)
			break;
	}
	shutdown(script->fd, SHUT_RDWR);
	return NULL;
}

static tutti_status follow(const struct script *given, char *out, size_t size)
{
	const struct tti_pmi_call call = { .key = "k",
					   .rank = 1,
					   .nranks = 2,
					   .deadline_ns = soon(),
					   .out = out,
					   .out_size = size };
	struct script script = *given;
	struct tti_pmi_wire wire;
	pthread_t thread;
	tutti_status st;
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	script.fd = pair[0];
	assert_int_equal(pthread_create(&thread, NULL, recite, &script), 0);
	st = tti_pmi_wire_begin(&wire, pair[1], soon());
	if (st == TUTTI_OK)
		st = tti_pmi_wire_exchange(&wire, &call);
	close(pair[1]);
	pthread_join(thread, NULL);
	close(pair[0]);
	return st;
}

#define INIT    "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1\n"
#define NAME    "cmd=my_kvsname kvsname=k\n"
#define BARRIER "cmd=barrier_out\n"
#define GOT     "cmd=get_result rc=0 value="
#define X64     "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
#define X256    X64 X64 X64 X64
#define X1024   X256 X256 X256 X256

static void wrong_answers_are_told(void **state)
{
	static const struct {
		struct script script;
		tutti_status status;
		const char *text;
	} table[] = {
		{ { .lines = { INIT, NAME, BARRIER, GOT "v msg=fine\n" } }, TUTTI_OK, "" },
		{ { .lines = { "\n" } }, TUTTI_EINVAL, "speaks no PMI-1" },
		{ { .lines = { "SSH-2.0-OpenSSH_9.2\n" } }, TUTTI_EINVAL, "speaks no PMI-1" },
		{ { .lines = { "cmd=response_to_init rc=-1 msg=no\n" } }, TUTTI_ESYS, "refused" },
		{ { .lines = { "cmd=response_to_init rc=0" } }, TUTTI_EPEER, "closed PMI_FD" },
		{ { .lines = { X1024 X1024 X1024 X1024 } }, TUTTI_EINVAL, "more than 4096 bytes" },
		{ { .lines = { INIT, "cmd=my_kvsname\n" } }, TUTTI_EINVAL, "no name" },
		{ { .lines = { INIT, "cmd=my_kvsname kvsname=" X256 "x\n" } },
		  TUTTI_EINVAL,
		  "no name" },
		{ { .lines = { INIT, NAME } }, TUTTI_EPEER, "cmd=barrier_in" },
		{ { .lines = { INIT, NAME, "cmd=barrier_out rc=1\n" } }, TUTTI_ESYS, "refused" },
		{ { .lines = { INIT, NAME, BARRIER, "cmd=get_result rc=-1 msg=none\n" } },
		  TUTTI_ESYS,
		  "msg=none" },
		{ { .lines = { INIT, NAME, BARRIER, "cmd=get_result rc=0\n" } },
		  TUTTI_EINVAL,
		  "no value of k" },
		{ { .lines = { INIT, NAME, BARRIER, GOT X1024 "\n" } },
		  TUTTI_EINVAL,
		  "no value of k" },
		{ { .lines = { INIT, NAME, BARRIER, BARRIER } }, TUTTI_EINVAL, "cmd=get_result" },
	};
	char out[TTI_PMI_VALUE_MOST + 1];

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
		const tutti_status st = follow(&table[i].script, out, sizeof(out));

		if (st != table[i].status || (st && !strstr(tti_error_text(), table[i].text)))
			fail_msg("answers %zu: %s: %s", i, tutti_status_name(st), tti_error_text());
		if (st == TUTTI_OK)
			assert_string_equal(out, "v");
	}
}

static void a_silent_launcher_is_waited_for_until_the_deadline(void **state)
{
	char out[8];

	(void)state;
	assert_int_equal(hear("", 0, false, out, sizeof(out)), TUTTI_ETIMEOUT);
	assert_non_null(strstr(tti_error_text(), "cmd=init"));
}

/* Good answers with bytes changed, cut off or doubled are good, or an error; under the sanitizers also
 * that nothing is read or written past an end. */
static void random_answers_do_no_harm(void **state)
{
	static const char good[] = INIT NAME BARRIER GOT X64 "\n";
	unsigned random = 5;
	int nright = 0;

	(void)state;
	for (int round = 0; round < 3000; round++) {
		char bytes[sizeof(good)], out[80];
		size_t n = sizeof(good) - 1;
		tutti_status st;

		memcpy(bytes, good, sizeof(good));
		for (int i = rand_r(&random) % 4; i > 0; i--)
			bytes[(size_t)rand_r(&random) % n] = (char)rand_r(&random);
		if (rand_r(&random) % 4 == 0)
			n = (size_t)rand_r(&random) % n;
		memset(out, 'y', sizeof(out));
		st = hear(bytes, n, true, out, sizeof(out) - 1);
		if (st == TUTTI_OK)
			assert_non_null(memchr(out, '\0', sizeof(out) - 1));
		if (n == sizeof(good) - 1 && memcmp(bytes, good, n) == 0)
			assert_int_equal(st, TUTTI_OK);
		nright += st == TUTTI_OK;
		assert_int_equal(out[sizeof(out) - 1], 'y');
	}
	assert_in_range(nright, 300, 2700);
}

static void a_variable_that_names_no_socket_is_refused(void **state)
{
	const struct tti_pmi_call call = { .key = "k", .rank = 1, .nranks = 2 };
	static const char *const bad[] = { "", "x", "-1", "7x", "99999999999", "1000000" };
	char text[16];
	int file;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		setenv("PMI_FD", bad[i], 1);
		assert_int_equal(tti_pmi_wire(&call), TUTTI_EUSAGE);
	}
	file = open("/dev/null", O_RDWR | O_CLOEXEC);
	(void)snprintf(text, sizeof(text), "%d", file);
	setenv("PMI_FD", text, 1);
	assert_int_equal(tti_pmi_wire(&call), TUTTI_EUSAGE);
	assert_non_null(strstr(tti_error_text(), "is no socket"));
	close(file);
	/* An address is as good then (core/init/launcher.c). */
	unsetenv("PMI_FD");
	assert_int_equal(tti_pmi_wire(&call), TUTTI_EUNSUPPORTED);
}

/* -- Values ------------------------------------------------------------------------------ */

/* A store of one process: what rank 0 has put last. */
static char stored[TTI_PMI_VALUE_MOST + 1];
static char stored_key[64];
static tutti_status store_status;

static tutti_status store(const struct tti_pmi_call *call)
{
	if (call->value) {
		(void)snprintf(stored, sizeof(stored), "%s", call->value);
		(void)snprintf(stored_key, sizeof(stored_key), "%s", call->key);
	} else {
		(void)snprintf(call->out, call->out_size, "%s", stored);
	}
	return store_status;
}

static void an_id_goes_through_the_store(void **state)
{
	tutti_unique_id made, got;
	char first_key[64];
	struct tti_id id;

	(void)state;
	store_status = TUTTI_OK;
	CHECK_OK(tti_pmi_share_id(store, 0, 2, 60000, &made));
	CHECK_OK(tti_pmi_share_id(store, 1, 2, 60000, &got));
	assert_memory_equal(&made, &got, sizeof(made));
	CHECK_OK(tti_id_decode(&got, &id));
	/* Each call has a key of its own: nobody gets the id of another communicator. */
	(void)snprintf(first_key, sizeof(first_key), "%s", stored_key);
	CHECK_OK(tti_pmi_share_id(store, 0, 2, 60000, &made));
	assert_string_not_equal(first_key, stored_key);
	assert_memory_not_equal(&made, &got, sizeof(made));
}

static void what_is_no_id_is_refused(void **state)
{
	static const char *const bad[] = { "",    "i",      "i00", "i0",          "izz",
					   "x00", "i" X256, "e0",  "i" X256 X256, X1024 };
	tutti_unique_id id;

	(void)state;
	store_status = TUTTI_OK;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		(void)snprintf(stored, sizeof(stored), "%s", bad[i]);
		assert_int_equal(tti_pmi_share_id(store, 1, 2, 60000, &id), TUTTI_EINVAL);
	}
	/* An id that was cut short: nothing of its secret is in the text. */
	(void)snprintf(stored, sizeof(stored), "i5455545449000000abcdef01" X256);
	assert_int_equal(tti_pmi_share_id(store, 1, 2, 60000, &id), TUTTI_EINVAL);
	assert_non_null(strstr(tti_error_text(), "\"i"));
	assert_null(strstr(tti_error_text(), "xx"));
	/* A text is what rank 0 says of its failure. */
	(void)snprintf(stored, sizeof(stored), "e6e6f20706f7274");
	assert_int_equal(tti_pmi_share_id(store, 1, 2, 60000, &id), TUTTI_EPEER);
	assert_non_null(strstr(tti_error_text(), "no port"));
	store_status = TUTTI_ETIMEOUT;
	assert_int_equal(tti_pmi_share_id(store, 1, 2, 60000, &id), TUTTI_ETIMEOUT);
}

/* -- What another thread ends ------------------------------------------------------------ */

static void *end_event(void *event)
{
	tti_pmi_event_end(event, 7);
	return NULL;
}

static void an_end_is_waited_for_until_the_deadline(void **state)
{
	struct tti_pmi_event *event;
	pthread_t thread;
	int status = 0;

	(void)state;
	for (int round = 0; round < 50; round++) {
		event = tti_pmi_event_create();
		assert_non_null(event);
		assert_int_equal(pthread_create(&thread, NULL, end_event, event), 0);
		CHECK_OK(tti_pmi_event_wait(event, soon(), &status));
		assert_int_equal(status, 7);
		pthread_join(thread, NULL);
	}
	/* The end comes when nobody waits any more. */
	event = tti_pmi_event_create();
	assert_non_null(event);
	assert_int_equal(tti_pmi_event_wait(event, tti_deadline(10), &status), TUTTI_ETIMEOUT);
	tti_pmi_event_end(event, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranks_hear_what_rank_0_says),
		cmocka_unit_test(wrong_answers_are_told),
		cmocka_unit_test(a_silent_launcher_is_waited_for_until_the_deadline),
		cmocka_unit_test(random_answers_do_no_harm),
		cmocka_unit_test(a_variable_that_names_no_socket_is_refused),
		cmocka_unit_test(an_id_goes_through_the_store),
		cmocka_unit_test(what_is_no_id_is_refused),
		cmocka_unit_test(an_end_is_waited_for_until_the_deadline),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
