/* SPDX-License-Identifier: BSD-3-Clause */
#include "ranks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/call/args.h"
#include "core/device/parting.h"
#include "core/handle.h"
#include "gpu/cuda.h"
#include "gpu/cuda_memory.h"
#include "util/error.h"

/* -- Threads -------------------------------------------------------------------------- */

struct making {
	struct ranks *ranks;
	tutti_unique_id id;
	int rank, device;
	void (*fn)(tutti_comm_t comm, int rank);
};

static void *make_one(void *self)
{
	struct making *m = self;
	tutti_config config = TUTTI_CONFIG_INIT;

	config.device = m->device;
	m->ranks->status[m->rank] = tutti_comm_init_rank_config(
		&m->ranks->comm[m->rank], m->ranks->n, m->id, m->rank, &config);
	if (m->ranks->status[m->rank] != TUTTI_OK)
		(void)snprintf(m->ranks->text[m->rank], sizeof(m->ranks->text[0]), "%s",
			       tutti_last_error(NULL));
	return NULL;
}

static void *do_one(void *self)
{
	struct making *m = self;

	m->fn(m->ranks->comm[m->rank], m->rank);
	return NULL;
}

static void run(struct making *makings, int n, void *(*fn)(void *))
{
	pthread_t threads[RANKS_MOST];

	for (int rank = 0; rank < n; rank++)
		assert_int_equal(pthread_create(&threads[rank], NULL, fn, &makings[rank]), 0);
	for (int rank = 0; rank < n; rank++)
		assert_int_equal(pthread_join(threads[rank], NULL), 0);
}

void ranks_make(struct ranks *ranks, int n, const int *devices, bool may_fail)
{
	struct making makings[RANKS_MOST];
	tutti_unique_id id;

	assert_true(n <= RANKS_MOST);
	memset(ranks, 0, sizeof(*ranks));
	ranks->n = n;
	assert_int_equal(tutti_get_unique_id(&id), TUTTI_OK);
	for (int rank = 0; rank < n; rank++)
		makings[rank] = (struct making){
			.ranks = ranks, .id = id, .rank = rank, .device = devices[rank]
		};
	run(makings, n, make_one);
	for (int rank = 0; rank < n; rank++)
		if (ranks->status[rank] != ranks->status[0] ||
		    (ranks->status[rank] != TUTTI_OK && !may_fail))
			fail_msg("rank %d: %d, %s; rank 0: %d, %s", rank, ranks->status[rank],
				 ranks->text[rank], ranks->status[0], ranks->text[0]);
}

void ranks_end(struct ranks *ranks)
{
	for (int rank = 0; rank < ranks->n; rank++)
		if (ranks->comm[rank])
			assert_int_equal(tutti_comm_destroy(ranks->comm[rank]), TUTTI_OK);
}

void ranks_do(struct ranks *ranks, void (*fn)(tutti_comm_t comm, int rank))
{
	struct making makings[RANKS_MOST];

	for (int rank = 0; rank < ranks->n; rank++)
		makings[rank] = (struct making){ .ranks = ranks, .rank = rank, .fn = fn };
	run(makings, ranks->n, do_one);
}

struct tti_comm *ranks_inside(tutti_comm_t handle)
{
	struct tti_comm *comm = tti_handle_find(handle);

	assert_non_null(comm);
	tti_handle_leave(handle);
	return comm;
}

/* -- Lanes ------------------------------------------------------------------------------ */

tutti_status ranks_connect(struct tti_comm *comm)
{
	const struct tti_args args = { .coll = TUTTI_BARRIER };
	int32_t peers[RANKS_MOST];
	struct tti_device_need need = { .comm = comm, .args = &args, .peers = peers };

	for (int peer = 0; peer < comm->n; peer++)
		if (peer != comm->rank)
			peers[need.npeers++] = peer;
	tti_device_connect(&need, 1);
	return need.status;
}

static struct tti_dev_lane lane_of(const struct tti_comm *comm, int peer, uint32_t block,
				   bool is_send)
{
	const struct tti_device *device = comm->device;
	struct tti_dev_lane lane;

	assert_int_equal(tti_gpu_read(device->gpu, &lane,
				      device->lanes_at + (block * 2 * (uint64_t)device->n +
							  2 * (uint64_t)peer + is_send) *
								 sizeof(lane),
				      sizeof(lane)),
			 TUTTI_OK);
	return lane;
}

