/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TUTTI_COMM_H
#define TUTTI_COMM_H

/* Communicators: how they are made, asked and ended. Part of tutti.h, which is what to include and
 * which says what holds for threads and errors. */

#include <stddef.h>
#include <stdint.h>

#include "tutti/status.h"
#include "tutti/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* -- Making ---------------------------------------------------------------- */

/* Bytes of a unique id, as it is handed from rank to rank. */
#define TUTTI_UNIQUE_ID_BYTES 128

/* A unique id. One rank makes it with tutti_get_unique_id() and gives it to every rank of the
 * communicator, by whatever means (a file, MPI, a socket). It holds a secret: whoever has it can
 * join. Good for one communicator. */
typedef struct tutti_unique_id {
	char bytes[TUTTI_UNIQUE_ID_BYTES];
} tutti_unique_id;

/* How a communicator is made. Fill it with TUTTI_CONFIG_INIT, then change what you need; `size`
 * lets a newer library read an older caller's struct. A variable of the environment that is set
 * wins over the field. Two exceptions: where the program asks for encryption, TUTTI_ENCRYPT=0 does
 * not take it away, and where it names a device, TUTTI_CUDA_DEVICE does not name another. */
typedef struct tutti_config {
	size_t size;
	/* 1 (default): init returns when done. 0: it returns at once; poll
	 * tutti_comm_get_async_error() until the answer is no longer TUTTI_AGAIN. */
	int blocking;
	const char *name;      /* shown in logs; may be NULL. Copied.            */
	const char *transport; /* "auto" (NULL), or a list like "shm,tcp"        */
	const char *algo;      /* as TUTTI_ALGO; NULL: chosen. The same on all ranks */
	/* A call that takes longer fails with TUTTI_ETIMEOUT; 0 (default): never. Each rank may
	 * have its own. tutti_comm_set_timeout() changes it later. The variable is
	 * TUTTI_TIMEOUT_MS. */
	int timeout_ms;
	/* 1: all reductions give the same bits however they are carried out, as if each were called
	 * with tutti_op_reproducible(). 0 (default): only those that are. The same on all ranks.
	 * The variable is TUTTI_REPRODUCIBLE. */
	int reproducible;
	/* 1: all that goes over TCP is encrypted and authenticated, windows included, also for
	 * communicators that are made of this one. 0 (default): only what the ranks say to begin,
	 * to watch each other and to end is. The same on all ranks. The variable is TUTTI_ENCRYPT:
	 * 1 asks for it as well. */
	int encrypt;
	/* The traffic class of the packets that carry data over TCP, 1 to 255, for networks that
	 * use one: the byte that IPv4 calls Type of Service and IPv6 Traffic Class, so 4 times the
	 * DSCP. The kernel keeps the two lowest bits for itself. 0 (default): the system's. Each
	 * rank may have its own, for what it sends; a child whose field is 0 takes it from the
	 * parent. The variable is TUTTI_TRAFFIC_CLASS. */
	int traffic_class;
	/* How long this rank waits for ranks that do not come while a communicator is made, by an
	 * init, split, dup, grow or shrink. Then TUTTI_ETIMEOUT names them. Each rank may have its
	 * own; the first that is over ends the init of all. A child whose field is 0 takes it from
	 * the parent. Later it is how long a rank tries to reach the machine of a peer by TCP; it
	 * does not limit the wait for a peer that is late to a call. 0 (default):
	 * TUTTI_BOOT_TIMEOUT_MS, which is the variable. */
	int64_t boot_timeout_ms;
	/* The GPU of this rank, by its CUDA ordinal in this process. Kernels on that GPU carry out
	 * this rank's calls, with buffers that the GPU reaches: its own memory, or pinned memory of
	 * the host. Ranks with and without a GPU may be in one communicator, and several ranks may
	 * share a GPU. -1 (default): what TUTTI_CUDA_DEVICE says, none if it is not set; in a
	 * child: that of the parent, which a child cannot change. */
	int device;
} tutti_config;

/* clang-format off */
#define TUTTI_CONFIG_INIT { sizeof(tutti_config), 1, NULL, NULL, NULL, 0, 0, 0, 0, 0, -1 }
/* clang-format on */

