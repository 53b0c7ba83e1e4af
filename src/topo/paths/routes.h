/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_TOPO_PATHS_ROUTES_H
#define TTI_TOPO_PATHS_ROUTES_H

/* Which way traffic between two endpoints takes, given what is allowed, and why: directly from
 * device to device, through host memory, or to a NIC through another GPU.
 * The rules are those of NCCL (P2P_LEVEL, NET_GDR_LEVEL, PXN):
 *
 *   GPU to GPU   directly over NVLinks, and up to p2p_level; else through the memory of
 *                the HOST nearest to the receiver (between hosts: over the network).
 *                Nothing is direct if that is switched off, or with level LOC.
 *   NET to GPU   directly (GPUDirect RDMA) if both can and their path is at most
 *                gdr_level, P2C from PXB on; else through the HOST nearest to the GPU.
 *   GPU to NET   the same if NICs may read that GPU's memory. Traffic goes through another
 *                GPU of this host (PXN) if that is the nearest one to the NIC, is one NVLink
 *                hop away and may be read, and if its path to the NIC is wider than the
 *                GPU's own, or the own path is worse than PXN. NICs at one place take turns
 *                among equally near GPUs.
 *   all else     as the paths.
 * Between hosts (NET) a route is as the path. The routes to the NETs of a host say how traffic
 * leaves it.
 *
 * As with paths, there is a table, or `at` is NULL and routes are made when asked for.
 *
 * Owner: tti_routes_free(). Graph and paths must outlive it.
 * Threads: any may read. */

#include "topo/paths/paths.h"

struct tti_routes_config {
	enum tti_path_type p2p_level; /* GPU to GPU directly up to this type (PXB)   */
	bool p2p_auto; /* ... but SYS with at most two GPUs and CPUs of AMD           */
	bool p2p_disable;
	enum tti_path_type gdr_level; /* NIC to GPU memory directly up to this (PXB) */
	int gdr_read;                 /* -1 auto: from sm 80 on, or with NVLinks to other
				       * GPUs, or if there is but one GPU; 0, 1 */
	bool pxn_disable;
	bool nvb_disable;
};
/* From TUTTI_P2P_LEVEL, TUTTI_P2P_DISABLE, TUTTI_NET_GDR_LEVEL, TUTTI_NET_GDR_READ,
 * TUTTI_PXN_DISABLE, TUTTI_NVB_DISABLE. */
struct tti_routes_config tti_routes_config_from_params(void);

/* X(name, sentence): why a route is what it is. */
#define TTI_ROUTE_WHY_MAP(X)                                                            \
	X(WIRED, "as the wires run")                                                    \
	X(P2P_FAR, "too far for GPU to GPU access: through host memory")                \
	X(P2P_OFF, "GPU to GPU access is switched off: through host memory")            \
	X(OVERHEAD, "PCI to PCI through an Intel root complex costs a fifth more")      \
	X(GDR_FAR, "too far for the NIC to reach GPU memory: through host memory")      \
	X(GDR_NO_GPU, "the GPU does not support GPUDirect RDMA: through host memory")   \
	X(GDR_NO_NIC, "the NIC does not support GPUDirect RDMA: through host memory")   \
	X(GDR_READ_OFF, "NICs do not read this GPU's memory: sent through host memory") \
	X(PXN, "a GPU beside the NIC hands it over")                                    \
	X(NVB_OFF, "NVLink through another GPU is switched off: the next best way")     \
	X(NO_WAY, "nothing connects them")

enum tti_route_why {
#define X(name, text) TTI_ROUTE_##name,
	TTI_ROUTE_WHY_MAP(X)
#undef X
};

struct tti_route {
	uint8_t type;  /* enum tti_path_type of the whole, PXN among them        */
	uint8_t why;   /* enum tti_route_why                                     */
	bool p2p;      /* GPU to GPU without host memory                         */
	bool gdr;      /* NIC to or from GPU memory without host memory          */
	uint32_t via;  /* node it goes through: HOST (bounce), GPU (PXN), or NONE */
	float bw_gbps; /* of the narrowest part, overheads taken off             */
	float latency_ns;
};

struct tti_routes {
	const struct tti_paths *paths;
	struct tti_route *at; /* at[from * paths->n + to]; NULL: too many     */
	struct tti_routes_lazy *lazy;
};

/* config NULL: from the parameters. */
TUTTI_CHECKED tutti_status tti_routes_build(const struct tti_paths *paths,
					    const struct tti_routes_config *config,
					    struct tti_routes **out);
void tti_routes_free(struct tti_routes *routes);
/* For a caller that wants the routes of all pairs. TUTTI_EUNSUPPORTED: there is no table. */
TUTTI_CHECKED tutti_status tti_routes_want_all(const struct tti_routes *routes);
/* By node index; both nodes must be endpoints. NULL: as tti_paths_get(). */
const struct tti_route *tti_routes_get(const struct tti_routes *routes, uint32_t from, uint32_t to);

#endif
