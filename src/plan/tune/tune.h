/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_PLAN_TUNE_H
#define TTI_PLAN_TUNE_H

/* How long each algorithm of each collective takes: a prediction from the plan and a
 * table of constants, and the choice that follows from it.
 *
 *     plan ──▶ machine ─┐
 *                       ├─ tti_tune_predict ─▶ latency, bandwidth ─▶ tti_tune_choose
 *     constants ────────┘
 *
 * Ranks in host memory (tune_host.c): an algorithm of n ranks on N nodes, p on the
 * largest, is a few numbers (struct tti_tune_terms) in units of the vector of S bytes:
 *
 *     latency = call + near_hops * near + far_hops * far
 *             + ranks_a_core * (near_messages * line + far_messages * message)
 *     cpu     = ranks_a_core * S * (read / cross + written / copy + touched / memory
 *                            + socket / socket_gbps)
 *     time    = latency + max(cpu, S * wire / node + gaps) + slices under way
 *
 * which is the LogGP model (Alexandrov, Ionescu, Schauser and Scheiman, SPAA 1995): hops
 * are its L, messages its o, the rates its G; what the busiest rank does one thing after
 * the other adds up, the wire works beside it. ranks_a_core is the number of ranks that
 * share a core; `gaps` what the wire waits where a round begins only when the one before is over,
 * block after block; many senders to one cost it something, too (node * many_to_one).
 * `memory` is the cache's rate while all buffers of a node fit into its caches, and
 * for what does not fit the node's memory, which all its ranks share. A message that fits
 * beside its sequence number goes without a slot; others cost one slot for each slice.
 *
 * Ranks on GPUs (tune_gpu.c): no communicator chooses by this, all is prediction. Latency and
 * bandwidth are those of NCCL's model with protocol Simple (nccl_facts 8.2, 8.3), over
 * the bandwidth of this plan's channels:
 *
 *     ring     all_reduce n / (2 (n - 1)), all_gather, reduce_scatter n / (n - 1),
 *              broadcast, reduce 1 times the rings' bandwidth
 *     tree     half of the trees': a node of a double tree passes everything on twice
 *     nvls     efficiency times the heads'; over nodes like the trees
 *     collnet  all_reduce alone; for networks that reduce, so it is never chosen
 *
 * All are monotone in the size. Pure. Threads: any. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plan/plan.h"
#include "tutti/inspect.h"
#include "util/reach.h"

/* -- Constants --------------------------------------------------------------------- */

/* X(name, default, what, source). The one home of these numbers; a file may change each
 * (tti_tune_read). us, GB/s (1e9), bytes. "perf": measured, docs/design/limits.md. */
