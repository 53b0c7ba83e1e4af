/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_CORE_CHILD_H
#define TTI_CORE_CHILD_H

/* Communicators that are made of another one, their parent. What is costly is shared: the
 * connections and the thread of the first communicator of all (its root) carry the
 * bootstrap and the watch of all that descend from it, and what was found out about the
 * machines is derived from what it knows, not detected anew. What moves bytes is a child's own, and costs
 * memory only once it is used: so calls on several communicators never wait for each
 * other.
 *
 * Owner: a child keeps its root alive (tti_comm_hold()). Threads: as comm.h says. */

#include "boot/boot.h"
#include "core/comm.h"

/* Where the other ranks wait for this one, as tti_boot_sub_create() has it. */
struct tti_rendezvous {
	struct tti_comm *parent; /* NULL: nowhere */
	uint64_t context;
	const int *ranks; /* borrowed */
	int n, rank;      /* rank: its number there */
};

/* How a communicator comes to its bootstrap, if not by an id. */
struct tti_maker {
	/* Find out who belongs to it and connect; comm->rank and comm->n are set here if they
	 * could not be before. *boot NULL on success: this rank is not part of it. */
	tutti_status (*connect)(struct tti_maker *maker, struct tti_comm *comm,
				struct tti_boot **boot);
	void (*free)(struct tti_maker *maker); /* when the init is over */
	struct tti_comm *parent;               /* lives until then; NULL: none */
	int *ranks;                            /* [comm->n]: in the parent, by connect() */
	/* Whose revoking ends the init; with follows_deaths also the death of one of its ranks.
	 * NULL: nobody's. Lives until the init is over. */
	struct tti_comm *follows;
	bool follows_deaths;
	/* Who belongs to it is settled by connect(): when a rank dies from then on, the init
	 * succeeds, with a communicator that is lost. */
	bool is_final;
	/* Who broke it, by its number in what is made, if that is known not to be a rank of
	 * `follows`; 0: nobody. */
	int stranger;
	/* From the start on, until tti_child_come(), and anew for each bootstrap. If the making ends
	 * with it, the others are told. */
	struct tti_rendezvous awaited;
};

/* Open the bootstrap where this rank is awaited: from here on the others hear of a failure by that. */
TUTTI_CHECKED tutti_status tti_child_come(struct tti_maker *maker,
					  const struct tti_boot_config *config,
					  struct tti_boot **boot);
/* This rank cannot come, tti_error_text() says why: tell the others, whose calls end with TUTTI_EPEER.
 * The parent is as it was. */
void tti_child_decline(const struct tti_rendezvous *awaited);
/* Free it, after declining where it is awaited. */
void tti_maker_end(struct tti_maker *maker);

/* Number of the communicator among those of its root: the same on all ranks that make it
 * as the k-th of its kind, of a parent. */
enum tti_child_kind {
	TTI_CHILD_SPLIT = 1,
	TTI_CHILD_OF_COLOR,
	TTI_CHILD_SHRINK,    /* without those that are named */
	TTI_CHILD_AGREEMENT, /* on who is left               */
	TTI_CHILD_REST,      /* who is left                  */
	TTI_CHILD_GROW,      /* on where to meet new ranks   */
	TTI_CHILD_CALLERS,   /* who makes one of some ranks  */
};
uint64_t tti_child_context(const struct tti_comm *parent, enum tti_child_kind kind, uint64_t k);

/* The config of a child: what the user leaves open is the parent's. */
tutti_config tti_child_config(const struct tti_comm *parent, const tutti_config *given);

/* What of it all ranks must have alike. */
uint64_t tti_child_settings(const tutti_config *config);

/* Its ranks are those of the parent, ranks[0 .. n-1]; or of no communicator that is left out. */
TUTTI_CHECKED tutti_status tti_child_descend(struct tti_comm *comm, const struct tti_comm *parent,
					     const int *ranks);

/* setup.c asks, once the child knows its hosts: what its calls go by. From the root, which was
 * made whole on all ranks: a parent may have been lost while it was made, on some ranks early
 * and on others late. */
TUTTI_CHECKED tutti_status tti_child_derive(struct tti_comm *comm);

#endif
