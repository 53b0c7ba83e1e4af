/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TUTTI_TUTTI_H
#define TUTTI_TUTTI_H

/* Tutti: collective communication between ranks.
 *
 * A rank is one member of a communicator: a process, or a thread of one. Every
 * collective is called by all ranks of a communicator in the same order, with
 * the same count, type, operation and root; what differs is detected and is
 * TUTTI_EMISMATCH on every rank.
 *
 * Counts are in elements of the given type, never in bytes.
 *
 * Threads: one communicator handle is used by one thread at a time. Different
 * handles may be used by different threads at once. tutti_comm_abort(),
 * tutti_comm_get_async_error() and tutti_last_error() may be called from any
 * thread at any time before the handle is destroyed.
 *
 * Streams: a call on the NULL stream is done when it returns. A call on a
 * tutti_stream_t returns at once and is done in the order of the stream; its
 * buffers belong to the library until then.
 *
 * Errors: every function returns a tutti_status that must be looked at; the
 * text that says what was wrong, where, and what helps is tutti_last_error(). */

#include <stddef.h>
#include <stdint.h>

#include "tutti/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* -- Version ------------------------------------------------------------- */

#define TUTTI_VERSION_MAJOR 0
#define TUTTI_VERSION_MINOR 1
#define TUTTI_VERSION_PATCH 0
#define TUTTI_VERSION \
	(TUTTI_VERSION_MAJOR * 10000 + TUTTI_VERSION_MINOR * 100 + TUTTI_VERSION_PATCH)

/* The version of the library at run time, as TUTTI_VERSION. Any thread. */
TUTTI_API int tutti_version(void);

/* -- Types, operations --------------------------------------------------- */

/* X(name, value, bytes, text) */
#define TUTTI_TYPE_MAP(X)                    \
	X(INT8, 0, 1, "int8")                \
	X(UINT8, 1, 1, "uint8")              \
	X(INT32, 2, 4, "int32")              \
	X(UINT32, 3, 4, "uint32")            \
	X(INT64, 4, 8, "int64")              \
	X(UINT64, 5, 8, "uint64")            \
	X(FLOAT16, 6, 2, "float16")          \
	X(FLOAT32, 7, 4, "float32")          \
	X(FLOAT64, 8, 8, "float64")          \
	X(BFLOAT16, 9, 2, "bfloat16")        \
	X(FLOAT8_E4M3, 10, 1, "float8_e4m3") \
	X(FLOAT8_E5M2, 11, 1, "float8_e5m2")

typedef enum tutti_type {
#define X(name, value, bytes, text) TUTTI_##name = (value),
	TUTTI_TYPE_MAP(X)
#undef X
} tutti_type;
#define TUTTI_TYPE_COUNT 12

/* X(name, value, text) */
#define TUTTI_OP_MAP(X)    \
	X(SUM, 0, "sum")   \
	X(PROD, 1, "prod") \
	X(MAX, 2, "max")   \
	X(MIN, 3, "min")   \
	X(AVG, 4, "avg")

typedef enum tutti_op {
#define X(name, value, text) TUTTI_##name = (value),
	TUTTI_OP_MAP(X)
#undef X
} tutti_op;
#define TUTTI_OP_COUNT 5

/* Bytes of one element; 0 for a value that is no type. Any thread. */
TUTTI_API size_t tutti_type_size(tutti_type type);

/* "float32", "sum"; "?" for a value that is none. Any thread. */
TUTTI_API const char *tutti_type_name(tutti_type type);
TUTTI_API const char *tutti_op_name(tutti_op op);

/* -- Communicators ------------------------------------------------------- */

typedef struct tutti_comm *tutti_comm_t;
typedef struct tutti_stream *tutti_stream_t;
typedef struct tutti_event *tutti_event_t;

#define TUTTI_UNIQUE_ID_BYTES 128

/* What one rank makes with tutti_get_unique_id() and every rank of the
 * communicator is given, by whatever means (a file, MPI, a socket). It holds
 * a secret: who has it can join. Good for one communicator. */
typedef struct tutti_unique_id {
	char bytes[TUTTI_UNIQUE_ID_BYTES];
} tutti_unique_id;

