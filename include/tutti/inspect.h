/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TUTTI_INSPECT_H
#define TUTTI_INSPECT_H

/* What a program asks of the library it runs with: its parameters, how a call was carried out, how
 * ranks are connected. Nothing here moves data. What tools ask beside that, in a library of its own,
 * is in tutti/insight.h.
 *
 * Text in *out is the caller's, to be freed with free(), on success only; strings in structs
 * belong to what they were asked of, and live as long. `json` 0: text for people, else JSON.
 *
 * Errors, of all that give a status: TUTTI_EINVAL for NULL where something must be, and for
 * values that are none; TUTTI_ENOMEM. What else may be wrong is said below.
 *
 * Threads: any, but for what a communicator is asked: that counts as a call on it. */

#include "tutti/tutti.h"

#ifdef __cplusplus
extern "C" {
#endif

/* "all_reduce" for TUTTI_ALL_REDUCE; "?" for a value that is none. Never NULL, never to be
 * freed. */
TUTTI_API const char *tutti_collective_name(tutti_collective coll);

/* One parameter of the environment. Strings are the library's. */
typedef struct tutti_param_info {
	const char *variable;      /* "TUTTI_SHM_SLOT"                  */
	const char *type;          /* "size", "int", "bool", ...        */
	const char *default_value; /* as one would write it             */
	const char *range;         /* "4K:64M", "" if there is none     */
	const char *help;
	const char *value; /* what is in force                          */
	int is_set;        /* 1: from the environment                   */
} tutti_param_info;

/* Parameter `index`, 0, 1, ..., of the library. TUTTI_EINVAL past the last. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_param_get(int index, tutti_param_info *out);

/* How a call was carried out. */
typedef struct tutti_call_report {
	const char *algorithm; /* "direct"; the library's, that of a file the communicator's */
	const char *transport; /* "shm", "tcp", "self", "shm+tcp" */
	int channels;
} tutti_call_report;

/* How the last finished call on this communicator was carried out. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_comm_last_call(tutti_comm_t comm,
							  tutti_call_report *out);

/* The plan that a communicator goes by, as text or as JSON: which rings and trees, what they
 * carry, what limits it. As JSON it is a file for TUTTI_PLAN_FILE. Where there was nothing to
 * plan (one host with one NUMA node) the text says so and the JSON is null. One that was made
 * of another goes by the other's plan as far as its ranks are in it: the text tells the rings and
 * trees that are left, by its own ranks and in shares of the data; the JSON is null. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_comm_plan(tutti_comm_t comm, int json, char **out);

/* -- Lanes ------------------------------------------------------------------------- */

/* A rank's link to another is made of lanes: between hosts, pairs of NICs. What is known of
 * one, as one end sees it. */
typedef struct tutti_lane {
	size_t size;                        /* sizeof(tutti_lane)             */
	char local_nic[16], remote_nic[16]; /* "eth0", "" if unknown                 */
	char local_address[64], remote_address[64];
	unsigned local_mbps, remote_mbps; /* speeds the NICs claim, 0: unknown     */
	unsigned local_mtu;               /* 0: unknown                            */
	int up;
	double gbps;               /* GB/s, as last seen; 0: not yet        */
	double rtt_us;             /* 0: unknown                            */
	unsigned long long sent;   /* bytes                                 */
	unsigned long long resent; /* packets that were sent again          */
	unsigned losses;           /* how often it was given up             */
	char trouble[128];         /* why it is not up, or what is odd; ""  */
} tutti_lane;
/* clang-format off */
#define TUTTI_LANE_INIT { sizeof(tutti_lane), "", "", "", "", 0, 0, 0, 0, 0, 0, 0, 0, 0, "" }
/* clang-format on */

/* The lanes of the link from this rank to `peer`: *count_out of them, the first `most` in
 * out[], whose size fields are set. None where nothing was sent to that rank yet; one of
 * NIC "memory" where it is reached by shared memory. Waits for calls that are under way.
 * TUTTI_EINVAL: no such rank, or the own. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_comm_lanes(tutti_comm_t comm, int peer, tutti_lane *out,
						      int most, int *count_out);

/* How this rank reaches `peer`: "shm", "tcp", "self". Ranks on one host share memory,
 * unless TUTTI_TRANSPORT forbids it. *out is the library's, not to be freed. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_comm_transport(tutti_comm_t comm, int peer,
							  const char **out);

/* How ordinary memory of ranks on one host was measured to be reached, when the communicator `comm`
 * was made or before: lines "reach NAME VALUE" of a tune file in *out, which free() frees; none, and
 * so "", where nothing was measured (one rank, threads, TUTTI_REACH). TUTTI_ENOMEM; else as
 * tutti_comm_count(). Any thread may call it. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_comm_reach(tutti_comm_t comm, char **out);

#ifdef __cplusplus
}
#endif

#endif
