/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TUTTI_INSPECT_H
#define TUTTI_INSPECT_H

/* What a program asks of the library that it runs with: its parameters, how a call was carried out,
 * how ranks are connected. Nothing here moves data. What tools ask besides is in tutti/insight.h,
 * of a library of its own.
 *
 * The caller owns the text in *out, which is written on success only, and frees it with free().
 * Strings in structs belong to the object that was asked, and live as long. `json` 0: text for
 * people, else JSON.
 *
 * Errors, of all functions that give a status: TUTTI_EINVAL for a NULL that is not allowed and for
 * a value that is out of range; TUTTI_ENOMEM. The functions below name other errors.
 *
 * Threads: any, but a question to a communicator counts as a call on it. */

#include "tutti/tutti.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The name of a collective, as "all_reduce" for TUTTI_ALL_REDUCE; "?" for a value that is none.
 * Never NULL, never to be freed. */
TUTTI_API const char *tutti_collective_name(tutti_collective coll);

/* One parameter of the environment. Its strings are the library's. */
typedef struct tutti_param_info {
	const char *variable;      /* "TUTTI_SHM_SLOT"                  */
	const char *type;          /* "size", "int", "bool", ...        */
	const char *default_value; /* as one would write it             */
	const char *range;         /* "4K:64M", "" if there is none     */
	const char *help;
	const char *value; /* the value in force                        */
	int is_set;        /* 1: from the environment                   */
} tutti_param_info;

/* Describe parameter `index`, 0, 1, ..., of the library. TUTTI_EINVAL past the last. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_param_get(int index, tutti_param_info *out);

/* How a call was carried out. */
typedef struct tutti_call_report {
	const char *algorithm; /* "direct". The library's; that of a file is the communicator's */
	const char *transport; /* "shm", "tcp", "self", "shm+tcp" */
	int channels;
} tutti_call_report;

/* Describe how the last finished call on this communicator was carried out. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_comm_last_call(tutti_comm_t comm,
							  tutti_call_report *out);

/* Write the plan of a communicator into *out, as text or as JSON: which rings and trees it has,
 * what they carry, what limits them; the text also which ranks have GPUs, which of these reach each
 * other's memory, and which links between GPUs were refused. The JSON is a file for TUTTI_PLAN_FILE. If there was nothing
 * to plan (one host with one NUMA node), the text says so and the JSON is null. A child uses the
 * plan of its parent as far as its ranks are in it: the text then has the rings and trees that are
 * left, with the child's ranks and in shares of the data; the JSON is null. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_comm_plan(tutti_comm_t comm, int json, char **out);

/* The memory that this rank has for a communicator, beyond that of the host which calls may use up. */
typedef struct tutti_memory_use {
	size_t size;                     /* sizeof(tutti_memory_use) */
	unsigned long long device_bytes; /* of its GPU; TUTTI_CUDA_MEMORY limits it */
	unsigned long long pinned_bytes; /* of the host, where that GPU reaches it */
} tutti_memory_use;
/* clang-format off */
#define TUTTI_MEMORY_USE_INIT { sizeof(tutti_memory_use), 0, 0 }
/* clang-format on */

/* Tell how much memory this rank has for a communicator now. It grows with the calls that are made.
 * Set out->size first, as TUTTI_MEMORY_USE_INIT does. TUTTI_EINVAL: that size is none; else as
 * tutti_comm_count(). Any thread may call it. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_comm_memory(tutti_comm_t comm, tutti_memory_use *out);

/* -- Lanes ------------------------------------------------------------------------- */

/* One lane of the link from one rank to another, as one end sees it. Between hosts a lane is a pair
 * of NICs. (UCX has the same word.) */
typedef struct tutti_lane {
	size_t size;                        /* sizeof(tutti_lane)             */
	char local_nic[16], remote_nic[16]; /* "eth0", "" if unknown                 */
	char local_address[64], remote_address[64];
	unsigned local_mbps, remote_mbps; /* speeds that the NICs report, 0: unknown */
	unsigned local_mtu;               /* 0: unknown                            */
	int up;
	double gbps;               /* GB/s, as last seen; 0: none yet       */
	double rtt_us;             /* 0: unknown                            */
	unsigned long long sent;   /* bytes                                 */
	unsigned long long resent; /* packets that were sent again          */
	unsigned losses;           /* how often the lane was given up       */
	char trouble[128];         /* why it is down, or what is odd; ""    */
} tutti_lane;
/* clang-format off */
#define TUTTI_LANE_INIT { sizeof(tutti_lane), "", "", "", "", 0, 0, 0, 0, 0, 0, 0, 0, 0, "" }
/* clang-format on */

/* List the lanes of the link from this rank to `peer`. *count_out becomes their number, and the
 * first `most` of them are in out[], whose size fields are set. There is none if nothing was sent
 * to that rank yet, and one with NIC "memory" if it is reached by shared memory. Waits for calls
 * that are under way. TUTTI_EINVAL: no such rank, or the own one. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_comm_lanes(tutti_comm_t comm, int peer, tutti_lane *out,
						      int most, int *count_out);

/* Tell how this rank reaches `peer`: "shm", "tcp", "self". Ranks on one host share memory, unless
 * TUTTI_TRANSPORT forbids it. *out is the library's, not to be freed. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_comm_transport(tutti_comm_t comm, int peer,
							  const char **out);

/* Tell how ordinary memory of other ranks of the host is reached. It was measured when the
 * communicator `comm` was made or before: *out has lines "reach NAME VALUE" of a tune file, which
 * free() frees, or "" if nothing was measured (one rank, threads, TUTTI_REACH). TUTTI_ENOMEM; else
 * as tutti_comm_count(). Any thread may call it. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_comm_reach(tutti_comm_t comm, char **out);

#ifdef __cplusplus
}
#endif

#endif