/* Make a new unique id, and start the thread that serves the ranks that come with it. If
 * TUTTI_COMM_ID is set, the id is made from it and no thread is started: rank 0 does that. Where
 * there is no network the id is for ranks of this host. Thread-safe. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_get_unique_id(tutti_unique_id *out);

/* Join the communicator of `nranks` ranks as `rank` (0 .. nranks-1). Returns when all ranks have
 * come, or TUTTI_ETIMEOUT with the missing ranks named after TUTTI_BOOT_TIMEOUT_MS
 * (config.boot_timeout_ms). *out is written on success only and is the caller's, until
 * tutti_comm_destroy() or tutti_comm_abort(). */
TUTTI_API TUTTI_CHECKED tutti_status tutti_comm_init_rank(tutti_comm_t *out, int nranks,
							  tutti_unique_id id, int rank);

/* tutti_comm_init_rank() with a configuration: join the communicator of `nranks` ranks as `rank`.
 * With config.blocking 0 it returns at once; ask *out by tutti_comm_get_async_error() when it is
 * ready. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_comm_init_rank_config(tutti_comm_t *out, int nranks,
								 tutti_unique_id id, int rank,
								 const tutti_config *config);

/* tutti_comm_init_rank_config() with `nids` ids, made by as many processes, for large jobs. `rank`
 * meets the others at root rank * nids / nranks (contiguous and even). 1 <= nids <= nranks; all
 * ranks pass the same ids in the same order. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_comm_init_rank_scalable(tutti_comm_t *out, int nranks,
								   int rank, int nids,
								   const tutti_unique_id *ids,
								   const tutti_config *config);

/* Deprecated, and gone with version 0.2: tutti_comm_init_rank_scalable(), with its `nranks`, `rank`,
 * `nids` and `ids`. *out is the caller's. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_comm_init_scalable(tutti_comm_t *out, int nranks,
							      int rank, int nids,
							      const tutti_unique_id *ids,
							      const tutti_config *config)
	TUTTI_DEPRECATED("tutti_comm_init_rank_scalable");

/* Make a communicator of `nranks` ranks that are threads of this process, without a network. out[0
 * .. nranks-1], the handles of its ranks, are written on success only. Each is used by a thread of
 * its own (or all by one thread inside a group) and destroyed by itself. TUTTI_EINVAL: nranks is
 * less than 1. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_comm_init_all(tutti_comm_t *out, int nranks,
							 const tutti_config *config);

/* Join the communicator of all processes that one launcher started. The launcher is `tutti run`,
 * mpirun of Open MPI, MPICH or Intel MPI, srun, flux run, torchrun, an Indexed Job of Kubernetes
 * (JOB_COMPLETION_INDEX and WORLD_SIZE), or whoever sets TUTTI_RANK and TUTTI_NRANKS by hand. A
 * process may call it several times, as often as the others do: each call makes another
 * communicator.
 *
 * The ranks meet by the first of these that is there: TUTTI_COMM_ID (host:port of rank 0, with
 * TUTTI_COMM_SECRET); a file named by TUTTI_COMM_FILE; the key-value store of the launcher, through
 * which rank 0 hands a unique id to the others; MASTER_ADDR and MASTER_PORT, as torchrun sets them,
 * with TUTTI_COMM_SECRET or else the secret in ~/.config/tutti/secret, which is made if it is not
 * there.
 *
 * The store is that of PMIx (libpmix.so.2, loaded at run time) under Open MPI and srun --mpi=pmix,
 * that of PMI-1 by the socket that PMI_FD names under MPICH, Intel MPI, Flux and srun --mpi=pmi2,
 * and that of Slurm's libpmi.so.0, loaded at run time, under srun --mpi=none. With PMI-1 and PMIx
 * only the process that the launcher started is a rank. It says goodbye to the launcher when it
 * ends by exit(); the launcher takes a process that ends otherwise for one that has crashed.
 *
 * A host name that does not resolve yet, as that of a service whose containers are starting, is
 * tried again until config.boot_timeout_ms (0: TUTTI_BOOT_TIMEOUT_MS) are over, also if
 * config.blocking is 0; then TUTTI_ETIMEOUT. Once it resolves, the ranks have as much time again to
 * come.
 *
 * Rank 0 makes the file, removes it when all have come, and replaces one that an earlier run has
 * left. If rank 0 fails, it leaves its error there for ranks that come later. The others read the
 * file only if it belongs to their user and nobody else may read or write it. TUTTI_EUSAGE says
 * what is missing, or wrong with the file. *out is written on success only and is the caller's,
 * until tutti_comm_destroy() or tutti_comm_abort(). */
