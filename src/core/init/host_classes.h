/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_CORE_INIT_HOST_CLASSES_H
#define TTI_CORE_INIT_HOST_CLASSES_H

/* The topologies of all hosts, on all ranks. One rank of each place (a host, a network
 * namespace, and whatever else changes what is detected), its leader, detects. Ranks exchange
 * hashes, and hosts of one class, which have equal topologies, send the text once.
 *
 *     leader of a place: detect ─▶ without what is its own ─▶ text ─▶ hash
 *     all:               gather infos
 *     owner of a class:  broadcast of the text
 *
 * Owner: tti_host_classes_release(). Threads: one at a time. */

#include "core/init/peer_info.h"
#include "topo/tree/xml.h"
#include "util/vec.h"

/* The most interfaces that TCP uses. A bond or a bridge may stand for several. */
#define TTI_HOST_NETS   8
#define TTI_HOST_NAME   40
#define TTI_HOST_IFNAME 16

/* What the leader of a place tells all ranks, of fixed width; zeroes from other ranks. */
struct tti_host_info {
	uint64_t hash; /* of the text; 0: no leader                                 */
	uint64_t leaf; /* of the name of the switch that its NICs are on; 0: not known */
	uint32_t nbytes;
	int32_t status;
	uint32_t nnets;               /* TTI_HOST_ANY_NET: all that have a link                  */
	uint32_t nets[TTI_HOST_NETS]; /* <net>s that TCP uses, as numbers of elements */
	uint64_t rail[TTI_HOST_NETS]; /* of the network that each is on; 0: not known   */
	char ifname[TTI_HOST_NETS][TTI_HOST_IFNAME]; /* by which interface each is used */
	char name[TTI_HOST_NAME];                    /* of the host, for people                   */
};
#define TTI_HOST_ANY_NET UINT32_MAX

struct tti_host_class {
	uint64_t hash;
	uint32_t nbytes;
	int owner; /* the lowest leader that sees it    */
	char *text;
};

struct tti_host_classes {
	struct tti_host_info *info; /* [n] */
	int *leader;                /* [n]: of the place of each rank              */
	uint32_t *class_of;         /* [n]: of each leader */
	TTI_VEC(struct tti_host_class) classes;
};

/* Detect and exchange; `several`: there are several hosts, so NICs matter. All ranks have the same
 * status. */
TUTTI_CHECKED tutti_status tti_host_classes_exchange(const struct tti_peers *peers, bool several,
						     struct tti_host_classes *out);
void tti_host_classes_release(struct tti_host_classes *hosts);

/* -- topo_look.c -------------------------------------------------------------------- */

/* The topology as a leader sees it, as text (free()), and what its info says of it. */
TUTTI_CHECKED tutti_status tti_topo_look(bool several, struct tti_host_info *info, char **text_out);

/* -- topo_nets.c -------------------------------------------------------------------- */

/* Put into *info which <net>s TCP uses: those below the interfaces that have addresses.
 * Where no hardware is seen behind them, add them to the document. */
TUTTI_CHECKED tutti_status tti_topo_find_nets(struct tti_xml_doc *doc, struct tti_host_info *info);

#endif
