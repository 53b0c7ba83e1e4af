/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>
#include <unistd.h>

#include "campaign/player.h"
#include "support/world.h"

static bool is_in(const struct player *player, int comm)
{
	return player->program->comm[comm].group[player->rank] >= 0;
}

/* A communicator that is made without waiting. */
static void await_made(struct player *player, int comm)
{
	struct seat *seat = &player->seat[comm];
	tutti_status st = TUTTI_AGAIN;

	if (!seat->comm || seat->is_made)
		return;
	while (CHECK_OK(tutti_comm_get_async_error(seat->comm, &st)) && st == TUTTI_AGAIN)
		(void)usleep(100);
	CHECK(st == TUTTI_OK);
	seat->is_made = true;
	world_check_place(seat->comm, player_place(player, comm), player_count(player, comm));
}

/* No graph of it runs: then calls may be made on it. */
static void free_for_calls(struct player *player, int comm)
{
	await_made(player, comm);
	player_settle(player, comm, true);
}

/* -- Calls ------------------------------------------------------------------------------- */

static int draw_stream(struct player *player)
{
	return (int)program_draw(&player->random, PLAYER_STREAMS + 1) - 1;
}

/* Takes a piece for each item that this rank is in, the calls of a communicator on one stream. A thread
 * has all of a group on streams, or none: those on none begin when all others are launched, which may
 * have to wait for another rank. */
static void take_pieces(struct player *player, const struct step *step,
			struct piece *pieces[PROGRAM_ITEMS], bool is_null, int only, int graph)
{
	int stream[PROGRAM_COMMS];

	player_make_room(player, step->nitems);
	for (int c = 0; c < PROGRAM_COMMS; c++)
		stream[c] = graph >= 0 ? only
			    : is_null  ? NO_STREAM
				       : (int)program_draw(&player->random, PLAYER_STREAMS);
	for (int i = 0; i < step->nitems; i++)
		if (is_in(player, step->item[i].comm))
			free_for_calls(player, step->item[i].comm);
	for (int i = 0; i < step->nitems; i++) {
		const struct item *item = &step->item[i];

		pieces[i] = NULL;
		if (!is_in(player, item->comm))
			continue;
		if (item->call.manner == CALL_AS_PLAN)
			stream[item->comm] = NO_STREAM;
		pieces[i] = player_take(player, item, stream[item->comm], graph);
		piece_prepare(pieces[i]);
	}
}

static void make_all(struct player *players, int n, const struct step *step,
		     struct piece *pieces[][PROGRAM_ITEMS])
{
	const bool is_group = step->is_group || n > 1;

	if (is_group)
		CHECK_OK(tutti_group_start());
	for (int i = 0; i < step->nitems; i++)
		for (int p = 0; p < n; p++)
			if (pieces[p][i])
				piece_make(&players[p], pieces[p][i]);
	if (is_group)
		CHECK_OK(tutti_group_end());
}

static void do_calls(struct player *players, int n, const struct step *step)
{
	const bool is_null = program_draw(&players[0].random, PLAYER_STREAMS + 1) == 0;
	struct piece *pieces[PROGRAM_RANKS][PROGRAM_ITEMS];

	for (int p = 0; p < n; p++)
		take_pieces(&players[p], step, pieces[p], is_null, NO_STREAM, -1);
	make_all(players, n, step, pieces);
	for (int p = 0; p < n; p++) {
		player_await(&players[p], NO_STREAM);
		for (int i = 0; i < step->nitems && step->is_awaited; i++)
			if (pieces[p][i] && pieces[p][i]->state == PIECE_PENDING)
				player_await(&players[p], pieces[p][i]->stream);
	}
}

/* -- Graphs -------------------------------------------------------------------------------- */

static bool is_in_any(const struct player *player, const struct step *step)
{
	for (int i = 0; i < step->nitems; i++)
		if (is_in(player, step->item[i].comm))
			return true;
	return false;
}

static void do_capture(struct player *players, int n, const struct step *step)
{
	struct piece *pieces[PROGRAM_RANKS][PROGRAM_ITEMS];
	int stream[PROGRAM_RANKS];

	for (int p = 0; p < n; p++) {
		stream[p] = (int)program_draw(&players[p].random, PLAYER_STREAMS);
		take_pieces(&players[p], step, pieces[p], false, stream[p], step->graph);
	}
	for (int p = 0; p < n; p++)
		if (is_in_any(&players[p], step))
			gpu_capture_begin(&players[p].stream[stream[p]]);
	make_all(players, n, step, pieces);
	for (int p = 0; p < n; p++)
		if (is_in_any(&players[p], step))
			players[p].graph[step->graph] =
				gpu_capture_end(&players[p].stream[stream[p]]);
}

