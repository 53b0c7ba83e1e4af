/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_CAMPAIGN_PLAYER_H
#define TESTS_CAMPAIGN_PLAYER_H

/* A rank of a random program: its communicators, streams, and pieces of memory, each of which is
 * that of one item until that was waited for and every byte was compared.
 *
 * What is wrong is CHECKed (support/world.h). Threads: each player has one. */

#include "campaign/program.h"
#include "cuda/ranks/gpu.h"

#define PLAYER_STREAMS 3
#define PLAYER_PIECES  17
#define NO_STREAM      (-1)

/* What a rank with a device has: memory of it by cudaMalloc() or tutti_mem_alloc(), of the host that
 * is pinned, of both. Another one has that of malloc() or tutti_mem_alloc(). */
enum memory_kind { MEMORY_PLAIN, MEMORY_HEAP, MEMORY_PINNED, MEMORY_MANAGED, MEMORY_KINDS };
struct memory {
	enum memory_kind kind;
	struct gpu_buffer buffer;
};

enum piece_state { PIECE_IDLE, PIECE_PENDING, PIECE_HELD /* by a graph, which does not run */ };

struct piece {
	enum piece_state state;
	struct memory memory;
	tutti_reg_t reg; /* with reg_comm */
	int reg_comm;

	struct item item;
	struct caller caller; /* of a collective; of all: the place and the number of ranks */
	int stream;           /* PIECE_PENDING: where it is */
	int graph;            /* -1: of none */
};

/* Of a communicator, and its window. */
struct seat {
	tutti_comm_t comm;
	bool is_made; /* it is made without waiting, and may be under way */
	tutti_window_t window;
};

struct player {
	int rank;
	uint64_t random;          /* its own */
	struct gpu_buffer device; /* keeps it open */
	const struct program *program;
	struct seat seat[PROGRAM_COMMS];
	/* Of windows, for as many ranks as there may be. To free memory of a device is to wait for all
	 * that runs there, of other ranks, too: so it stays until the end. */
	struct memory base[PROGRAM_COMMS];
	struct gpu_stream stream[PLAYER_STREAMS]; /* without a device: .tutti alone */
	struct piece piece[PLAYER_PIECES];
	void *graph[PROGRAM_GRAPHS]; /* NULL: none */
};

/* With communicator 0. */
void player_init(struct player *player, const struct program *program, int rank, uint64_t seed,
		 tutti_comm_t comm);
void player_release(struct player *player);

int player_device(const struct player *player);
/* Its number in a communicator of the program, and how many are in it. */
int player_place(const struct player *player, int comm);
int player_count(const struct player *player, int comm);

void player_alloc(struct player *player, size_t nbytes, struct memory *out);
void memory_free(const struct player *player, struct memory *memory);

/* -- Pieces ------------------------------------------------------------------------------ */

/* One that is idle, with an item; after player_make_room(). */
struct piece *player_take(struct player *player, const struct item *item, int stream, int graph);
/* At least so many are idle: waits for what is pending, if need be. */
void player_make_room(struct player *player, int npieces);
/* Fill its buffers, make the calls of its item. */
void piece_prepare(struct piece *piece);
void piece_make(struct player *player, struct piece *piece);
/* What a device may need to read and write: registered or not, from now on. */
void player_register(struct player *player);

/* Wait for the stream, and look at all that was pending there. NO_STREAM: at what is done. */
void player_await(struct player *player, int stream);
/* For all items of the communicator. `graphs_only`: those of graphs that run. */
void player_settle(struct player *player, int comm, bool graphs_only);
/* Let a stream wait for another. */
void player_join(struct player *player);

/* -- Steps --------------------------------------------------------------------------------- */

/* A step of the program for all players of one thread. */
void players_do(struct player *players, int n, const struct step *step);
/* The end of a program: all is waited for, and communicators are destroyed. */
void players_end(struct player *players, int n);

#endif
