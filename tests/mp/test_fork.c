/* SPDX-License-Identifier: BSD-3-Clause */
/* Processes that ranks fork: they cannot use the communicator, do not disturb it, and do not hide that
 * their rank has died. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/crew.h"
#include "tutti/insight.h"

#define N       3
#define FORKS   1                    /* the rank that forks */
#define SOON_NS INT64_C(10000000000) /* a death is known within milliseconds */
#define WAIT_MS 60000

static struct shared {
	_Atomic int64_t died_ns;
	_Atomic int is_over;
	_Atomic int has_forked; /* once per life of the crew */
	int refused;
	char text[512];
} * shared;

/* Each call is an error that names both processes. */
static void refuse_at(int line, tutti_status status)
{
	char parent[64], child[64];

	snprintf(parent, sizeof(parent), "was made by process %d,", (int)getppid());
	snprintf(child, sizeof(child), "this is process %d,", (int)getpid());
	if (status == TUTTI_EUSAGE && strstr(tutti_last_error(NULL), parent) &&
	    strstr(tutti_last_error(NULL), child))
		shared->refused++;
	else if (!*shared->text)
		snprintf(shared->text, sizeof(shared->text), "line %d: %s: %s", line,
			 tutti_status_name(status), tutti_last_error(NULL));
}

#define refuse(status) refuse_at(__LINE__, status)

static tutti_status sum(tutti_comm_t comm)
{
	float a = 1, b = 0;
	tutti_status st = tutti_all_reduce(&a, &b, 1, TUTTI_FLOAT32, TUTTI_SUM, comm, NULL);

	return st == TUTTI_OK && b != N ? TUTTI_EINTERNAL : st;
}

/* What a rank has when it forks: work is queued on the stream, for as long as the other ranks do not
 * come, so that all that waits for it would wait for ever in the child. */
struct things {
	tutti_comm_t comm;
	tutti_stream_t stream;
	tutti_event_t event;
	tutti_persistent_t plan;
	tutti_window_t window;
	tutti_reg_t reg;
	void *memory;
	tutti_op op;
	float a, b, c, d;
};

static void custom(void *inout, const void *in, size_t count, tutti_type type, void *arg)
{
	(void)in;
	(void)inout;
	(void)count;
	(void)type;
	(void)arg;
}

/* Handles that would be written to. */
static struct {
	tutti_comm_t comm;
	tutti_window_t window;
	tutti_persistent_t plan;
	tutti_reg_t reg;
	tutti_op op;
	void *memory;
	struct tutti_call_report report;
	char *text;
	const char *name;
	struct tutti_lane lane;
	tutti_ping_t ping;
	tutti_status status;
	int n;
} out;

static void told(tutti_status status, void *arg)
{
	(void)status;
	(void)arg;
}

static void use_communicator(struct things *t)
{
	const tutti_call call = TUTTI_CALL_INIT;

	refuse(tutti_all_reduce(&t->a, &t->b, 1, TUTTI_FLOAT32, TUTTI_SUM, t->comm, NULL));
	refuse(tutti_all_reduce(&t->a, &t->b, 1, TUTTI_FLOAT32, TUTTI_SUM, t->comm, t->stream));
	refuse(tutti_send(&t->a, 1, TUTTI_FLOAT32, 0, t->comm, NULL));
	refuse(tutti_send_recv(&t->a, 1, 0, &t->b, 1, 0, TUTTI_FLOAT32, t->comm, NULL));
	refuse(tutti_comm_count(t->comm, &out.n));
	refuse(tutti_comm_rank(t->comm, &out.n));
	refuse(tutti_comm_get_async_error(t->comm, &out.status));
	refuse(tutti_comm_last_call(t->comm, &out.report));
	refuse(tutti_comm_plan(t->comm, 0, &out.text));
	refuse(tutti_comm_reach(t->comm, &out.text));
	refuse(tutti_comm_transport(t->comm, 0, &out.name));
	refuse(tutti_comm_lanes(t->comm, 0, &out.lane, 1, &out.n));
	refuse(tutti_ping(t->comm, 0, 1, NULL, &out.ping));
	refuse(tutti_comm_dup(t->comm, &out.comm, NULL));
	refuse(tutti_comm_split(t->comm, 0, 0, &out.comm, NULL));
	refuse(tutti_comm_create_group(t->comm, &out.n, 1, 0, &out.comm, NULL));
	refuse(tutti_comm_shrink(t->comm, NULL, 0, &out.comm, NULL, TUTTI_SHRINK_FAILED));
	refuse(tutti_comm_grow(t->comm, N + 1, NULL, -1, &out.comm, NULL));
	refuse(tutti_mem_alloc(&out.memory, 100, t->comm));
	refuse(tutti_mem_free(t->memory, t->comm));
	refuse(tutti_register(t->comm, &t->a, sizeof(t->a), &out.reg));
	refuse(tutti_deregister(t->comm, t->reg));
	refuse(tutti_op_create_premul_sum(&out.op, &t->a, TUTTI_FLOAT32, TUTTI_SCALAR_NOW,
					  t->comm));
	refuse(tutti_op_create(&out.op, custom, NULL, 1, t->comm));
	refuse(tutti_op_destroy(t->op, t->comm));
	refuse(tutti_window_create(t->comm, NULL, 0, &out.window));
	refuse(tutti_persistent_create(&call, t->comm, &out.plan));
	refuse(tutti_comm_finalize(t->comm));
	refuse(tutti_comm_revoke(t->comm));
}