/* What a rank writes for another one, in each place of a lane. */
enum place { FULL, HEAD, SLOT, WORD, FREED };

static uint64_t value_of(int from, int to, uint32_t block, enum place place)
{
	return ((uint64_t)(from + 1) << 24 | (uint64_t)(to + 1) << 16 | block << 8 | place) + 7;
}

static void put(const struct tti_comm *comm, uint64_t at, uint64_t value)
{
	assert_int_equal(tti_gpu_write(comm->device->gpu, at, &value, sizeof(value)), TUTTI_OK);
}

static void expect(const struct tti_comm *comm, uint64_t at, uint64_t value)
{
	uint64_t found = 0;

	assert_int_equal(tti_gpu_read(comm->device->gpu, &found, at, sizeof(found)), TUTTI_OK);
	assert_true(found == value);
}

/* visit(comm, at, value) for all places of lanes that this rank writes, or that others write. */
static void visit(const struct tti_comm *comm, bool own,
		  void (*fn)(const struct tti_comm *, uint64_t, uint64_t))
{
	for (int peer = 0; peer < comm->n; peer++)
		for (uint32_t block = 0; block < comm->devices->shape.nblocks; block++) {
			const int from = own ? comm->rank : peer, to = own ? peer : comm->rank;
			struct tti_dev_lane data, back;

			if (comm->device->peers[peer].way != TTI_DEVICE_MAPPED)
				continue;
			data = lane_of(comm, peer, block, own);
			back = lane_of(comm, peer, block, !own);
			fn(comm, data.full, value_of(from, to, block, FULL));
			fn(comm, data.heads, value_of(from, to, block, HEAD));
			fn(comm, data.slots + (uint64_t)data.nslots * data.slot_bytes - 8,
			   value_of(from, to, block, SLOT));
			if (data.words)
				fn(comm, data.words, value_of(from, to, block, WORD));
			fn(comm, back.freed, value_of(from, to, block, FREED));
		}
}

void ranks_write_lanes(const struct tti_comm *comm)
{
	visit(comm, true, put);
}

void ranks_look_at_lanes(const struct tti_comm *comm)
{
	visit(comm, false, expect);
}

void ranks_check_lanes(struct tti_comm *const *comms, int n)
{
	for (int rank = 0; rank < n; rank++)
		if (comms[rank]->device)
			ranks_write_lanes(comms[rank]);
	for (int rank = 0; rank < n; rank++)
		if (comms[rank]->device)
			ranks_look_at_lanes(comms[rank]);
}

/* Whoever marks the communicator as failed does both under the lock. */
bool ranks_are_stopped(struct tti_comm *comm)
{
	bool stopped;

	pthread_mutex_lock(&comm->lock);
	stopped = __atomic_load_n(&comm->device->control->stop, __ATOMIC_ACQUIRE) != 0;
	pthread_mutex_unlock(&comm->lock);
	return stopped;
}

tutti_status ranks_write_to(const struct tti_comm *comm, int peer)
{
	const struct tti_dev_lane in = lane_of(comm, peer, 0, false);
	const uint64_t freed = 1;

	return tti_gpu_write(comm->device->gpu, in.freed, &freed, sizeof(freed));
}

/* -- Leaks and children --------------------------------------------------------------------- */

void ranks_assert_nothing_held(void)
{
	struct tti_gpu_held held;

	tti_gpu_held(&held);
	assert_int_equal(held.gpus, 0);
	assert_int_equal(held.memories, 0);
	assert_int_equal(held.maps, 0);
	assert_int_equal(held.fds, 0);
	assert_int_equal(held.pinned, 0);
	assert_int_equal(held.streams, 0);
	assert_int_equal(held.events, 0);
}

static void set_variables(const char *const *variables)
{
	char name[64];

	for (; *variables; variables++) {
		const char *value = strchr(*variables, '=');

		assert_non_null(value);
		(void)snprintf(name, sizeof(name), "%.*s", (int)(value - *variables), *variables);
		assert_int_equal(setenv(name, value + 1, 1), 0);
	}
}

