/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_TOPO_LINT_RULES_H
#define TTI_TOPO_LINT_RULES_H

/* Helpers of the rules, for lint*.c alone. A rule looks at the document and at what was built from
 * it, and adds findings. It neither fails nor changes anything.
 *
 * Owner: tti_lint_run(). Threads: one. */

#include "insight/lint/lint.h"
#include "util/vec.h"

struct tti_linter;

struct tti_lint_rule {
	const char *name;
	enum tti_severity severity;
	void (*run)(struct tti_linter *linter);
	const char *remedy;
	const char *amd_remedy; /* where the device is AMD's; NULL: the same */
};

struct tti_lint_found {
	struct tti_finding finding;
	uint32_t line;
	size_t number; /* in the order in which they were found */
};

struct tti_linter {
	const struct tti_xml_doc *doc;
	const struct tti_graph *graph;
	const struct tti_paths *paths;
	const struct tti_routes *routes;
	const struct tti_lint_rule *rule; /* that runs                          */
	struct tti_lint *lint;
	TTI_VEC(struct tti_lint_found) found;
	TTI_VEC(const struct tti_xml *) elements; /* by number                  */
	bool failed;                              /* out of memory              */
};

/* Format a text that lives as long as the findings. Out of memory: NULL, and linter->failed. */
TUTTI_PRINTF(2, 3) const char *tti_lint_say(struct tti_linter *linter, const char *fmt, ...);

/* Add a finding on a node. The rule sets `what`, `consequence` and, if there is a figure, the
 * bandwidths; the rest is filled in. */
void tti_lint_add(struct tti_linter *linter, uint32_t node, const struct tti_finding *finding);
/* Add a finding on an element that is no node. */
void tti_lint_add_at(struct tti_linter *linter, const struct tti_xml *xml,
		     const struct tti_finding *finding);

/* -- Looking ------------------------------------------------------------------------------ */

#define TTI_LINT_EACH(index, graph, type)                       \
	for (uint32_t index##_i = 0, index = TTI_NODE_NONE;     \
	     index##_i < (graph)->ntype[type] &&                \
	     (index = (graph)->by_type[type][index##_i], true); \
	     index##_i++)

/* Call fn for each node that is plugged into PCI: DEV, PCI, NIC. */
void tti_lint_each_device(struct tti_linter *linter,
			  void (*fn)(struct tti_linter *linter, uint32_t device));
/* Call fn for each note of one kind that was made while the graph was built. */
void tti_lint_each_note(struct tti_linter *linter, enum tti_note_kind kind,
			void (*fn)(struct tti_linter *linter, const struct tti_note *note));

/* Whether the topology is a part of a machine (subset.h). The machine has GPUs that the topology
 * does not show, so NVLinks may be missing and NICs may be far. */
static inline bool tti_lint_is_part(const struct tti_linter *linter)
{
	return tti_xml_get(linter->doc->root, "tutti_gpus") != NULL;
}

/* The node's own element, NULL: none; and one of its attributes. */
const struct tti_xml *tti_lint_element(const struct tti_linter *linter, uint32_t node);
const char *tti_lint_attr(const struct tti_linter *linter, uint32_t node, const char *attr);
/* GB/s of the link to the parent; 0: none. */
double tti_lint_uplink(const struct tti_linter *linter, uint32_t node);
/* Whether there are tables of all pairs of endpoints; large topologies have none. */
bool tti_lint_has_tables(const struct tti_linter *linter);
/* A path; NULL: there is no table of paths. */
const struct tti_path *tti_lint_path(const struct tti_linter *linter, uint32_t from, uint32_t to);
/* The socket that a node hangs on, -1: none. */
int tti_lint_package(const struct tti_linter *linter, uint32_t node);
/* The first GPU or NET at or below a node, or NONE; and the name of it, or of the node if there is
 * none. */
uint32_t tti_lint_endpoint(const struct tti_linter *linter, uint32_t node);
const char *tti_lint_user(const struct tti_linter *linter, uint32_t node);
/* "12.0 instead of 24.0 GB/s". If there is no loss: "24.0 GB/s", and the finding's figures become
 * 0. */
const char *tti_lint_figures(struct tti_linter *linter, struct tti_finding *finding);
/* GB/s of the C2C links between a GPU, or its device, and its CPU; 0: there are none. */
double tti_lint_c2c(const struct tti_linter *linter, uint32_t node);
/* The stated link_speed if it is no speed; NULL: it is a speed, or is not stated. */
const char *tti_lint_odd_speed(const struct tti_linter *linter, uint32_t node);
/* Figures that nothing has: a port's speed in Mb/s, NVLinks of a GPU, lanes and GT/s of PCI. */
#define TTI_LINT_MOST_MBPS    1600000 /* of ports that are announced      */
#define TTI_LINT_MOST_NVLINKS 36      /* of Rubin; Hopper, Blackwell: 18  */
#define TTI_LINT_MOST_LANES   32      /* as the specification has it      */
#define TTI_LINT_MOST_GTS     128     /* generation 7                     */
/* Whether a NIC cannot reach GPU memory and nobody expects it to: Ethernet of at most 10 Gb/s. */
bool tti_lint_is_plain_net(const struct tti_linter *linter, uint32_t net);
/* A PCI link as emulators show it: one lane of the first generation. */
bool tti_lint_is_virtual(const struct tti_linter *linter, uint32_t node);

/* -- The rules ---------------------------------------------------------------------------- */

#define TTI_LINT_RULE_MAP(X) \
	X(numa_same_mask)    \
	X(numa_mask_overlap) \
	X(numa_no_cores)     \
	X(numa_unknown)      \
	X(socket_assumed)    \
	X(pci_link_narrow)   \
	X(pci_link_slow)     \
	X(pci_sibling)       \
	X(pci_uplink)        \
	X(pci_virtual)       \
	X(pci_busid_twice)   \
	X(pci_assumed)       \
	X(pci_unknown)       \
	X(nvlink_zero)       \
	X(nvlink_no_target)  \
	X(nvlink_one_way)    \
	X(nvlink_uneven)     \
	X(nvlink_fewer)      \
	X(nvlink_assumed)    \
	X(gpu_far_nic)       \
	X(gpu_bare)          \
	X(gpu_dev_twice)     \
	X(gpu_rank_twice)    \
	X(gpu_rank_missing)  \
	X(gpu_mixed)         \
	X(gpu_no_p2p)        \
	X(gpu_no_gdr)        \
	X(nic_far)           \
	X(nic_no_gdr)        \
	X(nic_unbalanced)    \
	X(nic_too_fast)      \
	X(net_name_twice)    \
	X(net_guid_twice)    \
	X(net_virtual)       \
	X(net_speed)         \
	X(net_down)          \
	X(implausible)       \
	X(too_large)         \
	X(name_typo)         \
	X(name_unknown)

#define X(name) void tti_lint_##name(struct tti_linter *linter);
TTI_LINT_RULE_MAP(X)
#undef X

/* All of them, for tests. */
const struct tti_lint_rule *tti_lint_rules(size_t *n_out);

#endif
