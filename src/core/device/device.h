/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_CORE_DEVICE_DEVICE_H
#define TTI_CORE_DEVICE_DEVICE_H

/* What a communicator has for the GPUs of its ranks. Where some rank has a device, all ranks have a
 * struct tti_devices: what they agree on. A rank with a device has a struct tti_device: its GPU,
 * what kernels share with the host, and lanes to the peers.
 *
 *     tti_devices_begin()   at init: who has which GPU, which of them reach each other (setup.c)
 *     tti_devices_settle()  at init: how much a message of a call may hold
 *     tti_device_connect()  before a call: lanes to the peers that it needs first (connect.c)
 *     tti_device_program()  a program in memory of the GPU, once for each (program.c)
 *     tti_device_stop()     all blocks of this rank's kernels end
 *     tti_device_close()    nothing is left
 *
 * A lane lies in memory of the receiver's GPU if the two GPUs reach each other (`way` is
 * TTI_DEVICE_MAPPED). All other peers, CPU ranks among them, are reached over the ordinary links of
 * the communicator: the kernel then talks over lanes in pinned memory of this rank
 * (TTI_DEVICE_PINNED), and the proxy moves messages between these and the link.
 *
 * Owner: the communicator. Threads: the executing one, but for tti_device_stop(), and for `control`,
 * which any thread may read. */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "device/abi.h"
#include "device/lanes.h"
#include "tutti/tutti.h"
#include "util/vec.h"

struct tti_args;
struct tti_comm;
struct tti_compiled;
struct tti_executable;
struct tti_flights;
struct tti_gpu;
struct tti_kernels;
struct tti_gpu_memory;
struct tti_lending;
struct tti_peer_info;
struct tti_strbuf;

/* -- What all ranks know ---------------------------------------------------------- */

/* What a rank may ask for in place of the ordinal of a GPU. */
enum tti_device_wish {
	TTI_NO_DEVICE = -1,
	TTI_AUTO_DEVICE = -2, /* one of its host, by its number there */
};

/* What a rank asks for: `configured` (config.device), else what TUTTI_CUDA_DEVICE says.
 * TUTTI_EINVAL: that is no such text. */
TUTTI_CHECKED tutti_status tti_device_wish(int configured, int *out);

/* What a rank says of itself. Zeroed but for `ordinal` -1: it has no device. */
struct tti_device_fact {
	int32_t ordinal;               /* -1: none */
	int32_t capability;            /* 90 for 9.0 */
	uint8_t uuid[16];              /* of the GPU, or of the part of one that a process sees */
	uint64_t process;              /* ranks with it share addresses */
	uint64_t host;                 /* ranks with it may share memory of GPUs */
	struct tti_lane_shape at_most; /* as its parameters say; nblocks 0: chosen */
	uint32_t nresident;            /* blocks that the GPU runs at a time */
	int32_t status;                /* of opening it */
	int32_t pid;                   /* of its process, with what tells that from others */
	uint64_t identity;
	int32_t is_shared; /* kernels of several processes run on it at the same time */
};

/* The same on all ranks, but for what is said of a rank. */
struct tti_devices {
	int ndevices; /* ranks that have one; at least 1 */
	/* Every two ranks have lanes in memory of GPUs: there are no CPU ranks, and no proxy. */
	bool all_mapped;
	struct tti_lane_shape shape;  /* of all lanes: blocks, slots, bytes */
	struct tti_device_fact *fact; /* [n] */
	int nhere;                    /* the most ranks with a device on one host */
	int *place;                   /* [n]: which of those of its host each one is; -1: none */
	int *first;                   /* [n]: the lowest rank with a device on its host */
	/* [n], in rows of nhere bits: bit place[b] of rank a, where both are on the host of this
	 * rank: GPU a reads and writes memory of GPU b. That was tried (reach.h). */
	uint64_t *reach;
	/* The same: the driver says so, but it was found not to be true, by one of the two. */
	uint64_t *refused;
};

