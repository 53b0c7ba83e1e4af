/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_CORE_MESSAGE_MESSAGE_MATCH_H
#define TTI_CORE_MESSAGE_MESSAGE_MATCH_H

/* Which message belongs to which receive: two lists, oldest first, of receives that wait for a
 * message and of messages that wait for a receive. The caller looks for a counterpart before it
 * adds an entry, so the two lists have no entries that match, but for a message that was too
 * long for its receive.
 *
 * Owner: entries are the caller's, in its larger structs. Threads: not synchronised. */

#include <stdbool.h>
#include <stddef.h>

/* Zeroed: in no list. In a receive, source and tag may be -1, for any. */
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

/* Add as the youngest. */
void tti_match_add(struct tti_match_list *list, struct tti_match_entry *entry);
/* Fine if it is in no list. */
void tti_match_remove(struct tti_match_list *list, struct tti_match_entry *entry);

#endif