#define TTI_TUNE_CONSTANT_MAP(X)                                                                   \
	X(call_us, 0.1, "a call: arguments, order, program", "perf, What bounds each size")        \
	X(line_us, 0.15, "a cache line to another core, or from it", "perf: 136 to 143 ns")        \
	X(slot_us, 0.25, "a message through a slot, beyond its line",                              \
	  "perf: 8 KiB on two ranks less what its bytes cost")                                     \
	X(yield_us, 0.5, "a change of process, where ranks share a core", "perf")                  \
	X(wake_us, 3, "waking a rank that waits for the network, where ranks share a core",        \
	  "perf, How good the model is")                                                           \
	X(cross_gbps, 12.9, "reading what another core wrote", "perf: slices through slots")       \
	X(copy_gbps, 97, "reading or writing what the cache holds", "perf: memcpy of 64 KiB")      \
	X(memory_gbps, 28, "reading or writing memory, one core", "perf: memcpy of 16 MiB")        \
	X(node_memory_gbps, 28, "the same, a NUMA node, if the topology has no figure",            \
	  "perf, 128 MiB: two cores get little more than one")                                     \
	X(cache_bytes, 2097152, "cache of a core", "perf: L2")                                     \
	X(inline_bytes, 48, "a message that needs no slot", "src/transport/shm")                   \
	X(slot_bytes, 262144, "slot in shared memory", "TUTTI_SHM_SLOT")                           \
	X(tcp_hop_us, 3.05, "a message over TCP, without the wire", "perf, TCP: 6.1 us both ways") \
	X(tcp_message_us, 1.5, "each further message that a rank sends or gets", "half a hop")     \
	X(tcp_slot_bytes, 131072, "slot of a TCP link", "TUTTI_TCP_SLOT")                          \
	X(socket_gbps, 6, "bytes that one core moves through sockets", "perf, TCP: 4 to 9")        \
	X(wire_us, 5, "a message on the wire: NICs, interrupts, a switch", "estimate")             \
	X(many_to_one, 0.8, "of that, where several nodes send to one at once",                    \
	  "perf, Between hosts")                                                                   \
	X(node_net_gbps, 1.25, "the wires of a node, if no plan says so", "10 Gb/s, topo/model.h") \
	X(gpu_base_us, 8.4, "start of a kernel and its first message", "nccl_facts 8.1")           \
	X(gpu_nvlink_us, 3.4, "hop of a ring over NVLink", "nccl_facts 8.1")                       \
	X(gpu_nvlink_tree_us, 4, "hop of a tree over NVLink", "nccl_facts 8.1")                    \
	X(gpu_pci_us, 5.7, "hop of a ring over PCI", "nccl_facts 8.1")                             \
	X(gpu_pci_tree_us, 4, "hop of a tree over PCI", "nccl_facts 8.1")                          \
	X(gpu_net_us, 14, "hop between nodes", "nccl_facts 8.1")                                   \
	X(gpu_nvls_us, 25, "reduction in the NVLink switch", "nccl_facts 8.1")                     \
	X(gpu_nvls_net_us, 20.9, "hop between nodes beside nvls", "nccl_facts 8.1")                \
	X(gpu_nvls_efficiency, 0.85, "of the heads' bandwidth", "nccl_facts 8.1, Hopper")          \
	X(gpu_collnet_us, 30, "reduction in the network", "nccl_facts 8.1")

struct tti_tune_constants {
#define X(name, value, what, source) double name;
	TTI_TUNE_CONSTANT_MAP(X)
#undef X
};

/* -- Algorithms -------------------------------------------------------------------- */

/* X(name, text): those of src/coll, by their names there, and those of GPUs. */
#define TTI_TUNE_ALGO_MAP(X)                              \
	X(EXCHANGE, "exchange")                           \
	X(DIRECT, "direct")                               \
	X(RECURSIVE_DOUBLING, "recursive_doubling")       \
	X(DOUBLE_TREE, "double_tree")                     \
	X(HIERARCHICAL, "hierarchical")                   \
	X(HIERARCHICAL_DOUBLING, "hierarchical_doubling") \
	X(FLAT, "flat")                                   \
	X(BINOMIAL, "binomial")                           \
	X(BRUCK, "bruck")                                 \
	X(DISSEMINATION, "dissemination")                 \
	X(RING, "ring")                                   \
	X(CHAIN, "chain")                                 \
	X(ORDERED, "ordered")                             \
	X(MEMORY, "memory")                               \
	X(TREE, "tree")                                   \
	X(NVLS, "nvls")                                   \
	X(COLLNET_CHAIN, "collnet_chain")                 \
	X(COLLNET_DIRECT, "collnet_direct")

enum tti_tune_algo {
#define X(name, text) TTI_TUNE_##name,
	TTI_TUNE_ALGO_MAP(X)
#undef X
};
#define TTI_TUNE_ALGO_COUNT 18

const char *tti_tune_algo_name(enum tti_tune_algo algo);
/* false: no such algorithm. */
bool tti_tune_algo_find(const char *name, enum tti_tune_algo *out);

/* -- The machine ------------------------------------------------------------------- */

