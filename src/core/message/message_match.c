/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/message/message_match.h"

static bool takes(int source, int tag, const struct tti_match_entry *message)
{
	return (source < 0 || source == message->source) && (tag < 0 || tag == message->tag);
}

static void init_list(struct tti_match_list *list)
{
	list->first = NULL;
	list->end = &list->first;
}

void tti_match_init(struct tti_match *match)
{
	init_list(&match->receives);
	init_list(&match->messages);
}

struct tti_match_entry *tti_match_find_receive(const struct tti_match *match, int source, int tag)
{
	const struct tti_match_entry message = { .source = source, .tag = tag };
	struct tti_match_entry *entry = match->receives.first;

	while (entry && !takes(entry->source, entry->tag, &message))
		entry = entry->next;
	return entry;
}

struct tti_match_entry *tti_match_find_message(const struct tti_match *match, int source, int tag)
{
	struct tti_match_entry *entry = match->messages.first;

	while (entry && !takes(source, tag, entry))
		entry = entry->next;
	return entry;
}

void tti_match_add(struct tti_match_list *list, struct tti_match_entry *entry)
{
	entry->next = NULL;
	entry->link = list->end;
	*list->end = entry;
	list->end = &entry->next;
}

void tti_match_remove(struct tti_match_list *list, struct tti_match_entry *entry)
{
	if (!entry->link)
		return;
	*entry->link = entry->next;
	if (entry->next)
		entry->next->link = entry->link;
	else
		list->end = entry->link;
	entry->link = NULL;
}