/* Nothing else of its communicators runs. */
static void do_replay(struct player *player, const struct step *step)
{
	const int stream = (int)program_draw(&player->random, PLAYER_STREAMS);
	void *graph = player->graph[step->graph];

	if (!graph)
		return;
	for (int c = 0; c < PROGRAM_COMMS; c++)
		if (player->program->graph[step->graph].has_comm[c])
			player_settle(player, c, false);
	for (int i = 0; i < PLAYER_PIECES; i++)
		if (player->piece[i].graph == step->graph) {
			piece_prepare(&player->piece[i]);
			player->piece[i].stream = stream;
			player->piece[i].state = PIECE_PENDING;
		}
	for (int i = 0; i < step->times; i++)
		gpu_graph_launch(graph, &player->stream[stream]);
}

static void drop(struct player *player, int graph)
{
	if (!player->graph[graph])
		return;
	for (int i = 0; i < PLAYER_PIECES; i++) {
		struct piece *piece = &player->piece[i];

		if (piece->graph != graph)
			continue;
		if (piece->state == PIECE_PENDING)
			player_await(player, piece->stream);
		piece->state = PIECE_IDLE;
		piece->graph = -1;
	}
	gpu_graph_free(player->graph[graph], &player->stream[0]);
	player->graph[graph] = NULL;
}

/* -- Windows --------------------------------------------------------------------------------- */

static void make_window(struct player *player, int comm)
{
	struct seat *seat = &player->seat[comm];
	const size_t nbytes = WINDOW_BYTES * (size_t)player_count(player, comm);

	if (!is_in(player, comm))
		return;
	free_for_calls(player, comm);
	if (!player->base[comm].buffer.memory)
		player_alloc(player, WINDOW_BYTES * PROGRAM_RANKS, &player->base[comm]);
	CHECK_OK(tutti_window_create(seat->comm, player->base[comm].buffer.memory, nbytes,
				     &seat->window));
}

static void end_window(struct player *player, int comm)
{
	struct seat *seat = &player->seat[comm];

	if (!seat->window)
		return;
	free_for_calls(player, comm);
	CHECK_OK(tutti_window_destroy(seat->window));
	seat->window = NULL;
}

static void fill(char *at, size_t nbytes, uint64_t seed, int rank)
{
	for (size_t i = 0; i < nbytes; i++)
		at[i] = (char)(numbers_mix(seed + (uint64_t)rank + i / 4) >> (i % 4));
}

static bool is_filled(const char *at, size_t nbytes, uint64_t seed, int rank)
{
	size_t i = 0;

	while (i < nbytes && at[i] == (char)(numbers_mix(seed + (uint64_t)rank + i / 4) >> (i % 4)))
		i++;
	return i == nbytes;
}

/* Put, read back, signal; wait for what another one has put, and tell it. */
static void use_window(struct player *player, const struct step *step)
{
	const struct seat *seat = &player->seat[step->comm];
	const int place = player_place(player, step->comm), n = player_count(player, step->comm);
	const int to = (place + step->by) % n, from = (place + n - step->by % n) % n;
	const size_t at = (size_t)place * WINDOW_BYTES, half = PROGRAM_BYTES / 2;
	const int stream = draw_stream(player);
	const tutti_stream_t over = stream == NO_STREAM ? NULL : player->stream[stream].tutti;
	const struct item none = { .comm = step->comm };
	struct piece *piece;

	free_for_calls(player, step->comm);
	player_make_room(player, 1);
	piece = player_take(player, &none, stream, -1);
	piece->state = PIECE_IDLE;
	fill(piece->memory.buffer.view, step->nbytes, step->seed, place);
	memset(piece->memory.buffer.view + half, 0, step->nbytes);
	CHECK_OK(tutti_put(seat->window, to, at, piece->memory.buffer.memory, step->nbytes, over));
	CHECK_OK(tutti_window_flush(seat->window, to, over));
	CHECK_OK(tutti_get(seat->window, to, at, piece->memory.buffer.memory + half, step->nbytes,
			   over));
	CHECK_OK(tutti_signal(seat->window, to, over));
	CHECK_OK(tutti_wait_signal(seat->window, from, 1, over));
	player_await(player, stream);
	CHECK(is_filled(piece->memory.buffer.view + half, step->nbytes, step->seed, place));
	CHECK(is_filled(player->base[step->comm].buffer.view + (size_t)from * WINDOW_BYTES,
			step->nbytes, step->seed, from));
	CHECK_OK(tutti_signal(seat->window, from, over));
	CHECK_OK(tutti_wait_signal(seat->window, to, 1, over));
	player_await(player, stream);
}

/* -- Communicators --------------------------------------------------------------------------- */

/* Of those that are named: numbers that there are. */
static int named(const struct player *player, const struct step *step, int out[PROGRAM_RANKS])
{
	int n = 0;

	for (int i = 0; i < step->nranks; i++)
		if (step->ranks[i] < player_count(player, step->comm))
			out[n++] = step->ranks[i];
	return n;
}