/* Whether two ranks have lanes in memory of their GPUs. */
bool tti_devices_reach(const struct tti_devices *devices, int a, int b);

/* -- Of a rank with a device ------------------------------------------------------ */

enum tti_device_way {
	TTI_DEVICE_SELF,
	TTI_DEVICE_MAPPED, /* the two GPUs reach each other */
	TTI_DEVICE_PINNED, /* by the proxy and the link */
};

/* Memory of the GPU, and pinned memory of the same size for what is copied there, or just one of
 * the two. */
struct tti_device_room {
	uint64_t at;      /* where kernels reach it */
	void *host;       /* pinned; NULL: none */
	uint64_t host_at; /* where kernels reach that */
	size_t nbytes;
	struct tti_device_room *next;
};

/* A program in memory of the GPU. */
struct tti_device_program {
	const struct tti_executable *of; /* NULL: forgotten */
	int users;                       /* kernels that may run it */
	struct tti_dev_program *flat;    /* the same on the host */
	struct tti_device_room *room;
	int32_t *peers; /* [npeers]: that it talks to, each once */
	int npeers;
};

/* Towards one peer. */
struct tti_device_peer {
	enum tti_device_way way;
	bool is_connected; /* its lanes are in lanes_at */
	bool is_elsewhere; /* in another process: */
	pid_t pid;
	uint64_t identity; /* util/process.h */
	/* PINNED, [shape.nblocks] each, by block: as the host reaches what the kernel's lanes
	 * to (`out`) and from (`in`) this peer are made of. The proxy is the receiver of `out` and
	 * the sender of `in`; seq and known are its own. */
	struct tti_dev_lane *out, *in;
	void *pinned;
	/* MAPPED: of this rank, for the peer; and the other way round. */
	struct tti_gpu_memory *own, *theirs;
};

/* One of them. */
struct tti_device_piece {
	uint64_t at;
	void *host;
	size_t nbytes;
};

struct tti_device {
	int ordinal, rank, n;
	struct tti_gpu *gpu;         /* src/gpu/cuda.h */
	struct tti_kernels *kernels; /* src/device/kernels.h */
	uint32_t nthreads;           /* of a block */
	struct tti_lane_shape shape; /* of its communicator */
	void *stream;                /* its own: what is copied while lanes are made */

	/* There from the first tti_device_connect() on. */
	struct tti_dev_control *control; /* pinned, as the host reaches it */
	uint64_t control_at;             /* as kernels do */
	uint64_t state_at;               /* struct tti_dev_state */
	uint64_t lanes_at;               /* struct tti_dev_lane[nblocks][2 * n] */

	struct tti_device_peer *peers; /* [n] */
	bool has_proxy;                /* some peer is connected by PINNED */

	struct tti_flights *flights; /* calls that are launched (flight.h) */
	struct tti_lending *lending; /* memory that peers reach (lend.h); NULL: none do */
	uint64_t told_at;            /* struct tti_dev_buffers[nblocks][n]; 0: not yet */
	/* Of each block, when tti_flight_has_looked() was last true. */
	uint32_t looked[TTI_DEV_BLOCKS_MAX];

	/* memory.c */
	TTI_VEC(struct tti_device_program *) programs;
	TTI_VEC(struct tti_device_room *) rooms; /* all that there are */
	struct tti_device_room *free_rooms;
	/* All that was allocated. It stays until the end, and is not freed then, but set aside: to free it
	 * would wait for all kernels of the GPU, and those of ranks that share it may wait for this one. */
	TTI_VEC(struct tti_device_piece) pieces;
	TTI_VEC(uint64_t) tables; /* that nothing lent has now, under the lock of lend.c */
	uint64_t scratch_at;
	size_t scratch_bytes;

	struct tti_device *next_buried; /* open.c */

	/* Of this communicator now, in bytes; any thread reads them. */
	_Atomic size_t device_bytes, pinned_bytes;
};

/* Which ranks have GPUs, and how this one reaches them, for people; nothing if no rank has one. */
TUTTI_CHECKED tutti_status tti_devices_show(const struct tti_comm *comm, struct tti_strbuf *out);

