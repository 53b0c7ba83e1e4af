/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_CORE_TOPO_EXCHANGE_H
#define TTI_CORE_TOPO_EXCHANGE_H

/* How the hosts of a job are wired, brought to all ranks. One rank of each place (host,
 * network namespace, what else decides what is seen) detects; ranks exchange hashes, and
 * each kind of topology travels once.
 *
 *     leader of a place: detect ─▶ without what is its own ─▶ text ─▶ hash
 *     all:               gather cards
 *     owner of a kind:   broadcast of the text
 *
 * Owner: tti_views_release(). Threads: one at a time. */

#include "core/init/peer_info.h"
#include "topo/tree/xml.h"
#include "util/vec.h"

/* Interfaces that TCP uses: as many as a bond or a bridge may stand for. */
#define TTI_CARD_NETS   8
#define TTI_CARD_NAME   40
#define TTI_CARD_IFNAME 16

/* What the leader of a place tells all, of fixed width; zeroes from the others. */
struct tti_topo_card {
	uint64_t hash; /* of the text; 0: no leader                                 */
	uint64_t leaf; /* of the name of the switch that its NICs are on; 0: not known */
	uint32_t nbytes;
	int32_t status;
	uint32_t nnets;               /* TTI_CARD_ANY_NET: all that have a link                  */
	uint32_t nets[TTI_CARD_NETS]; /* <net>s that TCP uses, as numbers of elements */
	uint64_t rail[TTI_CARD_NETS]; /* of the network that each is on; 0: not known   */
	char ifname[TTI_CARD_NETS][TTI_CARD_IFNAME]; /* by which interface each is used */
	char name[TTI_CARD_NAME];                    /* of the host, for people                   */
};
#define TTI_CARD_ANY_NET UINT32_MAX

struct tti_view_kind {
	uint64_t hash;
	uint32_t nbytes;
	int owner; /* the lowest leader that sees it    */
	char *text;
};

struct tti_views {
	struct tti_topo_card *cards; /* [n]                                        */
	int *leader;                 /* [n]: of the place of each rank              */
	uint32_t *kind;              /* [n]: of the topology of each leader          */
	TTI_VEC(struct tti_view_kind) kinds;
};

/* Detect and exchange; `several`: there is more than one host, so NICs matter. Every
 * error is that of all ranks. */
TUTTI_CHECKED tutti_status tti_views_exchange(const struct tti_peers *peers, bool several,
					      struct tti_views *out);
void tti_views_release(struct tti_views *views);

/* -- topo_look.c -------------------------------------------------------------------- */

/* The topology as a leader sees it, as text (free()), and what its card says of it. */
TUTTI_CHECKED tutti_status tti_topo_look(bool several, struct tti_topo_card *card, char **text_out);

/* -- topo_nets.c -------------------------------------------------------------------- */

/* Note on the card which <net>s TCP uses: those below the interfaces that have addresses.
 * Where no hardware is seen behind them, add them to the document. */
TUTTI_CHECKED tutti_status tti_topo_find_nets(struct tti_xml_doc *doc, struct tti_topo_card *card);

#endif
