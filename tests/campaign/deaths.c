/* SPDX-License-Identifier: BSD-3-Clause */
/* Rounds in which a rank dies, leaves or is stopped while all of them are in some call.
 *
 *     campaign_deaths deaths|leaves|stops SEED SECONDS [ROUNDS]
 *
 * The first round is that of SEED, each next one that of one more; it ends after SECONDS or ROUNDS,
 * whatever comes first. What happens in a round follows from its seed alone. One line for each:
 *
 *     round SEED PLACE WORLD HOW RANKS RESULT MS...
 *
 * with the time after which each survivor knew. RESULT is ok, absent (the victim had not come yet, which
 * only a timeout tells), indirect (while ranks meet: somebody was told of a rank that gave up for
 * the death), or what is wrong: hang, wrong (data), status, misnamed, leak, crash. Of
 * these, and of what took long, lines that begin with "#" say what each rank saw. Exit status 1: something was wrong. */
#include "campaign/ranks.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEADLINE_NS INT64_C(150000000000)
#define SLOW_NS     INT64_C(300000000)

static const char *const how_names[NHOWS] = { "killed", "_exit",  "segv",   "two",
					      "exit",   "leaves", "aborts", "stopped" };

/* What a round draws besides what the room has. */
struct round {
	uint64_t seed;
	int after_us;   /* the death, from when all are in their calls        */
	int between_us; /* of two deaths; of a stop and going on              */
};

static enum how draw_how(const char *kind, enum place_kind place, uint64_t *random)
{
	if (!strcmp(kind, "stops"))
		return HOW_STOPPED;
	if (!strcmp(kind, "leaves"))
		return HOW_EXITS + (enum how)draw(random, 3);
	return draw(random, 3) == 0   ? HOW_KILLED
	       : place == PLACE_CALLS ? (enum how)draw(random, HOW_TWO + 1)
				      : (enum how)draw(random, HOW_SEGV + 1);
}

static const struct place *draw_place(const char *kind, uint64_t seed)
{
	const struct place *place = &places[seed % (unsigned)nplaces];

	/* Who leaves does so between calls; a stop ends what is waited for by all. */
	if ((!strcmp(kind, "leaves") && place->kind != PLACE_CALLS) ||
	    (!strcmp(kind, "stops") && place->kind == PLACE_FINALIZE))
		return &places[(seed / (unsigned)nplaces) % 20];
	return place;
}

static void draw_round(struct room *room, struct round *round, const char *kind, uint64_t seed)
{
	uint64_t random = seed;

	*round = (struct round){ .seed = seed };
	room->place = draw_place(kind, seed);
	room->world = (enum world)(seed / (unsigned)nplaces % NWORLDS);
	room->how = draw_how(kind, room->place->kind, &random);
	if (room->how == HOW_LEAVES && !place_may_leave(room->place))
		room->how = HOW_EXITS;
	room->n = 2 + (int)draw(&random, MOST_RANKS - 1);
	if (room->how == HOW_TWO && room->n < 3)
		room->n = 3;
	room->nold = room->n;
	if (room->place->kind == PLACE_GROW)
		room->nold = 1 + (int)draw(&random, (uint64_t)room->n - 1);
	room->victim[0] = (int)draw(&random, (uint64_t)room->n);
	room->victim[1] =
		(room->victim[0] + 1 + (int)draw(&random, (uint64_t)room->n - 1)) % room->n;
	room->nvictims = room->how == HOW_TWO ? 2 : 1;
	room->count = (size_t)1 << draw(&random, 15);
	room->count += (size_t)draw(&random, room->count / 4 + 1);
	room->count = room->count < MOST_COUNT ? room->count : MOST_COUNT;
	/* Each has a part of a vector that is cut into parts, so that all have to come. */
	room->count = room->count < MOST_RANKS ? MOST_RANKS : room->count;
	room->root = (int)draw(&random, (uint64_t)room->n);
	round->after_us = (int)draw(&random, room->place->kind == PLACE_CALLS ? 20000 : 9000);
	round->between_us = room->how == HOW_STOPPED ? 50000 + (int)draw(&random, 1000000)
						     : (int)draw(&random, 3000);
}

/* -- One round ------------------------------------------------------------------------- */

