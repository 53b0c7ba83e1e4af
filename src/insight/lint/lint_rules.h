/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_TOPO_LINT_RULES_H
#define TTI_TOPO_LINT_RULES_H

/* What the rules of lint share, for lint*.c alone. A rule looks at the document and
 * what was built from it, and adds findings; it neither fails nor changes anything.
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

/* A text that lives as long as the findings; NULL, and failed, without memory. */
TUTTI_PRINTF(2, 3) const char *tti_lint_say(struct tti_linter *linter, const char *fmt, ...);

/* A finding on a node. `what` and `consequence` are set, bandwidths if there is a
 * figure; the rest is filled in. */
void tti_lint_add(struct tti_linter *linter, uint32_t node, const struct tti_finding *finding);
/* On an element that is no node. */
void tti_lint_add_at(struct tti_linter *linter, const struct tti_xml *xml,
		     const struct tti_finding *finding);

/* -- Looking ------------------------------------------------------------------------------ */

#define TTI_LINT_EACH(index, graph, type)                       \
	for (uint32_t index##_i = 0, index = TTI_NODE_NONE;     \
	     index##_i < (graph)->ntype[type] &&                \
	     (index = (graph)->by_type[type][index##_i], true); \
	     index##_i++)

/* All that is plugged into PCI: DEV, PCI, NIC. */
void tti_lint_each_device(struct tti_linter *linter,
			  void (*fn)(struct tti_linter *linter, uint32_t device));
/* What building the graph noted of one kind. */
void tti_lint_each_note(struct tti_linter *linter, enum tti_note_kind kind,
			void (*fn)(struct tti_linter *linter, const struct tti_note *note));

/* Whether it is a part of a machine (subset.h): other GPUs are there that nobody sees, so NVLinks
 * may be missing and NICs far. */
static inline bool tti_lint_is_part(const struct tti_linter *linter)
{
	return tti_xml_get(linter->doc->root, "tutti_gpus") != NULL;
}

/* The node's own element, NULL: none; and one of its attributes. */
const struct tti_xml *tti_lint_element(const struct tti_linter *linter, uint32_t node);
const char *tti_lint_attr(const struct tti_linter *linter, uint32_t node, const char *attr);
/* GB/s of the link to the parent; 0: none. */
double tti_lint_uplink(const struct tti_linter *linter, uint32_t node);
/* Whether all pairs of endpoints may be looked at; else there are too many. */
bool tti_lint_has_tables(const struct tti_linter *linter);
/* A path, if there is a table of all, else NULL. */
const struct tti_path *tti_lint_path(const struct tti_linter *linter, uint32_t from, uint32_t to);
/* The socket that a node hangs on, -1: none. */
int tti_lint_package(const struct tti_linter *linter, uint32_t node);
/* The first GPU or NET at or below a node, NONE: nothing is; and its name, else the
 * node's own. */
uint32_t tti_lint_endpoint(const struct tti_linter *linter, uint32_t node);
const char *tti_lint_user(const struct tti_linter *linter, uint32_t node);
/* "12.0 instead of 24.0 GB/s", or "24.0 GB/s": then the finding's figures become 0. */
const char *tti_lint_figures(struct tti_linter *linter, struct tti_finding *finding);
/* The GB/s of a GPU's or device's links to its CPU beside PCI (C2C), 0: it has none. */
double tti_lint_c2c(const struct tti_linter *linter, uint32_t node);
/* A link_speed that is stated and is none, NULL: it is good, or not known. */
const char *tti_lint_odd_speed(const struct tti_linter *linter, uint32_t node);
/* Figures that nothing has: a port's speed in Mb/s, NVLinks of a GPU, lanes and GT/s of PCI. */
#define TTI_LINT_MOST_MBPS    1600000 /* of ports that are announced      */
#define TTI_LINT_MOST_NVLINKS 36      /* of Rubin; Hopper, Blackwell: 18  */
#define TTI_LINT_MOST_LANES   32      /* as the specification has it      */
#define TTI_LINT_MOST_GTS     128     /* generation 7                     */
/* A NIC that no driver lets reach GPU memory, and of which nobody expects it: Ethernet of at
 * most 10 Gb/s. */
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
