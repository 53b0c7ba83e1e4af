/* SPDX-License-Identifier: BSD-3-Clause */
/* Which message belongs to which receive, against a model: arrays that are searched from the
 * beginning, in the order in which things came. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/message/message_match.h"

#define MOST  64
#define STEPS 200000

struct model {
	struct tti_match_entry *at[MOST];
	int n;
};

static uint64_t state = 88172645463325252U;

static int draw(int below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (int)(state % (uint64_t)below);
}

static bool fits(const struct tti_match_entry *receive, const struct tti_match_entry *message)
{
	return (receive->source == -1 || receive->source == message->source) &&
	       (receive->tag == -1 || receive->tag == message->tag);
}

static void forget(struct model *model, int place)
{
	model->n--;
	for (int i = place; i < model->n; i++)
		model->at[i] = model->at[i + 1];
}

/* The place of the oldest counterpart; -1: there is none. */
static int find(const struct model *model, const struct tti_match_entry *entry, bool is_receive)
{
	for (int i = 0; i < model->n; i++)
		if (is_receive ? fits(entry, model->at[i]) : fits(model->at[i], entry))
			return i;
	return -1;
}

static struct tti_match_entry *make(int source, int tag)
{
	struct tti_match_entry *entry = calloc(1, sizeof(*entry));

	assert_non_null(entry);
	entry->source = source;
	entry->tag = tag;
	return entry;
}

static void compare(const struct tti_match_list *list, const struct model *model)
{
	const struct tti_match_entry *entry = list->first;

	for (int i = 0; i < model->n; i++, entry = entry->next)
		assert_ptr_equal(entry, model->at[i]);
	assert_null(entry);
}

/* One comes in: its counterpart goes, or it stays. */
static void come(struct tti_match *match, struct model *receives, struct model *messages,
		 bool is_receive)
{
	struct tti_match_entry *entry = make(draw(4) - (is_receive ? 1 : 0) < 0 ? -1 : draw(3),
					     draw(5) - (is_receive ? 1 : 0) < 0 ? -1 : draw(4));
	struct model *own = is_receive ? receives : messages;
	struct model *other = is_receive ? messages : receives;
	struct tti_match_list *own_list = is_receive ? &match->receives : &match->messages;
	struct tti_match_list *other_list = is_receive ? &match->messages : &match->receives;
	const int place = find(other, entry, is_receive);
	struct tti_match_entry *found =
		is_receive ? tti_match_find_message(match, entry->source, entry->tag)
			   : tti_match_find_receive(match, entry->source, entry->tag);

	assert_ptr_equal(found, place < 0 ? NULL : other->at[place]);
	if (found) {
		tti_match_remove(other_list, found);
		forget(other, place);
		free(found);
		free(entry);
	} else if (own->n < MOST) {
		tti_match_add(own_list, entry);
		own->at[own->n++] = entry;
	} else {
		free(entry);
	}
}

/* A receive is cancelled, wherever it is; again it is in no list, and nothing happens. */
static void withdraw(struct tti_match *match, struct model *receives)
{
	const int place = receives->n ? draw(receives->n) : -1;

	if (place < 0)
		return;
	tti_match_remove(&match->receives, receives->at[place]);
	tti_match_remove(&match->receives, receives->at[place]);
	free(receives->at[place]);
	forget(receives, place);
}

static void matches_like_its_model(void **unused)
{
	struct model receives = { .n = 0 }, messages = { .n = 0 };
	struct tti_match match;

	(void)unused;
	tti_match_init(&match);
	for (int step = 0; step < STEPS; step++) {
		/* Now there are more messages, now more receives. */
		const int odds = step / 1000 % 2 ? 7 : 3, what = draw(11);

		if (what == 10)
			withdraw(&match, &receives);
		else
			come(&match, &receives, &messages, what < odds);
		compare(&match.receives, &receives);
		compare(&match.messages, &messages);
	}
	while (receives.n)
		withdraw(&match, &receives);
	for (int i = 0; i < messages.n; i++)
		free(messages.at[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(matches_like_its_model) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
