/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_CORE_MESSAGE_MATCH_H
#define TTI_CORE_MESSAGE_MATCH_H

/* Which message belongs to which receive: the receives that wait for a message, and the messages
 * that wait for a receive, each oldest first. Whoever puts one in asks for its counterpart before,
 * so never do both lists have entries that belong together, but where a receive had too little
 * room.
 *
 * Owner: entries are the caller's, in its larger structs. Threads: not synchronised. */

#include <stdbool.h>
#include <stddef.h>

/* Zeroed: in no list. Of a message source and tag are its own; of a receive -1 stands for any. */
struct tti_match_entry {
	int source, tag;
	struct tti_match_entry *next, **link;
};

struct tti_match_list {
	struct tti_match_entry *first, **end;
};

struct tti_match {
	struct tti_match_list receives, messages;
};

void tti_match_init(struct tti_match *match);

/* The oldest receive that takes such a message; the oldest message that such a receive takes.
 * NULL: none. It stays in its list. */
struct tti_match_entry *tti_match_find_receive(const struct tti_match *match, int source, int tag);
struct tti_match_entry *tti_match_find_message(const struct tti_match *match, int source, int tag);

/* As the youngest. */
void tti_match_add(struct tti_match_list *list, struct tti_match_entry *entry);
/* Fine for one that is in no list. */
void tti_match_remove(struct tti_match_list *list, struct tti_match_entry *entry);

#endif