static void use_the_rest(struct things *t)
{
	refuse(tutti_stream_query(t->stream));
	refuse(tutti_stream_synchronize(t->stream));
	refuse(tutti_stream_wait_event(t->stream, t->event));
	refuse(tutti_stream_call(t->stream, told, NULL));
	refuse(tutti_event_record(t->event, t->stream));
	refuse(tutti_event_query(t->event));
	refuse(tutti_event_synchronize(t->event));
	refuse(tutti_persistent_start(t->plan, NULL));
	refuse(tutti_persistent_start(t->plan, t->stream));
	refuse(tutti_persistent_wait(t->plan));
	refuse(tutti_put(t->window, 0, 0, &t->a, sizeof(t->a), NULL));
	refuse(tutti_get(t->window, 0, 0, &t->a, sizeof(t->a), NULL));
	refuse(tutti_signal(t->window, 0, t->stream));
	refuse(tutti_wait_signal(t->window, 0, 1, NULL));
	refuse(tutti_window_flush(t->window, -1, NULL));
	/* The group that was open: it is not the child's, and its calls are not run. */
	refuse(tutti_group_end());
}

static void destroy_all(struct things *t)
{
	refuse(tutti_event_destroy(t->event));
	refuse(tutti_persistent_destroy(t->plan));
	refuse(tutti_window_destroy(t->window));
	refuse(tutti_stream_destroy(t->stream));
	refuse(tutti_comm_abort(t->comm));
	refuse(tutti_comm_destroy(t->comm));
}

#define REFUSED (29 + 16 + 6)

static tutti_status make_things(struct things *t)
{
	tutti_call call = TUTTI_CALL_INIT;
	tutti_status st;

	call.send = &t->a;
	call.recv = &t->b;
	call.count = 1;
	st = tutti_stream_create(&t->stream);
	if (st == TUTTI_OK)
		st = tutti_event_create(&t->event);
	if (st == TUTTI_OK)
		st = tutti_mem_alloc(&t->memory, 100, t->comm);
	if (st == TUTTI_OK)
		st = tutti_register(t->comm, &t->a, sizeof(t->a), &t->reg);
	if (st == TUTTI_OK)
		st = tutti_op_create(&t->op, custom, NULL, 1, t->comm);
	if (st == TUTTI_OK)
		st = tutti_persistent_create(&call, t->comm, &t->plan);
	return st;
}

static tutti_status queue_on(struct things *t)
{
	tutti_status st = tutti_persistent_start(t->plan, t->stream);

	if (st == TUTTI_OK)
		st = tutti_put(t->window, 0, 0, &t->a, sizeof(t->a), t->stream);
	return st == TUTTI_OK ? tutti_event_record(t->event, t->stream) : st;
}

static tutti_status end_things(struct things *t)
{
	tutti_status st = tutti_event_synchronize(t->event);

	if (st == TUTTI_OK)
		st = tutti_persistent_destroy(t->plan);
	if (st == TUTTI_OK)
		st = tutti_event_destroy(t->event);
	if (st == TUTTI_OK)
		st = tutti_stream_destroy(t->stream);
	if (st == TUTTI_OK)
		st = tutti_op_destroy(t->op, t->comm);
	if (st == TUTTI_OK)
		st = tutti_deregister(t->comm, t->reg);
	if (st == TUTTI_OK)
		st = tutti_mem_free(t->memory, t->comm);
	return st == TUTTI_OK && (t->b != N || t->d != N) ? TUTTI_EINTERNAL : st;
}

