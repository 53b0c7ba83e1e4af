/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_COLL_CHOOSE_H
#define TTI_COLL_CHOOSE_H

/* Which algorithm, in which slices, for a call: a forced one; else the user's own that is
 * for it; a rule of the tuning file; between hosts, the least time that plan/tune/tune.h predicts; on
 * one host what was measured best. Pure: the same on all ranks, as it looks at nothing that
 * differs between them. */

#include <stddef.h>

#include "coll/files/algo_files.h"
#include "util/reach.h"

struct tti_tune_machine; /* plan/tune/tune.h */
struct tti_tune_table;
struct tti_tune_time;

struct tti_choice_input {
	tutti_collective coll;
	int n;
	size_t nbytes;        /* of the whole vector: all_gather, gather: received; else sent */
	int nhosts;           /* 1: all ranks share memory                                      */
	int oversubscribed;   /* some host has more ranks than cores                            */
	bool in_order;        /* some rank has a GPU, whose kernels do step after step          */
	enum tti_order order; /* that must be kept                                           */
	/* How all ranks reach each other's buffers: memory programs are for MAPPED and COPIED
	 * alone. figures: the time that the kernel takes to copy on this machine; NULL: not
	 * known. */
	enum tti_reach reach;
	const struct tti_reach_figures *figures;
	size_t slot_bytes; /* the smallest of the links'                                     */
	/* NULL: none. Hierarchical algorithms are taken where its groups are the hosts, or,
	 * on one host, sockets whose link would hold up the algorithm direct. */
	const struct tti_shape *shape;
	/* Times are predicted from it if its nodes are the hosts; else, or if it is NULL, from the
	 * shape, or from n and nhosts. */
	const struct tti_tune_machine *machine;
	const struct tti_tune_table *tune; /* NULL: tti_tune_defaults() */
	/* The user's algorithms (NULL: none), and the one that tti_algo_files_find() gives for this
	 * call: its sizes are exact, while a choice may be made for a class of sizes. */
	const struct tti_algo_files *files;
	int file; /* -1, or any where files is NULL: none */
};

/* Why an algorithm was taken. */
enum tti_choice_by {
	TTI_CHOICE_BY_RULE,      /* measured best on one host       */
	TTI_CHOICE_BY_MODEL,     /* least predicted time            */
	TTI_CHOICE_BY_TUNE_FILE, /* a rule of the tuning file       */
	TTI_CHOICE_BY_ALGO_FILE, /* the user's own                  */
	TTI_CHOICE_FORCED,       /* TUTTI_ALGO names it             */
};
/* "measured", "predicted", or the variable. */
const char *tti_choice_by_text(enum tti_choice_by by);

struct tti_choice {
	const struct tti_algorithm *algo;
	enum tti_choice_by by;
	size_t slice_bytes; /* per step, <= slot_bytes */
	struct tti_split split;
};

/* Between hosts: the predicted time of such a call by an algorithm, in the number of stripes
 * that the choice would take. false: there is no prediction. */
bool tti_choice_predict(const struct tti_choice_input *input, const struct tti_algorithm *algo,
			struct tti_tune_time *out);

/* `forced` is TUTTI_ALGO (forced.h) or NULL; `slice` is TUTTI_SLICE or 0. TUTTI_EINVAL names
 * what is wrong with `forced`, or says that no algorithm that it leaves keeps the order. */
TUTTI_CHECKED tutti_status tti_choose(const struct tti_choice_input *input, const char *forced,
				      size_t slice, struct tti_choice *out);

/* Ways of a send, or of a handoff. The receiver takes either, but must know which may come. */
#define TTI_SEND_BY_MESSAGES 1u
#define TTI_SEND_BY_MEMORY \
	2u /* where the receiver reaches the data, else by messages, if that is left */
#define TTI_SEND_IS_FORCED 4u /* by memory however it is reached, and however short it is */

/* The ways that TUTTI_ALGO leaves a send (send_recv) or a handoff of so many bytes. A way that
 * is named for all collectives at once is taken where it can be. TUTTI_EINVAL as above. */
TUTTI_CHECKED tutti_status tti_choose_ways(tutti_collective coll, size_t nbytes, const char *forced,
					   const struct tti_algo_files *files, unsigned *out);

#endif