TUTTI_API TUTTI_CHECKED tutti_status tutti_comm_init_env(tutti_comm_t *out,
							 const tutti_config *config);

/* -- Made of others ---------------------------------------------------------
 *
 * A child is a communicator that is made of another, its parent. It is a communicator like any
 * other: it has its own order of calls, may be used by another thread at the same time as its
 * parent, outlives it, and is destroyed by itself. It costs little, because it shares connections,
 * threads and what is known of the machines with the first communicator of its family. A duplicate
 * of up to 64 ranks takes less than 10 KiB a rank of heap and shared memory until its first call
 * (over TCP 0.3 KiB more for each further host); programs, and memory for messages, come with the
 * calls that need them.
 *
 * All ranks concerned make the calls below, in the same order on all (but
 * tutti_comm_create_group(), which has an order of its own). The calls wait for the other ranks,
 * but neither disturb what runs on the parent, nor wait for it. `config` is the same on all ranks;
 * NULL, or a field left NULL: as the parent's. Inside a group, or with config.blocking 0, they
 * return at once, as an init does; the child's rank and size are known when it is done. A parent
 * that is lost cannot be split (its status is returned), only shrunk with TUTTI_SHRINK_FAILED. No
 * other thread may destroy the parent while a child is being made. *out is written on success only.
 *
 * If a rank fails alone, because it has no memory or thread for the call, the others get
 * TUTTI_EPEER at once. The parent is as it was, and all may call again, tutti_comm_create_group()
 * with another tag. With TUTTI_SHRINK_FAILED the others may have to wait for such a rank, as for
 * one that has not called. */

/* The color of ranks that join none of the communicators that a split makes. */
#define TUTTI_NOCOLOR (-1)

/* Split a communicator into several. Ranks that pass the same `color` (0 or more) make one, in the
 * order of their `key`, which is any number, and of their ranks where keys are equal.
 * TUTTI_NOCOLOR: this rank joins none, and *out = NULL. TUTTI_EINVAL: another negative color, or a
 * config that differs from that of others with the color. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_comm_split(tutti_comm_t comm, int color, int key,
						      tutti_comm_t *out,
						      const tutti_config *config);

/* Duplicate a communicator: the same ranks in the same order, with an order of calls of its own. It
 * is for a thread, or a library, that must not disturb the calls of the parent. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_comm_dup(tutti_comm_t comm, tutti_comm_t *out,
						    const tutti_config *config);

/* Make a communicator of the ranks ranks[0 .. count-1] of `comm`, in that order. Only they call,
 * and this rank must be one of them; the others may be in any call or in none. All members pass the
 * same `ranks` in the same order; the library does not keep the array. It costs no more than
 * tutti_comm_split().
 *
 * It takes no place in the order of calls on `comm`, and disturbs nothing there. Unlike all other
 * calls it may be made while another thread is in a call on `comm`, and by several threads at once.
 * Then `tag`, 0 or more, tells the calls apart, as in MPI_Comm_create_group(): two of them that one
 * rank is in at the same time need different tags; groups without a common rank may use the same.
 *
 * TUTTI_EINVAL: `ranks` is empty, has a number twice, has one that is no rank, or lacks this rank;
 * or the members' `config` differ. TUTTI_EUSAGE: this rank is already in such a call with this tag.
 * TUTTI_EMISMATCH on all members: two of them pass the same tag and different ranks that include
 * each other, and so would wait for each other for ever. TUTTI_ETIMEOUT names who has not called
 * within config.boot_timeout_ms (0: TUTTI_BOOT_TIMEOUT_MS). TUTTI_EPEER: a rank of `comm` died, or
 * a member gave up. TUTTI_EREVOKED: `comm` was revoked. A member that calls after the others have
 * failed gets their status.
 *
 * A rank remembers each list of ranks that it has called with, with each tag, in 16 bytes until
 * `comm` is destroyed, and searches them in each call. So use few tags again and again, not a new
 * one for each call. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_comm_create_group(tutti_comm_t comm, const int *ranks,
							     int count, int tag, tutti_comm_t *out,
							     const tutti_config *config);

/* The `flags` of tutti_comm_shrink(): who is left out besides the ranks that are named. */
#define TUTTI_SHRINK_DEFAULT 0
#define TUTTI_SHRINK_FAILED  1