/* The ordinal of the rank's GPU, -1: it has none. */
int tti_device_ordinal(const struct tti_comm *comm);

/* -- Making and ending ------------------------------------------------------------ */

/* At init, when ranks have told each other who they are (info[n]); all ranks call it. comm->devices
 * and comm->device are set, or stay NULL if no rank asks for a device: then this does nothing. The
 * same status on all ranks, with the text of the rank that failed. */
TUTTI_CHECKED tutti_status tti_devices_begin(struct tti_comm *comm,
					     const struct tti_peer_info *info);
/* The same for a child, by what its root found out. */
TUTTI_CHECKED tutti_status tti_devices_derive(struct tti_comm *comm);
/* Once comm->host_slot_bytes is known: set comm->slot_bytes and the shape of lanes by it. */
void tti_devices_settle(struct tti_comm *comm);

/* All blocks of kernels that run, or are launched later, end with TTI_DEV_STOPPED. Any thread,
 * under the communicator's lock; NULL is fine. */
void tti_device_stop(struct tti_device *device);

/* Once no kernel runs any more, free what this rank's device has; half-built and none are fine. What
 * all ranks know stays until tti_devices_free() (facts.h), as children are made by it. */
void tti_device_close(struct tti_comm *comm);

/* -- Before a call ---------------------------------------------------------------- */

/* A communicator whose next call needs lanes to some peers. */
struct tti_device_need {
	struct tti_comm *comm;       /* has a device */
	const struct tti_args *args; /* the user's call, for ranks that ask */
	const int32_t *peers;        /* none is the rank itself */
	int npeers;
	tutti_status status;
};

/* Whether there are lanes to all of them: tti_device_connect() would do nothing. */
bool tti_device_is_connected(const struct tti_device *device, const int32_t *peers, int npeers);

/* Make lanes to peers where there are none yet, for several communicators at once, since their ranks
 * may be those of one thread. The caller has the turn of each of them: all calls before this one are
 * done (sequence.h), and it takes no number itself. A mapped peer comes to the same, by its own call,
 * and is waited for; it talks over the link that the two have.
 * Each need gets its status; no lane to any peer of a need that failed may be used, and the
 * communicator is lost. */
void tti_device_connect(struct tti_device_need *needs, int n);

/* -- What calls need ------------------------------------------------------------------ */

/* The program of an executable in memory of the GPU, made at its first use, with one user more. It
 * stays until the executable is forgotten and no user is left. */
TUTTI_CHECKED tutti_status tti_device_program(struct tti_device *device,
					      const struct tti_executable *of,
					      const struct tti_compiled *compiled,
					      struct tti_device_program **out);
/* One user less: its kernel has ended. */
void tti_device_program_drop(struct tti_device *device, struct tti_device_program *program);
/* The executable is about to be freed, and another may get its address. Kernels that run its program
 * go on. NULL and unknown ones are fine. */
void tti_device_forget(struct tti_device *device, const struct tti_executable *of);

/* Scratch of so many bytes at least. The one before stays until the end, since kernels or graphs may
 * use it; each is at least twice as large as the one before. */
TUTTI_CHECKED tutti_status tti_device_scratch(struct tti_device *device, size_t nbytes,
					      uint64_t *out);

/* Room for what a call brings along, from a list of free ones or new. `with_host`: with pinned
 * memory of the same size. It is put back when no kernel and no graph uses it any more; what is
 * never put back is freed at the end. */
TUTTI_CHECKED tutti_status tti_device_room_take(struct tti_device *device, size_t nbytes,
						bool with_host, struct tti_device_room **out);
void tti_device_room_put(struct tti_device *device, struct tti_device_room *room);

/* Copy to memory of the GPU, and wait for it; also while a stream is captured. */
TUTTI_CHECKED tutti_status tti_device_write(struct tti_device *device, uint64_t to,
					    const void *from, size_t nbytes);

#endif