/* With a group open. What hangs in the child ends it, and the parent goes on. */
static tutti_status fork_in_a_group(struct things *t)
{
	tutti_status st = tutti_group_start();
	pid_t pid;

	if (st == TUTTI_OK)
		st = tutti_all_reduce(&t->c, &t->d, 1, TUTTI_FLOAT32, TUTTI_SUM, t->comm, NULL);
	pid = fork();
	if (pid == 0) {
		alarm(WAIT_MS / 2000);
		use_communicator(t);
		use_the_rest(t);
		destroy_all(t);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	shared->has_forked = 1;
	return st == TUTTI_OK ? tutti_group_end() : st;
}

static tutti_status a_child_uses_it(struct crew *crew, int rank, tutti_comm_t comm)
{
	const int64_t limit = crew_now_ns() + (int64_t)WAIT_MS * 1000000;
	struct things t = { .comm = comm, .a = 1, .c = 1 };
	float *memory = NULL;
	tutti_status st = tutti_mem_alloc((void **)&memory, sizeof(*memory), comm);

	if (st == TUTTI_OK)
		st = tutti_window_create(comm, memory, sizeof(*memory), &t.window);
	if (st == TUTTI_OK && rank == FORKS) {
		st = make_things(&t);
		if (st == TUTTI_OK)
			st = queue_on(&t);
		if (st == TUTTI_OK)
			st = fork_in_a_group(&t);
		if (st == TUTTI_OK)
			st = end_things(&t);
	} else {
		while (!shared->has_forked && crew_now_ns() < limit)
			crew_nap_us(1000);
		for (int i = 0; i < 2 && st == TUTTI_OK; i++)
			st = sum(comm);
	}
	if (st == TUTTI_OK)
		st = tutti_window_destroy(t.window);
	if (st == TUTTI_OK && rank == 0 && *memory != 1)
		st = TUTTI_EINTERNAL;
	if (st == TUTTI_OK)
		st = tutti_mem_free(memory, comm);
	crew->stop = 1; /* all are in their last call, or past it */
	return st;
}

static void children_are_told(void **state)
{
	struct crew *crew = crew_create(N, *state, a_child_uses_it);

	memset(shared, 0, sizeof(*shared));
	assert_int_equal(crew_start(crew), 0);
	assert_int_equal(crew_wait(crew, WAIT_MS, -1), 0);
	for (int rank = 0; rank < N; rank++)
		if (crew->rank[rank].status != TUTTI_OK)
			fail_msg("rank %d: %s", rank, crew->rank[rank].text);
	assert_string_equal(shared->text, "");
	assert_int_equal(shared->refused, REFUSED);
	crew_free(crew);
}

/* The child keeps every file of its parent open until the others have noticed. */
static tutti_status die_with_a_child(struct crew *crew, int rank, tutti_comm_t comm)
{
	const int64_t limit = crew_now_ns() + (int64_t)WAIT_MS * 1000000;

	(void)crew;
	if (rank == FORKS && sum(comm) == TUTTI_OK) {
		if (fork() == 0) {
			while (!shared->is_over && crew_now_ns() < limit)
				crew_nap_us(1000);
			_exit(0);
		}
		shared->died_ns = crew_now_ns();
		kill(getpid(), SIGKILL);
	}
	return sum(comm);
}

static void children_do_not_hide_a_death(void **state)
{
	struct crew *crew = crew_create(N, *state, die_with_a_child);

	memset(shared, 0, sizeof(*shared));
	assert_int_equal(crew_start(crew), 0);
	assert_int_equal(crew_wait(crew, WAIT_MS, FORKS), 0);
	shared->is_over = 1;
	for (int rank = 0; rank < N; rank++) {
		if (rank == FORKS)
			continue;
		assert_int_equal(crew->rank[rank].status, TUTTI_EPEER);
		if (!strstr(crew->rank[rank].text, "rank 1"))
			fail_msg("rank %d: %s", rank, crew->rank[rank].text);
		assert_true(crew->rank[rank].failed_ns - shared->died_ns < SOON_NS);
	}
	crew_free(crew);
}

int main(void)
{
	static char shm[] = "shm", tcp[] = "tcp";
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_prestate(children_are_told, shm),
		cmocka_unit_test_prestate(children_are_told, tcp),
		cmocka_unit_test_prestate(children_do_not_hide_a_death, shm),
		cmocka_unit_test_prestate(children_do_not_hide_a_death, tcp),
	};

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	return shared == MAP_FAILED ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