static void make_child(struct player *player, const struct step *step, bool is_alone)
{
	const tutti_comm_t parent = player->seat[step->comm].comm;
	struct seat *seat = &player->seat[step->child];
	const int rank = player->rank, is_member = is_in(player, step->child);
	tutti_config config = TUTTI_CONFIG_INIT;
	int list[PROGRAM_RANKS];
	const int n = named(player, step, list);

	*seat = (struct seat){ 0 };
	config.blocking = step->is_blocking;
	if (step->how == BY_SPLIT)
		CHECK_OK(tutti_comm_split(parent, step->color[rank], step->key[rank], &seat->comm,
					  &config));
	else if (step->how == BY_DUP)
		CHECK_OK(tutti_comm_dup(parent, &seat->comm, &config));
	else if (is_member && step->how == BY_SHRINK)
		CHECK_OK(tutti_comm_shrink(parent, list, n, &seat->comm, &config,
					   TUTTI_SHRINK_DEFAULT));
	else if (is_member)
		CHECK_OK(tutti_comm_create_group(parent, list, n, step->child, &seat->comm,
						 &config));
	seat->is_made = step->is_blocking && is_alone;
}

static void do_make(struct player *players, int n, const struct step *step)
{
	for (int p = 0; p < n; p++)
		if (is_in(&players[p], step->comm))
			free_for_calls(&players[p], step->comm);
	if (n > 1)
		CHECK_OK(tutti_group_start());
	for (int p = 0; p < n; p++)
		if (is_in(&players[p], step->comm))
			make_child(&players[p], step, n == 1);
	if (n > 1)
		CHECK_OK(tutti_group_end());
	for (int p = 0; p < n; p++)
		CHECK((players[p].seat[step->child].comm != NULL) ==
		      is_in(&players[p], step->child));
}

/* What is registered with it is no more; calls of it may still be on streams. */
static void end_comm(struct player *player, int comm, bool is_finalized)
{
	struct seat *seat = &player->seat[comm];

	if (!seat->comm)
		return;
	for (int c = 0; c < PROGRAM_COMMS; c++)
		await_made(player, c);
	end_window(player, comm);
	if (program_draw(&player->random, 2))
		player_settle(player, comm, false);
	for (int i = 0; i < PLAYER_PIECES; i++)
		if (player->piece[i].reg_comm == comm)
			player->piece[i].reg = NULL;
	if (is_finalized)
		CHECK_OK(tutti_comm_finalize(seat->comm));
	CHECK_OK(tutti_comm_destroy(seat->comm));
	*seat = (struct seat){ 0 };
}

/* -- Steps ------------------------------------------------------------------------------------- */

/* Between steps each rank does what it likes. */
static void wander(struct player *player)
{
	if (program_draw(&player->random, 4) == 0)
		player_await(player, (int)program_draw(&player->random, PLAYER_STREAMS));
	if (program_draw(&player->random, 8) == 0)
		player_join(player);
	if (program_draw(&player->random, 8) == 0)
		player_register(player);
	if (program_draw(&player->random, 10) == 0)
		(void)usleep((unsigned)program_draw(&player->random, 1000));
}

static void do_alone(struct player *player, const struct step *step)
{
	for (int g = 0; g < PROGRAM_GRAPHS; g++)
		if (!player->program->graph[g].exists)
			drop(player, g);
	if (step->kind == STEP_REPLAY)
		do_replay(player, step);
	else if (step->kind == STEP_END)
		end_comm(player, step->comm, step->is_finalized);
	else if (step->kind == STEP_WINDOW_MAKE)
		make_window(player, step->comm);
	else if (step->kind == STEP_WINDOW_END)
		end_window(player, step->comm);
	else if (step->kind == STEP_WINDOW_USE && is_in(player, step->comm))
		use_window(player, step);
}

void players_do(struct player *players, int n, const struct step *step)
{
	if (step->kind == STEP_CALLS)
		do_calls(players, n, step);
	else if (step->kind == STEP_CAPTURE)
		do_capture(players, n, step);
	else if (step->kind == STEP_MAKE)
		do_make(players, n, step);
	for (int p = 0; p < n; p++) {
		do_alone(&players[p], step);
		wander(&players[p]);
	}
}

void players_end(struct player *players, int n)
{
	for (int p = 0; p < n; p++) {
		for (int g = 0; g < PROGRAM_GRAPHS; g++)
			drop(&players[p], g);
		for (int s = 0; s < PLAYER_STREAMS; s++)
			player_await(&players[p], s);
	}
	for (int c = PROGRAM_COMMS - 1; c >= 0; c--)
		for (int p = 0; p < n; p++)
			end_comm(&players[p], c, false);
}
