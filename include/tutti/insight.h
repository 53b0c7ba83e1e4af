/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TUTTI_INSIGHT_H
#define TUTTI_INSIGHT_H

/* What tools ask: how a machine is wired, what would be planned for it and why, what an algorithm
 * does, how links perform, how long calls take. Nothing here moves data but tutti_ping().
 *
 * It is in a library of its own, which a rank need not load: link with -ltutti_insight and -ltutti
 * (pkg-config tutti-insight, CMake tutti::tutti_insight). Both libraries are of one release: the
 * loader refuses one of another.
 *
 * The caller owns the text in *out, which is written on success only, and frees it with free().
 * Strings in structs belong to the object that was asked, and live as long. `json` 0: text for
 * people, else JSON.
 *
 * Errors, of all functions that give a status: TUTTI_EINVAL for a NULL that is not allowed and for
 * a value that is out of range; TUTTI_ENOMEM. The functions below name other errors.
 *
 * Threads: any, but a question to a communicator counts as a call on it. */

#include "tutti/inspect.h"

#ifdef __cplusplus
extern "C" {
#endif

/* -- Algorithms -------------------------------------------------------------------- */

/* The name of algorithm `index`, 0, 1, ..., of the collective `coll`, not to be freed; NULL past
 * the last. */
TUTTI_API const char *tutti_algorithm_name(tutti_collective coll, int index);

/* Print the programs of all ranks, one step a line, as `tutti show` does: those of a collective by
 * `algorithm` on `nranks` ranks of one host, with `root`, if it has one. `rank` >= 0 prints that
 * rank alone. TUTTI_EINVAL names what is unknown. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_program_print(tutti_collective coll,
							 const char *algorithm, int nranks,
							 int root, int rank, int json, char **out);

/* tutti_program_print() for ranks on several hosts: of a collective by `algorithm`, where rank r is
 * on host host_of[r]. Hosts are any numbers from 0 below nranks. host_of NULL: all ranks are on
 * one. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_program_print_hosts(tutti_collective coll,
							       const char *algorithm,
							       const int *host_of, int nranks,
							       int root, int rank, int json,
							       char **out);

/* Prove programs. `text` has them in the form of tutti_program_print() (not JSON). Every output
 * must hold what it should, and nothing may deadlock at any number of slots >= 1. TUTTI_EINVAL
 * otherwise, with line, rank, step and reason. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_program_verify(const char *text);

/* -- Ping -------------------------------------------------------------------------- */

/* How tutti_ping() measures. Fill it with TUTTI_PING_OPTIONS_INIT, then change what you need. */
typedef struct tutti_ping_options {
	size_t size;    /* sizeof(tutti_ping_options)                   */
	double seconds; /* to measure each lane, and all of them together      */
	size_t bytes;   /* limit in one direction of one measurement, 0: none */
	double reach;   /* limit in seconds for the two to reach each other      */
} tutti_ping_options;
/* clang-format off */
#define TUTTI_PING_OPTIONS_INIT { sizeof(tutti_ping_options), 0.3, 0, 10 }
/* clang-format on */

/* What was measured between two ranks, and what is wrong with it. Owner: tutti_ping_free(); its
 * strings are its own. Threads: any may read. */
typedef struct tutti_ping_result *tutti_ping_t;

/* Measure the link between ranks a and b, with messages over the lanes that collectives use. Both
 * ranks call it with the same a and b; the options of rank a count, and both get the same results.
 * options NULL: as TUTTI_PING_OPTIONS_INIT. Two ranks that cannot be connected are a finding, and
 * the communicator lives on. TUTTI_EINVAL: a is b, or this rank is neither. TUTTI_EPEER and so on:
 * as for any call. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_ping(tutti_comm_t comm, int a, int b,
						const tutti_ping_options *options,
						tutti_ping_t *out);

/* Free a result and its strings. NULL is fine. */
TUTTI_API void tutti_ping_free(tutti_ping_t ping);

/* How many lanes were found between the two ranks; 0 for NULL. */
TUTTI_API int tutti_ping_lane_count(tutti_ping_t ping);

/* Describe lane `lane`, from 0, as rank a sees it, or (of_b not 0) as rank b does. Set out->size
 * first, as TUTTI_LANE_INIT does. TUTTI_EINVAL: no such lane. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_ping_get_lane(tutti_ping_t ping, int lane, int of_b,
							 tutti_lane *out);

/* What was measured of a lane, or of all together. */
typedef struct tutti_ping_measure {
	size_t size;  /* sizeof(tutti_ping_measure)                     */
	int measured; /* 0: the lane is not up, or the ranks not connected     */
	int round_trips;
	double rtt_least_us, rtt_us, rtt_p99_us; /* of 8 bytes; rtt_us is the median       */
	double ab_gbps, ba_gbps;                 /* GB/s from a to b, from b to a, one at a time */
	double both_ab_gbps, both_ba_gbps;       /* both at once                                 */
	unsigned long long a_resent, b_resent;   /* packets                                  */
	double a_starved, b_starved; /* share of the time in which the rank waited for a core */
} tutti_ping_measure;
/* clang-format off */
#define TUTTI_PING_MEASURE_INIT { sizeof(tutti_ping_measure), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }
/* clang-format on */

/* Tell what was measured of lane `lane`, from 0, or with -1 of all of them together. Set out->size
 * first, as TUTTI_PING_MEASURE_INIT does. TUTTI_EINVAL: no such lane. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_ping_get_measure(tutti_ping_t ping, int lane,
							    tutti_ping_measure *out);

/* What is wrong with a lane or with all, as `tutti ping` says it: docs/ping.md. */
typedef struct tutti_ping_finding {
	size_t size;          /* sizeof(tutti_ping_finding)                     */
	int lane;             /* -1: all, or none                                       */
	const char *rule;     /* "slow", "one-way" ...                         */
	const char *severity; /* "error", "warning", "info"                    */
	const char *what, *remedy;
} tutti_ping_finding;
/* clang-format off */
#define TUTTI_PING_FINDING_INIT { sizeof(tutti_ping_finding), 0, NULL, NULL, NULL, NULL }
/* clang-format on */

/* How many findings there are; 0 for NULL. */
TUTTI_API int tutti_ping_finding_count(tutti_ping_t ping);

/* Describe finding `index`, from 0. Set out->size first, as TUTTI_PING_FINDING_INIT does.
 * TUTTI_EINVAL: no such finding. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_ping_get_finding(tutti_ping_t ping, int index,
							    tutti_ping_finding *out);

/* -- Topology --------------------------------------------------------------------- */

/* How a machine is wired. Owner: tutti_topo_free(); its strings and structs are its own. Threads:
 * any may read one. */
typedef struct tutti_topo *tutti_topo_t;

/* What tutti_topo_load() loads. Fill it with TUTTI_TOPO_CONFIG_INIT, then change what you need. */
typedef struct tutti_topo_config {
	size_t size;            /* sizeof(tutti_topo_config)                     */
	const char *xml_file;   /* a topology file; NULL: none                          */
	const char *sysfs_root; /* a captured machine; NULL: none                       */
	int detect;             /* 1: what xml_file states wins over what is detected   */
	int all;                /* detect every PCI function, not only what communicates */
	int measure;            /* measure the memory of NUMA nodes, under 2 s          */
	int nccl_model;         /* compute with NCCL's figures, not Tutti's             */
	const char *name;       /* its name in what is printed; NULL: its path          */
	const char *gpus;       /* only these GPUs, "0,2,5", "0-3" or bus ids; NULL: all */
} tutti_topo_config;
/* clang-format off */
#define TUTTI_TOPO_CONFIG_INIT { sizeof(tutti_topo_config), NULL, NULL, 0, 0, 0, 0, NULL, NULL }
/* clang-format on */

/* Load a topology from a file, detect that of a captured machine, or both. With neither file nor
 * root, or config NULL: this machine, as TUTTI_TOPO_FILE, TUTTI_SYSFS_ROOT and the like say.
 * TUTTI_EINVAL: a file that cannot be read, with file, line, column and reason; a GPU that is not
 * there, with those that are. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_topo_load(const tutti_topo_config *config,
						     tutti_topo_t *out);

/* Free a topology and its strings. NULL is fine. */
TUTTI_API void tutti_topo_free(tutti_topo_t topo);

/* How a topology can be printed, as `tutti topo` and `tutti paths` do: docs/topology.md. X(name,
 * value, text): TUTTI_TOPO_FORMAT_MAP(X) is the list. */
#define TUTTI_TOPO_FORMAT_MAP(X)       \
	X(TREE, 0, "tree")             \
	X(XML, 1, "xml")               \
	X(JSON, 2, "json")             \
	X(DOT, 3, "dot")               \
	X(PATHS, 4, "paths")           \
	X(PATHS_JSON, 5, "paths-json") \
	X(LINT, 6, "lint")             \
	X(LINT_JSON, 7, "lint-json")

typedef enum tutti_topo_format {
#define X(name, value, text) TUTTI_TOPO_##name = (value),
	TUTTI_TOPO_FORMAT_MAP(X)
#undef X
} tutti_topo_format;

/* Flags of tutti_topo_print() and tutti_plan_print(), combined by |. */
enum {
	TUTTI_TOPO_COLOR = 1, /* ANSI colours                        */
	TUTTI_TOPO_UTF8 = 2,  /* line drawing; without: plain ASCII  */
};

/* Print a topology into *out in `format`. `flags`: TUTTI_TOPO_COLOR, TUTTI_TOPO_UTF8, in formats
 * for people. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_topo_print(tutti_topo_t topo, tutti_topo_format format,
						      unsigned flags, char **out);

/* A node of the graph, a link between two of them in one direction, a path between two endpoints,
 * and what is wrong somewhere. */
typedef struct tutti_topo_node {
	const char *type;    /* "GPU", "HOST", "NET", "DEV", "PCI", "NVS", "CPU", "PKG", "NIC" */
	const char *name;    /* "GPU0", "mlx5_0", "CPU1", "0000:3b:00.0"      */
	const char *host;    /* "" in a topology of one host                  */
	int parent;          /* index, -1: none                               */
	int numaid;          /* of a CPU; -1                                  */
	int rank, sm;        /* of a GPU; -1, 0                               */
	double net_gbps;     /* of a NET; 0                                   */
	unsigned class_code; /* PCI; 0                                        */
} tutti_topo_node;
typedef struct tutti_topo_link {
	int from, to;
	const char *type; /* "LOC", "NVL", "C2C", "PCI", "SYS", "NET" */
	int count;        /* links in one                            */
	double gbps;      /* GB/s in this direction                  */
	double latency_ns;
} tutti_topo_link;
typedef struct tutti_topo_path {
	const char *type;  /* of the wires: "PIX", "SYS" ...                        */
	const char *route; /* of the traffic: the same, or "PXN", "PHB" ...         */
	const char *why;   /* why it goes there: a sentence                        */
	int gdr;           /* 1: GPU and NIC without host memory (GPUDirect)       */
	int via;           /* the node that it goes through, -1: none              */
	int nhops;         /* of the wires                                         */
	double wire_gbps, gbps, latency_ns;
} tutti_topo_path;
typedef struct tutti_topo_finding {
	const char *rule, *severity, *place, *what, *consequence, *remedy;
	double have_gbps, want_gbps; /* 0, 0: no figure */
} tutti_topo_finding;

/* How many nodes, links, or findings a topology has; 0 for NULL. */
TUTTI_API int tutti_topo_node_count(tutti_topo_t topo);
TUTTI_API int tutti_topo_link_count(tutti_topo_t topo);
TUTTI_API int tutti_topo_finding_count(tutti_topo_t topo);

/* Describe node, link, or finding `index`, from 0. TUTTI_EINVAL: there is none. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_topo_get_node(tutti_topo_t topo, int index,
							 tutti_topo_node *out);
TUTTI_API TUTTI_CHECKED tutti_status tutti_topo_get_link(tutti_topo_t topo, int index,
							 tutti_topo_link *out);
TUTTI_API TUTTI_CHECKED tutti_status tutti_topo_get_finding(tutti_topo_t topo, int index,
							    tutti_topo_finding *out);

/* Describe the path from one endpoint, node `from`, to another, node `to`. TUTTI_EINVAL names a
 * node that is no endpoint (GPU, HOST, NET). */
TUTTI_API TUTTI_CHECKED tutti_status tutti_topo_get_path(tutti_topo_t topo, int from, int to,
							 tutti_topo_path *out);

/* Find a node of a `type`, like "GPU", by its `name`, like "GPU0". In a topology of several hosts
 * the name is "HOST/GPU0", with the host as in tutti_topo_node, unless only one host has such a
 * node. The result is its index, or -1: there is none, or the name alone does not say which. */
TUTTI_API int tutti_topo_find(tutti_topo_t topo, const char *type, const char *name);

/* Tell what differs between two topologies, in words, a line each, in *out; *ndiffs_out lines. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_topo_diff(tutti_topo_t a, tutti_topo_t b, char **out,
						     int *ndiffs_out);

/* Capture a machine. What detection reads of this one, or of the one of TUTTI_SYSFS_ROOT, is copied
 * into `directory`, which is made if missing, and is TUTTI_EINVAL if not empty. With that as
 * sysfs_root the machine is detected elsewhere as it is here. The copy has no serial numbers and no
 * addresses of interfaces, but the GUIDs of RDMA devices. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_topo_gather(const char *directory);

/* Many hosts as one view: kinds of hosts, rails, switch groups, NVLink domains, and which hosts
 * differ from others of their kind. Owner: tutti_cluster_free(). Threads: one at a time. */
typedef struct tutti_cluster *tutti_cluster_t;

/* Make a cluster without hosts. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_cluster_make(tutti_cluster_t *out);

/* Deprecated, and gone with version 0.2: tutti_cluster_make(). *out is the caller's. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_cluster_create(tutti_cluster_t *out)
	TUTTI_DEPRECATED("tutti_cluster_make");

/* Free a cluster. NULL is fine. */
TUTTI_API void tutti_cluster_free(tutti_cluster_t cluster);

/* Add the host `name`, wired as `path` says: a topology file, or the root directory of a captured
 * machine. count > 0 adds so many hosts: NAME0, NAME1, ... (NAME-0 after a digit). TUTTI_EINVAL: a
 * path that cannot be read, with the place and the reason; a name that is taken. TUTTI_EUSAGE: the
 * cluster was printed already. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_cluster_add(tutti_cluster_t cluster, const char *name,
						       const char *path, int count);

/* Read from the file `path` which NIC is on which rail and switch: lines of "HOST NIC RAIL
 * [GROUP]". HOST may hold * and ?, RAIL is a number or -, # begins a comment. If several lines name
 * a NIC, the last counts. TUTTI_EINVAL with file and line. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_cluster_read_rails(tutti_cluster_t cluster,
							      const char *path);

/* Print the view of the cluster into *out, as text or as one JSON object. No host can be added
 * after the first time. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_cluster_print(tutti_cluster_t cluster, int json,
							 char **out);

/* -- Plans ------------------------------------------------------------------------- */

/* The plan of a job: for each pattern (ring, tree ...) the channels over its machines, what each
 * carries, and how much any others could carry at most. Owner: tutti_plan_free(); the topologies
 * that it was made of must outlive it. Threads: any may read one. */
typedef struct tutti_plan *tutti_plan_t;

/* Which job is planned, and how. Fill it with TUTTI_PLAN_CONFIG_INIT, then change what you need. */
typedef struct tutti_plan_config {
	size_t size;              /* sizeof(tutti_plan_config)                        */
	const char *patterns;     /* "ring,tree"; NULL: all that are of use                  */
	int cross_nic;            /* whether a ring may leave a node by another NIC than it
				   * entered: 0 no, 1 yes, 2 in mirrored pairs, -1 what
				   * carries most                                            */
	int both_ways;            /* trees load their links in both directions               */
	int min_channels;         /* 0: as many as are of use                                */
	int max_channels;         /* 0: the library's                                        */
	int ranks_per_node;       /* 0: one for each GPU, or without GPUs each NUMA node     */
	const int *node_of_rank;  /* the node of each rank; NULL: ranks fill node after node */
	int nranks;               /* entries of node_of_rank                                 */
	const int *group_of_node; /* leaf switch of each node, -1 unknown; NULL: all unknown */
	const char *const *name_of_node; /* NULL: node0, node1 ...                           */
} tutti_plan_config;
/* clang-format off */
#define TUTTI_PLAN_CONFIG_INIT { sizeof(tutti_plan_config), NULL, -1, 0, 0, 0, 0, NULL, 0, NULL, NULL }
/* clang-format on */

/* Plan a job on `nnodes` nodes, wired as nodes[] says: equal nodes are one topology several times.
 * Nodes whose GPUs name one NVLink domain (tutti_fabric) are joined: the plan has one node for all
 * of them. If only some GPUs of a topology have a rank, the others are left out with their links.
 * config NULL: as TUTTI_PLAN_CONFIG_INIT. TUTTI_EINVAL: an invalid config or job. TUTTI_EPLAN names
 * what nothing connects. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_plan_make(const tutti_topo_t *nodes, int nnodes,
						     const tutti_plan_config *config,
						     tutti_plan_t *out);

/* Read a plan from the file `path`: what TUTTI_PLAN_JSON printed, or a graph file of NCCL. A plan
 * of Tutti may be read with its nodes, which it must fit; without them it cannot be explained or
 * drawn. The channels of NCCL's file are those of every node: it needs nodes[0 .. nnodes-1], all of
 * one topology. TUTTI_EINVAL: not a plan, with file, place and reason. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_plan_read(const char *path, const tutti_topo_t *nodes,
						     int nnodes, const tutti_plan_config *config,
						     tutti_plan_t *out);

/* Free a plan and its strings, but not its topologies. NULL is fine. */
TUTTI_API void tutti_plan_free(tutti_plan_t plan);

/* How a plan can be printed. X(name, value, text): TUTTI_PLAN_FORMAT_MAP(X) is the list. */
#define TUTTI_PLAN_FORMAT_MAP(X) \
	X(TABLE, 0, "table")     \
	X(JSON, 1, "json")       \
	X(EXPLAIN, 2, "explain") \
	X(DOT, 3, "dot")         \
	X(NCCL, 4, "nccl")       \
	X(ADVICE, 5, "advice")

typedef enum tutti_plan_format {
#define X(name, value, text) TUTTI_PLAN_##name = (value),
	TUTTI_PLAN_FORMAT_MAP(X)
#undef X
} tutti_plan_format;

/* Print a plan into *out in `format`. `flags`: those of tutti_topo_print(). EXPLAIN says in words
 * what limits each pattern and what would help. ADVICE says what the order of ranks costs a library
 * that runs rings in that order. NCCL is its graph file for one of several equal nodes. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_plan_print(tutti_plan_t plan, tutti_plan_format format,
						      unsigned flags, char **out);

/* Check whether the machines can carry a plan. *out has what is wrong, a line each; *nfindings_out
 * lines. The plan must have its nodes, else TUTTI_EINVAL. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_plan_check(tutti_plan_t plan, char **out,
						      int *nfindings_out);

/* Tell what differs between two plans, in words, a line each, in *out; *ndiffs_out lines. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_plan_diff(tutti_plan_t a, tutti_plan_t b, char **out,
						     int *ndiffs_out);

/* One pattern of a plan. Its strings are the plan's. */
typedef struct tutti_plan_pattern {
	const char *name;  /* "ring"                               */
	const char *limit; /* what limits it, in words; "": unknown */
	int nchannels, cross_nic;
	double total_gbps, bound_gbps, search_ms;
} tutti_plan_pattern;

/* How many patterns a plan has; 0 for NULL. */
TUTTI_API int tutti_plan_pattern_count(tutti_plan_t plan);

/* Describe pattern `index`, from 0. TUTTI_EINVAL: no such pattern. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_plan_get_pattern(tutti_plan_t plan, int index,
							    tutti_plan_pattern *out);

/* -- Handoffs ---------------------------------------------------------------------- */

/* The plan of a handoff: which ranks of tutti_handoff() would send how much over which NICs to
 * which, how the vector spreads inside the nodes that receive, and how fast any method could be.
 * Owner: tutti_handoff_plan_free(); the topologies that it was made of must outlive it. Threads:
 * any may read one. */
typedef struct tutti_handoff_plan *tutti_handoff_plan_t;

/* Which handoff is planned. Fill it with TUTTI_HANDOFF_PLAN_CONFIG_INIT, then change what you
 * need. */
typedef struct tutti_handoff_plan_config {
	size_t size;     /* sizeof(tutti_handoff_plan_config)                        */
	const int *from; /* ranks that hold the vector; NULL: all ranks of the first node   */
	int nfrom;
	const int *to; /* ranks that get it; NULL: all ranks of all other nodes           */
	int nto;
	int from_sharded, to_sharded; /* 1: each rank holds, or gets, its part; 0: all of it */
} tutti_handoff_plan_config;
/* clang-format off */
#define TUTTI_HANDOFF_PLAN_CONFIG_INIT { sizeof(tutti_handoff_plan_config), NULL, 0, NULL, 0, 0, 0 }
/* clang-format on */

/* Plan a handoff. `nodes`, `nnodes` and `job` are as for tutti_plan_make(); of `job` only how ranks
 * are dealt out counts. Either config may be NULL. TUTTI_EINVAL: a rank out of range, or twice on a
 * side. TUTTI_EPLAN names what nothing leads to. */
TUTTI_API TUTTI_CHECKED tutti_status
tutti_handoff_plan_make(const tutti_topo_t *nodes, int nnodes, const tutti_plan_config *job,
			const tutti_handoff_plan_config *config, tutti_handoff_plan_t *out);

/* Free a plan of a handoff, but not its topologies. NULL is fine. */
TUTTI_API void tutti_handoff_plan_free(tutti_handoff_plan_t plan);

/* Print a plan of a handoff into *out as TABLE, JSON, EXPLAIN or DOT of tutti_plan_print(), with
 * times for a vector of `nbytes`. docs/handoff.md says what is in the JSON. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_handoff_plan_print(tutti_handoff_plan_t plan,
							      tutti_plan_format format,
							      size_t nbytes, char **out);

/* What a handoff is predicted to take. Rates are in GB/s of the whole vector. */
typedef struct tutti_handoff_figures {
	int npairs;                    /* over NICs                                             */
	double gbps;                   /* of this plan; 0: there is nothing to move             */
	double bound_gbps;             /* no method exceeds it                                  */
	double naive_gbps;             /* a copy for each receiver                              */
	double us, bound_us, naive_us; /* predicted, for so many bytes              */
} tutti_handoff_figures;

/* Predict how long the handoff of a vector of `nbytes` takes. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_handoff_plan_get(tutti_handoff_plan_t plan,
							    size_t nbytes,
							    tutti_handoff_figures *out);

/* -- Times ------------------------------------------------------------------------- */

/* What tutti_tune_print() prints. Fill it with TUTTI_TUNE_CONFIG_INIT, then change what you
 * need. */
typedef struct tutti_tune_config {
	size_t size;           /* sizeof(tutti_tune_config)                         */
	int collective;        /* a tutti_collective, -1: all                              */
	int host_memory;       /* ranks keep their data in host memory, though there are GPUs */
	int json;              /* an object a line                                         */
	const char *tune_file; /* constants and choices; "none": the built-in ones; NULL: those of a
				* communicator here, from TUTTI_TUNE_FILE, from `tutti tune`, or the
				* built-in ones */
} tutti_tune_config;
/* clang-format off */
#define TUTTI_TUNE_CONFIG_INIT { sizeof(tutti_tune_config), -1, 0, 0, NULL }
/* clang-format on */

/* Print into *out how long each algorithm is predicted to take for each collective and size in the
 * job of a plan, and which would be chosen. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_tune_print(tutti_plan_t plan,
						      const tutti_tune_config *config, char **out);

/* Print into *out the constants that predictions are made from, and the choices that are fixed, in
 * the form of a tune file. `path` NULL: those in force. TUTTI_EINVAL: not a tune file, with file,
 * line and reason. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_tune_print_file(const char *path, char **out);

/* Find the tune file of communicators that are made in this process: its path in *path_out, which
 * free() frees; NULL: none. A file that `tutti tune` kept counts only if all ranks have the same.
 * TUTTI_EINVAL: TUTTI_TUNE_FILE does not name a tune file, with line and reason; TUTTI_ENOMEM. Any
 * thread may call it. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_tune_find(char **path_out);

/* One measured call, for tutti_tune_fit(). Fill it with TUTTI_TUNE_SAMPLE_INIT, then with what was
 * measured. */
typedef struct tutti_tune_sample {
	size_t size; /* sizeof(tutti_tune_sample) */
	tutti_collective collective;
	const char *algorithm; /* that it was forced to, as "direct" */
	size_t nbytes; /* of the whole vector: what all_gather receives, else what is sent */
	int nranks, nhosts;
	int most, least; /* ranks on the host with most of them, with least */
	double cores;    /* cores of a host; 0: one for each rank */
	int loopback;    /* the hosts are ranks of one machine, without a wire between them */
	double us;
} tutti_tune_sample;
/* clang-format off */
#define TUTTI_TUNE_SAMPLE_INIT { sizeof(tutti_tune_sample), TUTTI_ALL_REDUCE, NULL, 0, 0, 0, 0, 0, 0, 0, 0 }
/* clang-format on */

/* Fit the constants of the model to `nsamples` measured times. *file_out becomes a tune file of
 * this machine and this version, with the lines of `choices` ("choose all_reduce 4K ring ranks 4",
 * NULL: none) behind. Constants that the times do not determine are the built-in ones, and all are,
 * if others fit no better. *report_out says what was found (NULL: not asked for), for people or as
 * JSON. TUTTI_EINVAL names a sample that cannot be predicted or is not above 0, or a line of
 * `choices` that is wrong. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_tune_fit(const tutti_tune_sample *samples, int nsamples,
						    const char *choices, int json, char **file_out,
						    char **report_out);

/* Keep a tune file, whose content is `text`, for later communicators. `path` is where; NULL: where
 * communicators of this machine look for it if TUTTI_TUNE_FILE names none, in
 * $XDG_CACHE_HOME/tutti, or ~/.cache/tutti. The path goes to *path_out. TUTTI_EINVAL: not a tune
 * file, with line and reason; TUTTI_ESYS: it cannot be written. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_tune_keep(const char *path, const char *text,
						     char **path_out);

/* -- GPUs --------------------------------------------------------------------------- */

/* Say what a program with GPUs finds on a machine, as `tutti doctor` does: CUDA's driver, Tutti's
 * kernels, each device, which of them reach each other's memory, and settings of the system that
 * are in the way; each with what follows and what to do. `sysfs_root`: a captured machine; NULL: this
 * one, or that of TUTTI_SYSFS_ROOT. `flags`: TUTTI_TOPO_COLOR. *nfindings_out is the number of
 * warnings and errors; a machine without a GPU has none. TUTTI_EINVAL: sysfs_root is no machine. */
TUTTI_API TUTTI_CHECKED tutti_status tutti_doctor(const char *sysfs_root, int json, unsigned flags,
						  char **out, int *nfindings_out);

#ifdef __cplusplus
}
#endif

#endif
