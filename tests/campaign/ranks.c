/* SPDX-License-Identifier: BSD-3-Clause */
#include "campaign/ranks.h"

#include <dirent.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/* So long a rank waits for one that died before it had come, which nobody can see. */
#define BOOT_TIMEOUT "6000"
/* A rank that served the others at init goes on with that for a while. */
#define LEAK_TRIES   3000
#define LEAK_NAP_US  20000
/* Calls between two of the common questions whether it is enough. */
#define ASK_EVERY    4

const char *const world_names[NWORLDS] = { "shm", "tcp", "both", "one-core" };

/* splitmix64 */
uint64_t draw(uint64_t *state, uint64_t below)
{
	uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return (x ^ x >> 31) % below;
}

int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void nap_us(int us)
{
	const struct timespec nap = { us / 1000000, (long)(us % 1000000) * 1000 };

	nanosleep(&nap, NULL);
}

/* -- What must not be left ------------------------------------------------------------- */

static int count_entries(const char *path)
{
	DIR *dir = opendir(path);
	int n = 0;

	while (dir && readdir(dir))
		n++;
	if (dir)
		closedir(dir);
	return n;
}

/* Mapped files without a name: segments of the library. */
static int count_segments(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];
	int n = 0;

	while (maps && fgets(line, sizeof(line), maps))
		n += strstr(line, "memfd:") != NULL;
	if (maps)
		fclose(maps);
	return n;
}

struct held held_now(void)
{
	return (struct held){ count_entries("/proc/self/fd"), count_entries("/proc/self/task"),
			      count_segments() };
}

struct held held_first(void)
{
	void *ptr = NULL;

	if (tutti_mem_alloc(&ptr, 1, NULL) == TUTTI_OK)
		(void)!tutti_mem_free(ptr, NULL);
	return held_now();
}

bool held_no_more(const struct held *before, char *buf, size_t size)
{
	struct held now;

	for (int i = 0; i < LEAK_TRIES; i++) {
		now = held_now();
		if (now.fds <= before->fds && now.threads <= before->threads &&
		    now.segments <= before->segments)
			return true;
		nap_us(LEAK_NAP_US);
	}
	snprintf(buf, size, "%d descriptors, %d threads, %d segments where there were %d, %d, %d",
		 now.fds, now.threads, now.segments, before->fds, before->threads,
		 before->segments);
	return false;
}

/* -- A rank ---------------------------------------------------------------------------- */

static void exit_at_once(int signal)
{
	(void)signal;
	_exit(0);
}

void world_enter(enum world world, int rank)
{
	cpu_set_t one;

	setenv("TUTTI_DEBUG", "NONE", 1);
	if (world == WORLD_BOTH)
		setenv("TUTTI_HOST_ID", rank % 2 ? "odd" : "even", 1);
	if (world == WORLD_ONE_CORE) {
		CPU_ZERO(&one);
		CPU_SET(0, &one);
		(void)sched_setaffinity(0, sizeof(one), &one);
	}
}

const char *world_transport(enum world world)
{
	return world == WORLD_TCP ? "tcp" : world == WORLD_BOTH ? NULL : "shm";
}

static bool may_be_absent(const struct room *room)
{
	const enum place_kind kind = room->place->kind;

	return room->how != HOW_STOPPED && (kind == PLACE_INIT || kind == PLACE_GROW);
}

static void prepare(const struct room *room, int rank)
{
	const struct rlimit no_core = { 0, 0 };

	(void)setrlimit(RLIMIT_CORE, &no_core);
	(void)signal(SIGUSR1, exit_at_once);
	setenv("TUTTI_BOOT_TIMEOUT_MS", may_be_absent(room) ? BOOT_TIMEOUT : "60000", 1);
	world_enter(room->world, rank);
}

static bool is_victim(const struct room *room, int rank)
{
	for (int i = 0; i < room->nvictims; i++)
		if (room->victim[i] == rank)
			return true;
	return false;
}

static void keep_error(const struct room *room, struct rank_state *own, const struct actor *actor,
		       tutti_status status)
{
	const int64_t ns = now_ns();

	for (int i = 0; i < room->nvictims; i++)
		own->number[i] = place_number(actor, room->victim[i]);
	snprintf(own->text, sizeof(own->text), "%s", tutti_last_error(NULL));
	own->failed_ns = ns;
	own->status = status;
}