/* A job, as the model of times knows it. */
struct tti_tune_machine {
	uint32_t n, nnodes;
	uint32_t most, least; /* ranks of the node with most, with least                         */
	uint32_t stripes;     /* ranks of a node that talk to others in hierarchical algorithms;
			   * 0: as many as the largest node has */
	double cores;         /* of a node, 0: one for each rank                      */
	double node_memory_gbps; /* 0: the constant                             */
	double node_gbps;        /* what enters, and what leaves, a node, by all its NICs; 0: the
			   * constant. Only looked at if there are several nodes */
};

/* Without a plan: `nnodes` nodes, `most` ranks on the largest, in host memory. */
struct tti_tune_machine tti_tune_machine_of_groups(uint32_t n, uint32_t nnodes, uint32_t most,
						   uint32_t least);
/* Cores and memory are not in a plan. */
struct tti_tune_machine tti_tune_machine_of_plan(const struct tti_plan *plan);

/* -- Time -------------------------------------------------------------------------- */

/* us = latency_us + nbytes / bw_gbps / 1000, at this size; bw_gbps is 0 for no bytes. */
struct tti_tune_time {
	double latency_us, bw_gbps, us;
};

/* `nbytes` of the whole vector: all_gather: received, reduce_scatter: sent. false: that
 * collective has no such algorithm there. */
bool tti_tune_predict(const struct tti_tune_constants *constants,
		      const struct tti_tune_machine *machine, tutti_collective coll,
		      enum tti_tune_algo algo, size_t nbytes, struct tti_tune_time *out);

/* -- The table, and the choice ----------------------------------------------------- */

/* "For this collective of so many bytes, this one": of a file, in its order. */
struct tti_tune_rule {
	tutti_collective coll;
	size_t from, upto; /* SIZE_MAX: any */
	enum tti_tune_algo algo;
	uint32_t ranks; /* so many, on one host; 0: any, anywhere */
	/* How all ranks must reach each other's buffers; slots: as if they did not. */
	enum tti_reach reach;
};
bool tti_tune_rule_fits(const struct tti_tune_rule *rule, tutti_collective coll, size_t nbytes,
			uint32_t n, uint32_t nnodes, enum tti_reach reach);

/* Owner: tti_tune_table_free(). */
struct tti_tune_table {
	struct tti_tune_constants constants;
	struct tti_tune_rule *rules;
	uint32_t nrules;
	struct tti_reach_figures figures; /* of ordinary memory here; zeroed: not measured */
	/* The machine and the version that measured it (tune_path.h); "": not said. */
	char machine[160], version[32];
};

/* The defaults and no rules. Never fails, nothing to free. */
struct tti_tune_table tti_tune_defaults(void);

/* Lines: "constant NAME VALUE", "choose COLLECTIVE UPTO ALGORITHM [ranks N] [reach REACH]"
 * (UPTO: bytes with K, M, G, or inf; or FROM-UPTO, both within; REACH: slots, that is
 * messages, mapped or copied), "reach NAME VALUE" of TTI_REACH_FIGURE_MAP, all or none,
 * "machine TEXT", "version TEXT"; # begins a comment, but not in texts. What a file does not
 * name is as by default. TUTTI_EINVAL with source, line and reason. */
TUTTI_CHECKED tutti_status tti_tune_read(const char *text, size_t nbytes, const char *source,
					 struct tti_tune_table **out);
TUTTI_CHECKED tutti_status tti_tune_read_file(const char *path, struct tti_tune_table **out);
void tti_tune_table_free(struct tti_tune_table *table);
/* "slots", "mapped", "copied". */
const char *tti_tune_reach_name(enum tti_reach reach);
/* The lines "reach"; nothing if it was not measured. */
void tti_tune_write_reach(const struct tti_reach_figures *measured, struct tti_strbuf *out);
/* A hash of what ranks must agree on: all constants, figures and rules. */
uint64_t tti_tune_hash(const struct tti_tune_table *table);

#endif
