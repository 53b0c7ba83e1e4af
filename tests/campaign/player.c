/* SPDX-License-Identifier: BSD-3-Clause */
#include "campaign/player.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/cuda_impl.h"
#include "gpu/cuda_memory.h"
#include "support/world.h"

#define GAP   ((size_t)48)
#define BLANK 0x55

int player_device(const struct player *player)
{
	return player->program->setting.device[player->rank];
}

int player_place(const struct player *player, int comm)
{
	return player->program->comm[comm].place[player->rank];
}

int player_count(const struct player *player, int comm)
{
	return player->program->comm[comm].n[player->rank];
}

/* -- Memory ---------------------------------------------------------------------------- */

/* CUDA's memory that the host reads and writes, too. */
static void alloc_managed(struct tti_gpu *gpu, size_t nbytes, struct gpu_buffer *out)
{
	int (*alloc)(uint64_t * at, size_t nbytes, unsigned flags);
	void *symbol = tti_gpu_driver_symbol(tti_gpu_driver_of(gpu), "cuMemAllocManaged");
	struct tti_gpu_scope scope;
	uint64_t at;

	memcpy(&alloc, &symbol, sizeof(alloc));
	if (!CHECK_OK(tti_gpu_enter(gpu, false, &scope)) || !CHECK(alloc(&at, nbytes, 1) == 0))
		exit(1);
	tti_gpu_leave(gpu, &scope);
	out->memory = out->view = (char *)(uintptr_t)at;
}

static void free_managed(struct tti_gpu *gpu, struct gpu_buffer *buffer)
{
	void *symbol = tti_gpu_driver_symbol(tti_gpu_driver_of(gpu), "cuMemFree_v2");
	struct tti_gpu_scope scope;
	int (*release)(uint64_t at);

	memcpy(&release, &symbol, sizeof(release));
	if (CHECK_OK(tti_gpu_enter(gpu, false, &scope))) {
		CHECK(release((uintptr_t)buffer->memory) == 0);
		tti_gpu_leave(gpu, &scope);
	}
}

/* The library's, of the rank's device if it has one. */
static void alloc_heap(struct player *player, size_t nbytes, struct gpu_buffer *out)
{
	void *memory;

	if (!CHECK_OK(tutti_mem_alloc(&memory, nbytes, player->seat[0].comm)))
		exit(1);
	out->memory = out->view = memory;
	if (player->device.gpu)
		gpu_view(&player->device, memory, out);
}

void player_alloc(struct player *player, size_t nbytes, struct memory *out)
{
	const int device = player_device(player);
	const int nkinds = device < 0 ? MEMORY_HEAP + 1 : MEMORY_KINDS;

	out->kind = (enum memory_kind)program_draw(&player->random, (uint64_t)nkinds);
	out->buffer = (struct gpu_buffer){ .nbytes = nbytes };
	if (out->kind == MEMORY_PLAIN)
		gpu_alloc(&out->buffer, device, nbytes);
	else if (out->kind == MEMORY_HEAP)
		alloc_heap(player, nbytes, &out->buffer);
	else if (out->kind == MEMORY_PINNED)
		gpu_alloc_pinned(&out->buffer, device, nbytes);
	else
		alloc_managed(player->device.gpu, nbytes, &out->buffer);
}

void memory_free(const struct player *player, struct memory *memory)
{
	struct gpu_buffer *buffer = &memory->buffer;

	if (memory->kind == MEMORY_HEAP)
		CHECK_OK(tutti_mem_free(buffer->memory, NULL));
	else if (memory->kind == MEMORY_MANAGED)
		free_managed(player->device.gpu, buffer);
	else
		gpu_free(buffer);
}

void player_register(struct player *player)
{
	struct piece *piece = &player->piece[program_draw(&player->random, PLAYER_PIECES)];
	const int comm = (int)program_draw(&player->random, PROGRAM_COMMS);
	struct seat *seat = &player->seat[comm];

	if (piece->reg) {
		player_settle(player, piece->reg_comm, true);
		CHECK_OK(tutti_deregister(player->seat[piece->reg_comm].comm, piece->reg));
		piece->reg = NULL;
	} else if (seat->comm && seat->is_made && piece->state == PIECE_IDLE) {
		CHECK_OK(tutti_register(seat->comm, piece->memory.buffer.memory,
					piece->memory.buffer.nbytes, &piece->reg));
		piece->reg_comm = comm;
	}
}

/* -- Exchanges ---------------------------------------------------------------------------- */

/* A message as one end has it. */
struct part {
	size_t at;
	int peer;
	bool is_send;
	size_t nbytes;
	uint64_t key;
};

