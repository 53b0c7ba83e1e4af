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
struct tutti_param_info {
	const char *variable;      /* "TUTTI_SHM_SLOT"                  */
	const char *type;          /* "size", "int", "bool", ...        */
	const char *default_value; /* as one would write it             */
	const char *range;         /* "4K:64M", "" if there is none     */
	const char *help;
	const char *value; /* what is in force                          */
	int is_set;        /* 1: from the environment                   */
};

/* Parameter `index`, 0, 1, ..., of the library. TUTTI_EINVAL past the last. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_param_get(int index, struct tutti_param_info *out);

/* How a call was carried out. */
struct tutti_call_report {
	const char *algorithm; /* "direct"; the library's, that of a file the communicator's */
	const char *transport; /* "shm", "tcp", "self", "shm+tcp" */
	int channels;
};

/* How the last finished call on this communicator was carried out. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_comm_last_call(tutti_comm_t comm,
							  struct tutti_call_report *out);

/* The plan that a communicator goes by, as text or as JSON: which rings and trees, what they
 * carry, what limits it. As JSON it is a file for TUTTI_PLAN_FILE. Where there was nothing to
 * plan (one host with one NUMA node) the text says so and the JSON is null. One that was made
 * of another goes by the other's plan as far as its ranks are in it: the text tells the rings and
 * trees that are left, by its own ranks and in shares of the data; the JSON is null. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_comm_plan(tutti_comm_t comm, int json, char **out);

/* -- Lanes ------------------------------------------------------------------------- */

/* A rank's link to another is made of lanes: between hosts, pairs of NICs. What is known of
 * one, as one end sees it. */
struct tutti_lane {
	size_t size;                        /* sizeof(struct tutti_lane)             */
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
};
/* clang-format off */
#define TUTTI_LANE_INIT { .size = sizeof(struct tutti_lane) }
/* clang-format on */

/* The lanes of the link from this rank to `peer`: *count_out of them, the first `most` in
 * out[], whose size fields are set. None where nothing was sent to that rank yet; one of
 * NIC "memory" where it is reached by shared memory. Waits for calls that are under way.
 * TUTTI_EINVAL: no such rank, or the own. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_comm_lanes(tutti_comm_t comm, int peer,
						      struct tutti_lane *out, int most,
						      int *count_out);

/* How this rank reaches `peer`: "shm", "tcp", "self". Ranks on one host share memory,
 * unless TUTTI_TRANSPORT forbids it. *out is the library's, not to be freed. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_comm_transport(tutti_comm_t comm, int peer,
							  const char **out);

/* How ordinary memory of ranks on one host was measured to be reached, when the communicator `comm`
 * was made or before: lines "reach NAME VALUE" of a tune file in *out, which free() frees; none, and
 * so "", where nothing was measured (one rank, threads, TUTTI_REACH). TUTTI_ENOMEM; else as
 * tutti_comm_count(). Any thread may call it. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_comm_reach(tutti_comm_t comm, char **out);

/* -- Algorithms -------------------------------------------------------------------- */

/* The name of algorithm `index`, 0, 1, ..., of the collective `coll`, not to be freed; NULL past
 * the last. */
TUTTI_API const char *tutti_algorithm_name(tutti_collective coll, int index);

/* The programs of all ranks as text, one step a line, as `tutti show` prints them: of a
 * collective of `nranks` ranks of one host by `algorithm`, with `root`, if it has one. `rank`
 * >= 0 prints that rank alone. TUTTI_EINVAL names what is unknown. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_program_print(tutti_collective coll,
							 const char *algorithm, int nranks,
							 int root, int rank, int json, char **out);

/* tutti_program_print() for ranks on several hosts: of a collective by `algorithm`, rank r
 * being on host host_of[r], hosts any numbers from 0 below nranks. host_of NULL: all on one. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_program_print_hosts(tutti_collective coll,
							       const char *algorithm,
							       const int *host_of, int nranks,
							       int root, int rank, int json,
							       char **out);

/* Read programs in `text` as tutti_program_print() writes them (not as JSON) and prove them:
 * every output holds what it should, nothing deadlocks at any number of slots >= 1.
 * TUTTI_EINVAL with line, rank, step and reason otherwise. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_program_verify(const char *text);

/* -- Ping -------------------------------------------------------------------------- */