/* How a communicator is made. Fill it with TUTTI_CONFIG_INIT, then change what
 * you need; `size` lets a newer library read an older caller's struct.
 * A variable of the environment wins over a field, always. */
typedef struct tutti_config {
	size_t size;
	/* 1 (default): init returns when done. 0: at once; poll
	 * tutti_comm_get_async_error() until it is no longer TUTTI_AGAIN. */
	int blocking;
	const char *name;      /* shown in logs; may be NULL. Copied.            */
	const char *transport; /* "auto" (NULL), or a list like "shm,tcp"        */
	const char *algo;      /* as TUTTI_ALGO; NULL: chosen. Alike on all ranks */
	/* A call that takes longer fails with TUTTI_ETIMEOUT; 0 (default): never. */
	int timeout_ms;
} tutti_config;

/* clang-format off */
#define TUTTI_CONFIG_INIT { sizeof(tutti_config), 1, NULL, NULL, NULL, 0 }
/* clang-format on */

/* Make a new id and start the thread that serves the ranks that come with it.
 * If TUTTI_COMM_ID is set, the id is made from it and nothing is started here:
 * rank 0 does that. Thread-safe. TUTTI_ESYS: no usable network address. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_get_unique_id(tutti_unique_id *out);

/* Join the communicator of `nranks` ranks as `rank` (0 .. nranks-1).
 * Returns when all ranks have come, or TUTTI_ETIMEOUT with the missing ranks
 * named after TUTTI_BOOT_TIMEOUT_MS. *out is written on success only and is
 * the caller's: tutti_comm_destroy() or tutti_comm_abort(). */
TUTTI_API TUTTI_CHECKED tutti_status tutti_comm_init_rank(tutti_comm_t *out, int nranks,
							  tutti_unique_id id, int rank);

/* The same with a configuration; `config` may be NULL and is not kept. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_comm_init_rank_config(tutti_comm_t *out, int nranks,
								 tutti_unique_id id, int rank,
								 const tutti_config *config);

/* The same with `nids` ids, made by `nids` different processes, for large
 * jobs: rank r checks in at root r * nids / nranks (contiguous and even).
 * 1 <= nids <= nranks; all ranks pass the same ids in the same order. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_comm_init_scalable(tutti_comm_t *out, int nranks,
							      int rank, int nids,
							      const tutti_unique_id *ids,
							      const tutti_config *config);

/* Make `nranks` communicators whose ranks are threads of this process.
 * out[0 .. nranks-1] are written on success only; each is used by a thread of
 * its own (or by one thread inside tutti_group_start/end). No network. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_comm_init_all(tutti_comm_t *out, int nranks,
							 const tutti_config *config);

/* Join the communicator of all processes that one launcher started: `tutti
 * run`, Open MPI, MPICH (Hydra), Slurm, torchrun, or TUTTI_RANK and
 * TUTTI_NRANKS by hand. The id comes from TUTTI_COMM_ID (host:port), from a
 * file named by TUTTI_COMM_FILE that rank 0 writes, or from torchrun's
 * MASTER_ADDR. TUTTI_EUSAGE says what is missing. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_comm_init_env(tutti_comm_t *out,
							 const tutti_config *config);

/* Number of ranks, own rank. *out is written on success only. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_comm_count(tutti_comm_t comm, int *out);
TUTTI_API TUTTI_CHECKED tutti_status tutti_comm_rank(tutti_comm_t comm, int *out);

/* Wait until all calls of all ranks on this communicator are done. Collective.
 * Afterwards only tutti_comm_destroy() is allowed. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_comm_finalize(tutti_comm_t comm);

/* Free the communicator once this rank's own calls are done; does not wait for
 * other ranks (tutti_comm_finalize() does), so one thread may destroy the
 * communicators of several. The handle is gone whatever the status says. NULL
 * is fine. */
TUTTI_API tutti_status tutti_comm_destroy(tutti_comm_t comm);

/* Give up: every pending call on this rank returns TUTTI_EABORTED, every other
 * rank gets TUTTI_EPEER, and the handle is freed once they have returned.
 * Any thread. NULL is fine. */
TUTTI_API tutti_status tutti_comm_abort(tutti_comm_t comm);