static int parts_of(const struct piece *piece, struct part out[2 * PROGRAM_MESSAGES])
{
	const struct item *item = &piece->item;
	const int place = piece->caller.rank, n = piece->caller.n;
	size_t at = GAP;
	int nparts = 0;

	for (int i = 0; i < item->nmessages; i++) {
		const struct message_of *m = &item->message[i];

		if (m->from >= n || m->to >= n)
			continue;
		for (int is_send = 0; is_send < 2; is_send++) {
			if (place != (is_send ? m->from : m->to))
				continue;
			out[nparts++] =
				(struct part){ at, is_send ? m->to : m->from, is_send, m->nbytes,
					       numbers_mix(item->seed + (uint64_t)i) };
			at += m->nbytes + GAP;
		}
	}
	return nparts;
}

static char byte_of(uint64_t key, size_t at)
{
	return (char)((key >> (at % 8 * 8)) + at / 8);
}

static void prepare_exchange(struct piece *piece)
{
	struct part parts[2 * PROGRAM_MESSAGES];
	const int n = parts_of(piece, parts);

	memset(piece->memory.buffer.view, BLANK,
	       n ? parts[n - 1].at + parts[n - 1].nbytes + GAP : GAP);
	for (int i = 0; i < n; i++)
		for (size_t k = 0; k < parts[i].nbytes && parts[i].is_send; k++)
			piece->memory.buffer.view[parts[i].at + k] = byte_of(parts[i].key, k);
}

static void check_exchange(const struct piece *piece)
{
	struct part parts[2 * PROGRAM_MESSAGES];
	const int n = parts_of(piece, parts);
	const char *view = piece->memory.buffer.view;
	size_t at = 0, wrong = 0;

	for (int i = 0; i < n; i++) {
		for (; at < parts[i].at; at++)
			wrong += view[at] != BLANK;
		for (size_t k = 0; k < parts[i].nbytes; k++, at++)
			wrong += view[at] != byte_of(parts[i].key, k);
	}
	for (size_t end = at + GAP; at < end && n > 0; at++)
		wrong += view[at] != BLANK;
	CHECK(wrong == 0);
}

/* From any of them on, forwards or backwards. */
static void make_exchange(struct player *player, struct piece *piece)
{
	struct part parts[2 * PROGRAM_MESSAGES];
	const int n = parts_of(piece, parts);
	const uint64_t first = program_draw(&player->random, PROGRAM_MESSAGES);
	const int by = program_draw(&player->random, 2) ? 1 : -1;
	const tutti_comm_t comm = player->seat[piece->item.comm].comm;
	const tutti_stream_t stream = piece->caller.stream;

	CHECK_OK(tutti_group_start());
	for (int i = 0; i < n; i++) {
		const struct part *part = &parts[((int)first + by * i + 4 * n * n) % n];
		char *memory = piece->memory.buffer.memory + part->at;

		if (part->is_send)
			CHECK_OK(tutti_send(memory, part->nbytes, TUTTI_UINT8, part->peer, comm,
					    stream));
		else
			CHECK_OK(tutti_recv(memory, part->nbytes, TUTTI_UINT8, part->peer, comm,
					    stream));
	}
	CHECK_OK(tutti_group_end());
}

/* -- Items ---------------------------------------------------------------------------------- */

struct piece *player_take(struct player *player, const struct item *item, int stream, int graph)
{
	const uint64_t first = program_draw(&player->random, PLAYER_PIECES);
	struct piece *piece = NULL;

	for (int i = 0; i < PLAYER_PIECES; i++) {
		piece = &player->piece[((int)first + i) % PLAYER_PIECES];
		if (piece->state == PIECE_IDLE)
			break;
	}
	CHECK(piece->state == PIECE_IDLE);
	piece->item = *item;
	piece->state = graph < 0 ? PIECE_PENDING : PIECE_HELD;
	piece->stream = stream;
	piece->graph = graph;
	piece->item.call.root %= player_count(player, item->comm);
	piece->caller.comm = player->seat[item->comm].comm;
	piece->caller.rank = player_place(player, item->comm);
	piece->caller.n = player_count(player, item->comm);
	piece->caller.stream = stream == NO_STREAM ? NULL : player->stream[stream].tutti;
	return piece;
}

void piece_prepare(struct piece *piece)
{
	if (piece->item.is_exchange)
		prepare_exchange(piece);
	else
		caller_prepare(&piece->caller, &piece->item.call);
}

void piece_make(struct player *player, struct piece *piece)
{
	if (getenv("TEST_TRACE"))
		fprintf(stderr, "    rank %d: stream %d, communicator %d\n", player->rank,
			piece->stream, piece->item.comm);
	if (piece->item.is_exchange)
		make_exchange(player, piece);
	else
		CHECK_OK(caller_make(&piece->caller));
}