/* How tutti_ping() measures. Fill it with TUTTI_PING_OPTIONS_INIT, then change what you need. */
struct tutti_ping_options {
	size_t size;    /* sizeof(struct tutti_ping_options)                   */
	double seconds; /* to spend on a lane, and on all together             */
	size_t bytes;   /* most to send in one direction of one measurement, 0: no limit */
	double reach;   /* seconds in which the two must have come together     */
};
/* clang-format off */
#define TUTTI_PING_OPTIONS_INIT { sizeof(struct tutti_ping_options), 0.3, 0, 10 }
/* clang-format on */

/* What was measured between two ranks, and what is wrong with it.
 * Owner: tutti_ping_free(); strings it hands out are its own. Threads: any may read. */
typedef struct tutti_ping_result *tutti_ping_t;

/* Measure the link between ranks a and b, with messages over the lanes that collectives use.
 * Both call it, alike but for the options, of which those of a count; the results are the same.
 * options NULL: as TUTTI_PING_OPTIONS_INIT. Two ranks that cannot be connected are a finding,
 * and the communicator lives on. TUTTI_EINVAL: a is b, this rank is neither. TUTTI_EPEER and so
 * on: as for any call. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_ping(tutti_comm_t comm, int a, int b,
						const struct tutti_ping_options *options,
						tutti_ping_t *out);

/* Free a result and its strings. NULL is fine. */
TUTTI_API void tutti_ping_free(tutti_ping_t ping);

/* How many lanes were found between the two ranks; 0 for NULL. */
TUTTI_API int tutti_ping_lane_count(tutti_ping_t ping);

/* Lane `lane`, from 0, as rank a sees it, or (of_b not 0) as rank b does. Set out->size, as
 * TUTTI_LANE_INIT does. TUTTI_EINVAL: no such lane. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_ping_get_lane(tutti_ping_t ping, int lane, int of_b,
							 struct tutti_lane *out);

/* What was measured of a lane, or of all together. */
struct tutti_ping_measure {
	size_t size;  /* sizeof(struct tutti_ping_measure)                     */
	int measured; /* 0: the lane is not up, or the ranks not connected     */
	int round_trips;
	double rtt_least_us, rtt_us, rtt_p99_us; /* of 8 bytes; rtt_us is the median       */
	double ab_gbps, ba_gbps;                 /* GB/s from a to b, from b to a, one at a time */
	double both_ab_gbps, both_ba_gbps;       /* both at once                                 */
	unsigned long long a_resent, b_resent;   /* packets                                  */
	double a_starved, b_starved; /* share of the time in which a rank had to wait for a core */
};
/* clang-format off */
#define TUTTI_PING_MEASURE_INIT { .size = sizeof(struct tutti_ping_measure) }
/* clang-format on */

/* What was measured of lane `lane`, from 0; -1: of all of them together. Set out->size, as
 * TUTTI_PING_MEASURE_INIT does. TUTTI_EINVAL: no such lane. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_ping_get_measure(tutti_ping_t ping, int lane,
							    struct tutti_ping_measure *out);

/* What is wrong with a lane or with all, as `tutti ping` says it: docs/ping.md. */
struct tutti_ping_finding {
	size_t size;          /* sizeof(struct tutti_ping_finding)                     */
	int lane;             /* -1: all, or none                                       */
	const char *rule;     /* "slow", "one-way" ...                         */
	const char *severity; /* "error", "warning", "info"                    */
	const char *what, *remedy;
};
/* clang-format off */
#define TUTTI_PING_FINDING_INIT { .size = sizeof(struct tutti_ping_finding) }
/* clang-format on */

/* How many findings there are; 0 for NULL. */
TUTTI_API int tutti_ping_finding_count(tutti_ping_t ping);

/* Finding `index`, from 0. Set out->size, as TUTTI_PING_FINDING_INIT does. TUTTI_EINVAL: no such
 * finding. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_ping_get_finding(tutti_ping_t ping, int index,
							    struct tutti_ping_finding *out);

#ifdef __cplusplus
}
#endif

#endif