static tutti_status make_comm(struct room *room, struct rank_state *own, struct actor *actor,
			      bool joins)
{
	tutti_config config = TUTTI_CONFIG_INIT;

	config.transport = world_transport(room->world);
	while (joins ? !room->has_new_id : !room->has_id || !room->go)
		nap_us(100);
	own->is_waiting = 1;
	return joins ? tutti_comm_grow(NULL, room->n, &room->new_id, actor->rank, &actor->comm,
				       &config)
		     : tutti_comm_init_rank_config(&actor->comm, actor->n, room->id, actor->rank,
						   &config);
}

/* With those that are new. */
static tutti_status grow(struct room *room, struct rank_state *own, struct actor *actor)
{
	tutti_comm_t grown = NULL;
	tutti_status st = TUTTI_OK;

	own->is_waiting = 0;
	if (actor->rank == 0) {
		st = tutti_get_unique_id(&room->new_id);
		room->has_new_id = 1;
	}
	while (!room->has_new_id)
		nap_us(100);
	own->is_waiting = 1;
	if (st == TUTTI_OK)
		st = tutti_comm_grow(actor->comm, room->n, actor->rank == 0 ? &room->new_id : NULL,
				     -1, &grown, NULL);
	if (st != TUTTI_OK)
		return st;
	(void)tutti_comm_destroy(actor->comm);
	actor->comm = grown;
	actor->n = room->n;
	return TUTTI_OK;
}

/* A victim that was told to. */
static void end_here(const struct room *room, struct rank_state *own, struct actor *actor)
{
	own->ended_ns = now_ns();
	if (room->how == HOW_EXITS)
		exit(0);
	if (room->how == HOW_ABORTS)
		(void)tutti_comm_abort(actor->comm);
	else
		actor_release(actor);
	exit(0);
}

/* All ranks ask together, so that they end after the same call. */
static tutti_status ask(struct room *room, struct actor *actor, int32_t *enough)
{
	*enough = room->enough;
	return tutti_all_reduce(enough, enough, 1, TUTTI_INT32, TUTTI_MAX, actor->comm, NULL);
}

static tutti_status work(struct room *room, struct rank_state *own, struct actor *actor)
{
	tutti_status st = TUTTI_OK;
	int32_t enough = 0;

	while (st == TUTTI_OK && !enough) {
		if (is_victim(room, actor->rank) && room->ends)
			end_here(room, own, actor);
		st = room->place->step(actor);
		actor->step++;
		if (st == TUTTI_OK)
			own->steps++;
		if (st == TUTTI_OK && room->how == HOW_STOPPED && actor->step % ASK_EVERY == 0)
			st = ask(room, actor, &enough);
	}
	return st;
}

/* The victim does not come, so no other may come through. */
static tutti_status finalize(const struct room *room, struct rank_state *own, struct actor *actor)
{
	tutti_status st = TUTTI_OK;

	for (int i = 0; i < 3 && st == TUTTI_OK; i++)
		st = place_sum(actor);
	own->is_waiting = 1;
	while (st == TUTTI_OK && is_victim(room, actor->rank))
		nap_us(1000);
	if (st == TUTTI_OK)
		st = tutti_comm_finalize(actor->comm);
	return st;
}

int rank_run(struct room *room, int rank)
{
	struct rank_state *own = &room->rank[rank];
	const bool joins = rank >= room->nold;
	struct actor actor = { .rank = rank,
			       .n = joins ? room->n : room->nold,
			       .count = room->count,
			       .root = room->root };
	tutti_status st = TUTTI_OK;
	struct held before;

	prepare(room, rank);
	before = held_first();
	if (rank == 0) {
		st = tutti_get_unique_id(&room->id);
		room->has_id = 1;
	}
	if (st == TUTTI_OK)
		st = make_comm(room, own, &actor, joins);
	own->is_up = st == TUTTI_OK;
	if (st == TUTTI_OK && room->place->kind == PLACE_GROW && !joins)
		st = grow(room, own, &actor);
	if (st == TUTTI_OK && room->place->kind == PLACE_FINALIZE)
		st = finalize(room, own, &actor);
	else if (st == TUTTI_OK)
		st = work(room, own, &actor);
	if (st != TUTTI_OK)
		keep_error(room, own, &actor, st);
	own->wrong = actor.wrong;
	actor_release(&actor);
	(void)held_no_more(&before, own->leaks, sizeof(own->leaks));
	own->is_over = 1;
	return 0;
}