static void finish(struct player *player, struct piece *piece)
{
	const int before = world_failures();

	if (piece->item.is_exchange)
		check_exchange(piece);
	else
		caller_check(&piece->caller);
	if (world_failures() > before)
		fprintf(stderr, "# rank %d, memory %d%s, communicator %d, stream %d, graph %d\n",
			player->rank, (int)piece->memory.kind, piece->reg ? ", registered" : "",
			piece->item.comm, piece->stream, piece->graph);
	piece->state = piece->graph < 0 ? PIECE_IDLE : PIECE_HELD;
}

void player_make_room(struct player *player, int npieces)
{
	int nidle = 0;

	for (int i = 0; i < PLAYER_PIECES; i++)
		nidle += player->piece[i].state == PIECE_IDLE;
	for (int s = 0; s < PLAYER_STREAMS && nidle < npieces; s++)
		player_await(player, s);
}

/* -- Streams --------------------------------------------------------------------------------- */

/* As programs wait: by CUDA, by Tutti, by asking again and again. */
static void wait_somehow(struct player *player, const struct gpu_stream *stream)
{
	const uint64_t how = program_draw(&player->random, 3);

	if (how == 0 && stream->gpu) {
		gpu_stream_wait(stream);
	} else if (how == 1) {
		while (tutti_stream_query(stream->tutti) == TUTTI_AGAIN)
			continue;
		/* What graphs do there is the program's. */
		if (stream->gpu)
			gpu_stream_wait(stream);
		CHECK_OK(tutti_stream_synchronize(stream->tutti));
	} else {
		CHECK_OK(tutti_stream_synchronize(stream->tutti));
		if (stream->gpu)
			gpu_stream_wait(stream);
	}
}

void player_await(struct player *player, int stream)
{
	if (stream != NO_STREAM)
		wait_somehow(player, &player->stream[stream]);
	for (int i = 0; i < PLAYER_PIECES; i++)
		if (player->piece[i].state == PIECE_PENDING && player->piece[i].stream == stream)
			finish(player, &player->piece[i]);
}

void player_settle(struct player *player, int comm, bool graphs_only)
{
	for (int i = 0; i < PLAYER_PIECES; i++) {
		const struct piece *piece = &player->piece[i];

		if (piece->state == PIECE_PENDING && piece->item.comm == comm &&
		    (piece->graph >= 0 || !graphs_only))
			player_await(player, piece->stream);
	}
}

void player_join(struct player *player)
{
	const struct gpu_stream *first =
		&player->stream[program_draw(&player->random, PLAYER_STREAMS)];
	const struct gpu_stream *second =
		&player->stream[program_draw(&player->random, PLAYER_STREAMS)];
	tutti_event_t event;

	if (first->gpu && program_draw(&player->random, 2)) {
		gpu_stream_join(first, second);
		return;
	}
	CHECK_OK(tutti_event_create(&event));
	CHECK_OK(tutti_event_record(event, first->tutti));
	CHECK_OK(tutti_stream_wait_event(second->tutti, event));
	CHECK_OK(tutti_event_destroy(event));
}

/* -- Players ---------------------------------------------------------------------------------- */

void player_init(struct player *player, const struct program *program, int rank, uint64_t seed,
		 tutti_comm_t comm)
{
	*player = (struct player){ .rank = rank, .program = program };
	player->random = numbers_mix(seed * PROGRAM_RANKS + (uint64_t)rank);
	player->seat[0] = (struct seat){ .comm = comm, .is_made = true };
	gpu_alloc(&player->device, player_device(player), 1);
	for (int i = 0; i < PLAYER_PIECES; i++) {
		struct piece *piece = &player->piece[i];

		player_alloc(player, PROGRAM_BYTES, &piece->memory);
		piece->caller.memory = piece->memory.buffer.view;
		piece->caller.shift = piece->memory.buffer.memory - piece->memory.buffer.view;
		piece->graph = -1;
	}
	for (int i = 0; i < PLAYER_STREAMS; i++)
		if (player->device.gpu)
			gpu_stream_open(&player->stream[i], &player->device);
		else
			CHECK_OK(tutti_stream_create(&player->stream[i].tutti));
}

void player_release(struct player *player)
{
	for (int i = 0; i < PLAYER_STREAMS; i++)
		if (player->device.gpu)
			CHECK_OK(gpu_stream_close(&player->stream[i]));
		else
			CHECK_OK(tutti_stream_destroy(player->stream[i].tutti));
	for (int i = 0; i < PLAYER_PIECES; i++) {
		player->piece[i].caller.stream = NULL;
		caller_release(&player->piece[i].caller);
		memory_free(player, &player->piece[i].memory);
	}
	for (int c = 0; c < PROGRAM_COMMS; c++)
		if (player->base[c].buffer.memory)
			memory_free(player, &player->base[c]);
	gpu_free(&player->device);
}