/* Make a communicator of the ranks that are not in exclude[0 .. nexclude-1], in their order.
 * Excluded ranks do not call it. `exclude` is the same on all that do.
 *
 * With TUTTI_SHRINK_FAILED in `flags` the dead ranks are left out, too. The surviving ranks find
 * out who is dead, and agree: all of them get the same ranks. The parent may be lost or revoked,
 * and is revoked if it is not. A rank that has neither died nor called is waited for
 * (config.boot_timeout_ms, then TUTTI_ETIMEOUT names it). A rank that destroyed the communicator
 * but not all of its family must be named. If a rank dies while the child is being made, the child
 * is lost: shrink that. TUTTI_EPEER: the others have agreed without this rank. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_comm_shrink(tutti_comm_t comm, const int *exclude,
						       int nexclude, tutti_comm_t *out,
						       const tutti_config *config, int flags);

/* Make a communicator of the ranks of `comm`, with the numbers they have, and new ones behind them,
 * `nranks` in all. One rank makes an id with tutti_get_unique_id() and gives it to those that are
 * to join, by whatever means. Then all call, old and new, and wait for each other.
 *
 * An old rank passes `comm`, nranks, and -1 as rank. At least one old rank passes the id, the
 * others the same or NULL. A new rank passes NULL as comm, nranks, the id, and as rank its number,
 * one of those behind comm's. For a new rank the call is tutti_comm_init_rank_config(), with such a
 * `config` as the parent was made with, so a program need not know whether it is there from the
 * start. The new communicator shares nothing with `comm`, and goes on when that is destroyed or
 * lost. It costs as much as any that ranks make by an id. To replace dead ranks, shrink, and then
 * grow what is left.
 *
 * If it fails, `comm` is as it was: it can be used, and grow with another id. TUTTI_EINVAL: old
 * ranks pass different things, no id, one that was used, or an nranks that is not more than there
 * are. TUTTI_EMISMATCH: a new rank passes another nranks, or a number that is taken. TUTTI_EPEER: a
 * rank died or gave up on the way (late, some may have got the communicator, which is lost then).
 * TUTTI_ETIMEOUT names those that did not come within config.boot_timeout_ms. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_comm_grow(tutti_comm_t comm, int nranks,
						     const tutti_unique_id *id, int rank,
						     tutti_comm_t *out, const tutti_config *config);

/* End every pending call of every rank, and every later one, with TUTTI_EREVOKED. The communicator
 * can then be shrunk or destroyed. It also ends calls that wait for ranks of the communicator to
 * split, grow or shrink it by name, but not with TUTTI_SHRINK_FAILED. It is for a rank that has
 * found something wrong while others may wait for it in a call. Does not wait. If something else
 * ended the communicator before, that stays its status. Any thread. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_comm_revoke(tutti_comm_t comm);

/* Limit later calls of this rank on `comm`: those that take longer than `timeout_ms` fail with
 * TUTTI_ETIMEOUT; 0: never. A call keeps the timeout that was set when it was made, wherever it
 * waits: calls that run, or are queued on a stream, keep the old one. A call in a group is made by
 * the group's end, a persistent call by its start. To give a single call a timeout of its own, set
 * it before the call and set it back after it. Calls of windows, and calls of message channels that
 * have no limit of their own, go by what is set while they wait.
 *
 * The time counts from when the call begins to wait for others, not from when it was queued. Other
 * ranks need not do the same. It wins over config.timeout_ms and TUTTI_TIMEOUT_MS, and a child that
 * is made without a config takes it over. TUTTI_EINVAL: less than 0. TUTTI_ENOMEM: no memory to
 * keep it beside those that queued calls go by. Any thread; does not wait. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_comm_set_timeout(tutti_comm_t comm, int timeout_ms);

/* Set the algorithms that later collectives of this rank on `comm` may take, in the words of
 * TUTTI_ALGO, as "all_reduce:ring,tree". NULL: those of the configuration or the variable; "":
 * whichever is best. All ranks do the same before the same call: if they run a call in different
 * ways, it is TUTTI_EMISMATCH. A call that is queued on a stream or in a group, and a persistent
 * call, keep what was set when they were made. To give a single call its algorithm, set it before
 * the call and set it back after it. Sends, handoffs and collectives with counts for each rank go
 * by the configuration, and so do children.
 *
 * A call that no algorithm of `algo` can do is TUTTI_EINVAL, on all ranks. The library keeps a copy
 * of `algo` until the communicator ends, one for each text. TUTTI_EINVAL: not in these words; the
 * text names the word and what there is. TUTTI_ENOMEM: no memory to keep it. Any thread; does not
 * wait. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_comm_set_algorithm(tutti_comm_t comm, const char *algo);

/* -- Questions, the end ---------------------------------------------------- */

