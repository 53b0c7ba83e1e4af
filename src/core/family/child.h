/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_CORE_FAMILY_CHILD_H
#define TTI_CORE_FAMILY_CHILD_H

/* Communicators that are made of another one, their parent. They share what is costly: the
 * connections and the thread of the first communicator of the family (the root) carry the bootstrap
 * and the watch of all, and what the root knows about the machines is not detected anew. What moves
 * bytes is a child's own, so calls on several communicators never wait for each other. It costs
 * memory once it is used.
 *
 * Owner: a child keeps its root alive (tti_comm_hold()). Threads: as comm.h says. */

#include "boot/boot.h"
#include "core/comm.h"

/* Where the other ranks wait for this one: arguments of tti_boot_sub_create(). */
struct tti_rendezvous {
	struct tti_comm *parent; /* NULL: nowhere */
	uint64_t context;
	const int *ranks; /* borrowed */
	int n, rank;      /* rank: its number there */
};

/* How a communicator that is not made by an id gets its bootstrap. */
struct tti_maker {
	/* Find out who belongs to it and connect; set comm->rank and comm->n if they were not known
	 * before. Success with *boot NULL: this rank is not part of it. */
	tutti_status (*connect)(struct tti_maker *maker, struct tti_comm *comm,
				struct tti_boot **boot);
	void (*free)(struct tti_maker *maker); /* when the init is over */
	struct tti_comm *parent;               /* lives until then; NULL: none */
	int *ranks;                            /* [comm->n]: in the parent, by connect() */
	/* The communicator whose revocation ends the init; with follows_deaths, so does the
	 * death of one of its ranks. NULL: none. Lives until the init is over. */
	struct tti_comm *follows;
	bool follows_deaths;
	/* connect() settles who belongs to it: if a rank dies later, the init succeeds, with a
	 * communicator that is lost. */
	bool is_final;
	/* The rank that broke the init, by its number in the new communicator, if it is no rank of
	 * `follows`; 0: nobody. */
	int stranger;
	/* Set from the start until tti_child_come(), and anew for each bootstrap. If the init fails
	 * while it is set, the other ranks are told. */
	struct tti_rendezvous awaited;
};

/* Open the bootstrap where this rank is awaited: from now on it tells the others of failures. */
TUTTI_CHECKED tutti_status tti_child_come(struct tti_maker *maker,
					  const struct tti_boot_config *config,
					  struct tti_boot **boot);
/* This rank cannot come, for the reason in tti_error_text(): tell the others, whose calls end with
 * TUTTI_EPEER. The parent stays as it is. */
void tti_child_decline(const struct tti_rendezvous *awaited);
/* Decline where this rank is awaited, and free the maker. */
void tti_maker_end(struct tti_maker *maker);

/* What the k-th child of a kind is made for. */
enum tti_child_kind {
	TTI_CHILD_SPLIT = 1,
	TTI_CHILD_OF_COLOR,
	TTI_CHILD_SHRINK,    /* without those that are named */
	TTI_CHILD_AGREEMENT, /* on who is left               */
	TTI_CHILD_REST,      /* who is left                  */
	TTI_CHILD_GROW,      /* on where to meet new ranks   */
	TTI_CHILD_CALLERS,   /* who makes one of some ranks  */
};
/* The number of that child in its family, the same on all ranks that make it. */
uint64_t tti_child_context(const struct tti_comm *parent, enum tti_child_kind kind, uint64_t k);

/* The config of a child: what the user leaves open is the parent's. */
tutti_config tti_child_config(const struct tti_comm *parent, const tutti_config *given);

/* A hash of what all ranks must configure alike. */
uint64_t tti_child_settings(const tutti_config *config);

/* The ranks of the child are ranks[0 .. n-1] of the parent. */
TUTTI_CHECKED tutti_status tti_child_descend(struct tti_comm *comm, const struct tti_comm *parent,
					     const int *ranks);

/* Once the child knows its hosts: derive its shape, NICs and tuning from the root. Not from the
 * parent, which may have been lost while it was made, on some ranks early and on others late. */
TUTTI_CHECKED tutti_status tti_child_derive(struct tti_comm *comm);

#endif