static void (*child_fn)(void);

static void run_child(void **state)
{
	(void)state;
	child_fn();
}

/* A group of its own, which a failed assertion leaves. */
static _Noreturn void child(void (*fn)(void), const char *const *variables)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(run_child) };

	set_variables(variables);
	child_fn = fn;
	_exit(cmocka_run_group_tests_name("child", tests, NULL, NULL) == 0 ? 0 : 1);
}

void in_child(void (*fn)(void), const char *const *variables)
{
	const pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0)
		child(fn, variables);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		fail_msg("the child ended with status 0x%x", (unsigned)status);
}

/* -- Processes -------------------------------------------------------------------------------- */

struct shared {
	_Atomic int has_id, met, dead;
	int n;
	tutti_unique_id id;
};

/* Ten times what the slowest machine needs. */
#define MEET_MS 120000

void process_meet(const struct process *process)
{
	struct shared *shared = process->shared;
	const int turn = atomic_fetch_add(&shared->met, 1) / shared->n;

	for (int ms = 0; ms < MEET_MS; ms++) {
		if (atomic_load(&shared->met) >= (turn + 1) * shared->n ||
		    (atomic_load(&shared->dead) &&
		     atomic_load(&shared->met) >= (turn + 1) * (shared->n - 1)))
			return;
		(void)usleep(1000);
	}
	fail_msg("rank %d waits for the others", process->rank);
}

void process_die(const struct process *process)
{
	atomic_store(&process->shared->dead, 1);
	(void)raise(SIGKILL);
}

static const struct processes *running;
static struct process self;

static void get_id(struct shared *shared, int rank)
{
	if (rank == 0) {
		assert_int_equal(tutti_get_unique_id(&shared->id), TUTTI_OK);
		atomic_store(&shared->has_id, 1);
	}
	for (int ms = 0; ms < MEET_MS && !atomic_load(&shared->has_id); ms++)
		(void)usleep(1000);
}

static bool holds_memory(void)
{
	struct tti_gpu_held held;

	tti_gpu_held(&held);
	return held.memories > 0;
}

static void be_rank(void)
{
	tutti_config config = TUTTI_CONFIG_INIT;

	get_id(self.shared, self.rank);
	config.device = running->devices[self.rank];
	if (tutti_comm_init_rank_config(&self.comm, running->n, self.shared->id, self.rank,
					&config) != TUTTI_OK)
		fail_msg("rank %d: %s", self.rank, tutti_last_error(NULL));
	self.inside = ranks_inside(self.comm);
	running->fn(&self);
	(void)tutti_comm_destroy(self.comm);
	/* What others map is held until they have unmapped it. */
	for (int ms = 0; ms < MEET_MS && holds_memory(); ms++) {
		tti_parting_free();
		(void)usleep(1000);
	}
	ranks_assert_nothing_held();
}

static pid_t start(const struct processes *processes, struct shared *shared, int rank)
{
	const pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid > 0)
		return pid;
	if (processes->own_variable) {
		char value[16];

		(void)snprintf(value, sizeof(value), "%d", rank);
		assert_int_equal(setenv(processes->own_variable, value, 1), 0);
	}
	running = processes;
	self = (struct process){ .rank = rank, .shared = shared };
	child(be_rank, processes->variables);
}

void processes_run(const struct processes *processes)
{
	struct shared *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pids[RANKS_MOST];
	int status;

	assert_true(shared != MAP_FAILED);
	shared->n = processes->n;
	for (int rank = 0; rank < processes->n; rank++)
		pids[rank] = start(processes, shared, rank);
	for (int rank = 0; rank < processes->n; rank++) {
		assert_int_equal(waitpid(pids[rank], &status, 0), pids[rank]);
		if (rank == processes->victim ? !WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL
					      : !WIFEXITED(status) || WEXITSTATUS(status) != 0)
			fail_msg("rank %d ended with status 0x%x", rank, (unsigned)status);
	}
	(void)munmap(shared, sizeof(*shared));
}