/* TUTTI_OK while all is well, TUTTI_AGAIN while a nonblocking init is under
 * way, else the error that ended the communicator or its init. Never blocks. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_comm_get_async_error(tutti_comm_t comm,
								tutti_status *out);

/* The text of the last error on `comm`, or of this thread's last failed call
 * if comm is NULL. Never NULL; valid until the next failing call on it. */
TUTTI_API const char *tutti_last_error(tutti_comm_t comm);

/* -- Collectives --------------------------------------------------------- */

/* In place: pass the same address as send and receive buffer (all_gather: send
 * == recv + rank * count; reduce_scatter: recv == send + rank * count). Any
 * other overlap is TUTTI_EINVAL. A count of 0 only orders. */

/* recv[i] = op over all ranks of send[i], i < count, on every rank. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_all_reduce(const void *send, void *recv, size_t count,
						      tutti_type type, tutti_op op,
						      tutti_comm_t comm, tutti_stream_t stream);

/* recv[i] = op over all ranks of send[i] on `root`; recv is not looked at on
 * the other ranks. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_reduce(const void *send, void *recv, size_t count,
						  tutti_type type, tutti_op op, int root,
						  tutti_comm_t comm, tutti_stream_t stream);

/* recv[i] = root's send[i] on every rank; send is looked at on the root only. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_broadcast(const void *send, void *recv, size_t count,
						     tutti_type type, int root, tutti_comm_t comm,
						     tutti_stream_t stream);

/* recv[r * count + i] = rank r's send[i], i < count, on every rank. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_all_gather(const void *send, void *recv, size_t count,
						      tutti_type type, tutti_comm_t comm,
						      tutti_stream_t stream);

/* recv[i] = op over all ranks of send[rank * count + i], i < count. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_reduce_scatter(const void *send, void *recv,
							  size_t count, tutti_type type,
							  tutti_op op, tutti_comm_t comm,
							  tutti_stream_t stream);

/* Returns on no rank before all ranks have called it. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_barrier(tutti_comm_t comm, tutti_stream_t stream);

/* Send to and receive from one peer. Messages between two ranks match in the
 * order of the calls; count and type are the same on both sides. A send may
 * return before the receive has started, or wait for it: do not rely on
 * either; put calls that need each other into one group. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_send(const void *send, size_t count, tutti_type type,
						int peer, tutti_comm_t comm, tutti_stream_t stream);
TUTTI_API TUTTI_CHECKED tutti_status tutti_recv(void *recv, size_t count, tutti_type type, int peer,
						tutti_comm_t comm, tutti_stream_t stream);

/* Between start and end calls only queue; at the outermost end all run, those
 * on different communicators and all sends and receives at the same time, so
 * their order inside the group cannot deadlock. Per thread; nests. A call that
 * fails inside the group is reported by the call and again by the end, and
 * then nothing of the group runs. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_group_start(void);
TUTTI_API TUTTI_CHECKED tutti_status tutti_group_end(void);

/* -- Streams and events -------------------------------------------------- */

/* A queue of calls, done in order by a thread of its own. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_stream_create(tutti_stream_t *out);
/* Waits for what is queued. NULL is fine. */
TUTTI_API tutti_status tutti_stream_destroy(tutti_stream_t stream);
/* Wait until all that is queued is done; the first error of it. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_stream_synchronize(tutti_stream_t stream);
/* TUTTI_AGAIN while something is queued, else as synchronize. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_stream_query(tutti_stream_t stream);
/* Later calls on `stream` start only after `event` has happened. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_stream_wait_event(tutti_stream_t stream,
							     tutti_event_t event);

/* A point in a stream. An event that was never recorded has happened. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_event_create(tutti_event_t *out);
TUTTI_API tutti_status tutti_event_destroy(tutti_event_t event);
TUTTI_API TUTTI_CHECKED tutti_status tutti_event_record(tutti_event_t event, tutti_stream_t stream);
TUTTI_API TUTTI_CHECKED tutti_status tutti_event_synchronize(tutti_event_t event);
TUTTI_API TUTTI_CHECKED tutti_status tutti_event_query(tutti_event_t event);

#ifdef __cplusplus
}
#endif

#endif