static struct room *make_room(void)
{
	struct room *room = mmap(NULL, sizeof(*room), PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (room == MAP_FAILED)
		abort();
	return room;
}

static void start(struct room *room)
{
	fflush(NULL);
	for (int rank = 0; rank < room->n; rank++) {
		const pid_t pid = fork();

		if (pid < 0)
			abort();
		if (pid == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			exit(rank_run(room, rank));
		}
		room->rank[rank].pid = pid;
	}
}

/* Until all that are there from the start are where the death shall be; false: they do not get there. */
static bool await_start(struct room *room)
{
	const bool is_init = room->place->kind == PLACE_INIT;
	const int64_t deadline = now_ns() + DEADLINE_NS;
	bool all;

	while (!room->has_id)
		nap_us(100);
	room->go = 1;
	do {
		all = true;
		for (int rank = 0; rank < room->nold; rank++) {
			const struct rank_state *own = &room->rank[rank];

			all &= is_init || own->is_up;
			all &= room->place->kind == PLACE_CALLS || own->is_waiting;
			all &= room->place->kind != PLACE_CALLS || own->steps >= 2;
			if (own->status)
				return false;
		}
		if (!all)
			nap_us(100);
	} while (!all && now_ns() < deadline);
	return all;
}

/* When the first of them died. */
static int64_t end_victims(struct room *room, const struct round *round)
{
	static const int signals[] = { SIGKILL, SIGUSR1, SIGSEGV, SIGKILL };
	const int64_t began_ns = now_ns();
	const struct rank_state *victim = &room->rank[room->victim[0]];

	if (room->how > HOW_TWO) {
		room->ends = 1;
		while (!victim->ended_ns && now_ns() < began_ns + DEADLINE_NS)
			nap_us(100);
		return victim->ended_ns;
	}
	kill(victim->pid, signals[room->how]);
	if (room->how == HOW_TWO) {
		nap_us(round->between_us);
		kill(room->rank[room->victim[1]].pid, SIGKILL);
	}
	return began_ns;
}

/* A stop of one rank, after which all must go on. */
static void hold_up(struct room *room, const struct round *round)
{
	const pid_t pid = room->rank[room->victim[0]].pid;
	const int64_t deadline = now_ns() + DEADLINE_NS;
	long before[MOST_RANKS];
	bool all;

	kill(pid, SIGSTOP);
	nap_us(round->between_us);
	kill(pid, SIGCONT);
	for (int rank = 0; rank < room->n; rank++)
		before[rank] = room->rank[rank].steps;
	do {
		nap_us(500);
		all = true;
		for (int rank = 0; rank < room->n; rank++)
			all &= room->rank[rank].status ||
			       room->rank[rank].steps >= before[rank] + 2;
	} while (!all && now_ns() < deadline);
	room->enough = 1;
}

/* Wait for all; what had to be killed is a hang. Exit statuses go to `ended`. */
static int await_end(struct room *room, int *ended)
{
	const int64_t deadline = now_ns() + DEADLINE_NS;
	int stuck = 0, left = room->n;
	bool gone[MOST_RANKS] = { false };

	while (left > 0) {
		for (int rank = 0; rank < room->n; rank++)
			if (!gone[rank] &&
			    waitpid(room->rank[rank].pid, &ended[rank], WNOHANG) > 0) {
				gone[rank] = true;
				left--;
			}
		if (left > 0 && now_ns() > deadline) {
			for (int rank = 0; rank < room->n; rank++)
				if (!gone[rank])
					kill(room->rank[rank].pid, SIGKILL);
			stuck = left;
		}
		if (left > 0)
			nap_us(300);
	}
	return stuck;
}

/* -- The verdict ------------------------------------------------------------------------ */

/* Some rank of the room, by its process. */
static bool names_anybody(const struct room *room, const char *text)
{
	char process[32];

	for (int rank = 0; rank < room->n; rank++) {
		snprintf(process, sizeof(process), "process %d)", (int)room->rank[rank].pid);
		if (strstr(text, process))
			return true;
	}
	return false;
}

/* By its number in the communicator of the call, with its process; or one that had not come. */
static bool names(const struct room *room, const struct rank_state *own, int i)
{
	const struct rank_state *victim = &room->rank[room->victim[i]];
	static const char maker[] = "the process that made ";
	char name[64], process[32], where[48];

	snprintf(name, sizeof(name), "rank %d (", own->number[i]);
	snprintf(process, sizeof(process), "process %d)", (int)victim->pid);
	snprintf(where, sizeof(where), "rank %d, where the ranks meet", own->number[i]);
	if (strstr(own->text, name) && strstr(own->text, process))
		return true;
	/* A child that it is not in ends by a rank that has left the child for the death. */
	if (own->number[i] < 0)
		return names_anybody(room, own->text);
	/* Until ranks have met they may not know each other's process; a root is who made the id. */
	snprintf(name, sizeof(name), "rank %d closed its connection during ", own->number[i]);
	return room->place->kind != PLACE_CALLS &&
	       (strstr(own->text, name) ||
		(room->victim[i] == 0 && (strstr(own->text, where) || strstr(own->text, maker))));
}

/* Nobody has met the victim; or old ranks gave up, for its death, before they met this new one. */
static bool is_absent(const struct room *room, int rank)
{
	const struct rank_state *own = &room->rank[rank];
	char name[48];

	snprintf(name, sizeof(name), "rank %d of %d did not come", room->victim[0], room->n);
	return (room->place->kind == PLACE_INIT || room->place->kind == PLACE_GROW) &&
	       own->status == TUTTI_ETIMEOUT &&
	       (strstr(own->text, name) || (rank >= room->nold && room->victim[0] < room->nold &&
					    strstr(own->text, "did not come")));
}

static bool is_victim(const struct room *room, int rank)
{
	for (int i = 0; i < room->nvictims; i++)
		if (room->victim[i] == rank)
			return room->how != HOW_STOPPED;
	return false;
}

static const char *judge_rank(const struct room *room, int rank, int ended)
{
	const struct rank_state *own = &room->rank[rank];
	bool named = false;

	if (own->wrong)
		return "wrong";
	if (!WIFEXITED(ended) || WEXITSTATUS(ended) || !own->is_over)
		return "crash";
	if (*own->leaks)
		return "leak";
	if (room->how == HOW_STOPPED)
		return own->status == TUTTI_OK ? "ok" : "status";
	if (is_absent(room, rank))
		return "absent";
	if (own->status != TUTTI_EPEER)
		return "status";
	for (int i = 0; i < room->nvictims; i++)
		named |= names(room, own, i);
	if (named)
		return "ok";
	return room->place->kind == PLACE_INIT || room->place->kind == PLACE_GROW ? "indirect"
										  : "misnamed";
}

/* The worst of what the survivors say. */
static const char *judge(const struct room *room, const int *ended, int stuck)
{
	static const char *const by_weight[] = { "ok",   "absent", "indirect", "misnamed",
						 "leak", "status", "crash",    "wrong" };
	const int nweights = sizeof(by_weight) / sizeof(by_weight[0]);
	int worst = 0;

	if (stuck)
		return "hang";
	for (int rank = 0; rank < room->n; rank++)
		for (int w = 0; w < nweights && !is_victim(room, rank); w++)
			if (!strcmp(judge_rank(room, rank, ended[rank]), by_weight[w]) && w > worst)
				worst = w;
	return by_weight[worst];
}

static void print_details(const struct room *room, const struct round *round, const int *ended,
			  int64_t death_ns)
{
	printf("# %d ranks, %d of them there from the start, victim %d (process %d)", room->n,
	       room->nold, room->victim[0], (int)room->rank[room->victim[0]].pid);
	if (room->nvictims > 1)
		printf(" and %d (process %d)", room->victim[1],
		       (int)room->rank[room->victim[1]].pid);
	printf(", after %d us, %d us between, count %zu, root %d\n", round->after_us,
	       round->between_us, room->count, room->root);
	for (int rank = 0; rank < room->n; rank++) {
		const struct rank_state *own = &room->rank[rank];

		if (is_victim(room, rank))
			continue;
		printf("# rank %d: %s: %ld calls, %s after %.1f ms, victim is its %d, ended with "
		       "%#x%s: %s %s\n",
		       rank, judge_rank(room, rank, ended[rank]), own->steps,
		       tutti_status_name((tutti_status)own->status),
		       own->failed_ns ? (double)(own->failed_ns - death_ns) / 1e6 : 0.0,
		       own->number[0], (unsigned)ended[rank],
		       own->is_over ? "" : " before it was through", own->text, own->leaks);
	}
}

/* Whether somebody waited long enough that one would like to know what it was told. */
static bool is_slow(const struct room *room, int64_t death_ns)
{
	for (int rank = 0; rank < room->n; rank++)
		if (room->rank[rank].status == TUTTI_EPEER && room->how < HOW_EXITS &&
		    room->rank[rank].failed_ns - death_ns > SLOW_NS)
			return true;
	return false;
}

static bool run_round(const char *kind, uint64_t seed)
{
	struct room *room = make_room();
	int ended[MOST_RANKS] = { 0 }, stuck = 0;
	struct round round;
	const char *result;
	int64_t death_ns = 0;

	draw_round(room, &round, kind, seed);
	start(room);
	if (await_start(room)) {
		nap_us(round.after_us);
		if (room->how == HOW_STOPPED)
			hold_up(room, &round);
		else
			death_ns = end_victims(room, &round);
	}
	stuck = await_end(room, ended);
	result = death_ns || room->how == HOW_STOPPED ? judge(room, ended, stuck) : "status";
	printf("round %llu %s %s %s %d %s", (unsigned long long)seed, room->place->name,
	       world_names[room->world], how_names[room->how], room->n, result);
	for (int rank = 0; rank < room->n; rank++)
		if (!is_victim(room, rank) && room->rank[rank].status == TUTTI_EPEER)
			printf(" %.2f", (double)(room->rank[rank].failed_ns - death_ns) / 1e6);
	printf("\n");

	const bool good =
		!strcmp(result, "ok") || !strcmp(result, "absent") || !strcmp(result, "indirect");

	if (!good || is_slow(room, death_ns))
		print_details(room, &round, ended, death_ns);
	fflush(stdout);
	munmap(room, sizeof(*room));
	return good;
}

int main(int argc, char **argv)
{
	if (argc < 4) {
		fprintf(stderr,
			"usage: campaign_deaths deaths|leaves|stops SEED SECONDS [ROUNDS]\n");
		return 2;
	}

	const uint64_t first = strtoull(argv[2], NULL, 10);
	const uint64_t rounds = argc > 4 ? strtoull(argv[4], NULL, 10) : UINT64_MAX;
	const int64_t end_ns = now_ns() + (int64_t)(atof(argv[3]) * 1e9);
	bool good = true;

	for (uint64_t i = 0; i < rounds && now_ns() < end_ns; i++)
		good &= run_round(argv[1], first + i);
	return good ? 0 : 1;
}