/* Tell how many ranks the communicator has. Never blocks. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_comm_count(tutti_comm_t comm, int *out);

/* Tell which rank of the communicator this is, from 0. Never blocks. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_comm_rank(tutti_comm_t comm, int *out);

/* Tell which GPU this rank has, by its CUDA ordinal in this process; -1: none. TUTTI_EUSAGE: the
 * communicator is still being made. Never blocks. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_comm_device(tutti_comm_t comm, int *out);

/* Wait until all calls of all ranks on this communicator are done. Collective. Afterwards only
 * tutti_comm_destroy() is allowed. TUTTI_EMISMATCH names ranks that named different roots in an
 * earlier call, if no call has found that yet. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_comm_finalize(tutti_comm_t comm);

/* Free the communicator once this rank's own calls are done. It does not wait for other ranks
 * (tutti_comm_finalize() does), so one thread may destroy the communicators of several.
 *
 * If the hosts of other ranks do not have all that this rank has sent over TCP, it waits while they
 * take some of it within each second, at most 10 s. Then the rest is lost, with a warning, and a
 * rank that waits for it fails with TUTTI_EPEER. tutti_comm_finalize() before it rules that out.
 * The handle is gone whatever the status says. NULL is fine. TUTTI_EMISMATCH: messages of other
 * ranks say that they named another root than this rank in an earlier call. That is found only if
 * they have come by now; tutti_comm_finalize() waits for them.
 *
 * CUDA graphs that have captured calls should be destroyed before. A kernel of theirs that has begun is
 * waited for as a call is. One that begins later, or that tutti_comm_abort() meets, ends without its
 * peers and reports nothing: what it would have written is undefined, and no memory is touched that
 * is not its own, since what a graph uses is freed after the graph. */
TUTTI_API tutti_status tutti_comm_destroy(tutti_comm_t comm);

/* Abort a communicator. Every pending call on this rank returns TUTTI_EABORTED, every other
 * rank gets TUTTI_EPEER, and the handle is freed once the calls have returned. Any thread. NULL
 * is fine. */
TUTTI_API tutti_status tutti_comm_abort(tutti_comm_t comm);

/* Tell the state of a communicator. *out becomes TUTTI_OK while all is well, TUTTI_AGAIN while a
 * nonblocking init is under way, else the error that ended the communicator or its init. Never
 * blocks. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_comm_get_async_error(tutti_comm_t comm,
								tutti_status *out);

/* The text of the last error on `comm`, or of this thread's last failed call if comm is NULL. Never
 * NULL, not to be freed; valid until the next failing call on it. Any thread. */
TUTTI_API const char *tutti_last_error(tutti_comm_t comm);

/* Set whether a call that fails also logs its text at level WARN, as it does until `on` is 0. A
 * program that shows tutti_last_error() itself turns that off, so that each error is seen once. It
 * concerns only the terminal: a log that goes to a file (TUTTI_DEBUG_FILE), or that was asked for
 * (TUTTI_DEBUG=INFO, TRACE), has all errors in any case. For the whole process. Any thread. */
TUTTI_API void tutti_log_errors(int on);

#ifdef __cplusplus
}
#endif

#endif
