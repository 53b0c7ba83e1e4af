/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll/choose.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "plan/tune.h"
#include "util/error.h"

#define KIB       ((size_t)1024)
#define MIB       (KIB * KIB)
#define ANY_RANKS INT32_MAX
#define ANY_BYTES SIZE_MAX

/* CROWDED: more ranks than cores. Its rows come first, and what they do not decide is
 * decided as for any one host. */
enum where { ONE_HOST, CROWDED };

/* For one host. The first row that fits is taken. If a pin excludes what it names, the search
 * goes on, so the last rows of a collective are also its second choices. */
struct rule {
	tutti_collective coll;
	enum where where;
	int ranks;    /* up to here */
	size_t bytes; /* up to here */
	const char *algorithm;
};

static const struct rule rules[] = {
	/* In shared memory: a fan-out is one write, an n-ary reduction one pass, so
	 * one hop beats all that saves messages, until n^2 slots are too many. */
	/* One hop in place of two is worth more bytes where a hop is a change of
	 * process (measured: docs/performance.md). */
	{ TUTTI_ALL_REDUCE, CROWDED, 4, 32 * KIB, "exchange" },
	{ TUTTI_ALL_REDUCE, CROWDED, 8, 16 * KIB, "exchange" },
	{ TUTTI_ALL_REDUCE, CROWDED, 16, 8 * KIB, "exchange" },
	{ TUTTI_ALL_REDUCE, ONE_HOST, 2, 64 * KIB, "exchange" },
	{ TUTTI_ALL_REDUCE, ONE_HOST, 4, 16 * KIB, "exchange" },
	{ TUTTI_ALL_REDUCE, ONE_HOST, 8, 8 * KIB, "exchange" },
	{ TUTTI_ALL_REDUCE, ONE_HOST, 32, 2 * KIB, "exchange" },
	{ TUTTI_ALL_REDUCE, ONE_HOST, 32, ANY_BYTES, "direct" },
	{ TUTTI_ALL_REDUCE, ONE_HOST, ANY_RANKS, 4 * KIB, "recursive_doubling" },
	{ TUTTI_ALL_REDUCE, ONE_HOST, 64, ANY_BYTES, "direct" },
	{ TUTTI_ALL_REDUCE, ONE_HOST, ANY_RANKS, 1 * MIB, "double_tree" },
	{ TUTTI_ALL_REDUCE, ONE_HOST, ANY_RANKS, ANY_BYTES, "ring" },
	{ TUTTI_BROADCAST, ONE_HOST, 64, ANY_BYTES, "flat" },
	{ TUTTI_BROADCAST, ONE_HOST, ANY_RANKS, 64 * KIB, "binomial" },
	{ TUTTI_BROADCAST, ONE_HOST, ANY_RANKS, ANY_BYTES, "chain" },
	{ TUTTI_REDUCE, ONE_HOST, 16, ANY_BYTES, "flat" },
	{ TUTTI_REDUCE, ONE_HOST, ANY_RANKS, 64 * KIB, "binomial" },
	{ TUTTI_REDUCE, ONE_HOST, ANY_RANKS, ANY_BYTES, "chain" },
	{ TUTTI_ALL_GATHER, ONE_HOST, 64, ANY_BYTES, "direct" },
	{ TUTTI_ALL_GATHER, ONE_HOST, ANY_RANKS, 64 * KIB, "bruck" },
	{ TUTTI_ALL_GATHER, ONE_HOST, ANY_RANKS, ANY_BYTES, "ring" },
	{ TUTTI_REDUCE_SCATTER, ONE_HOST, 64, ANY_BYTES, "direct" },
	{ TUTTI_REDUCE_SCATTER, ONE_HOST, ANY_RANKS, ANY_BYTES, "ring" },
	{ TUTTI_BARRIER, ONE_HOST, 16, ANY_BYTES, "exchange" },
	{ TUTTI_BARRIER, ONE_HOST, ANY_RANKS, ANY_BYTES, "dissemination" },
};

/* direct: two slots of this for each peer stay in the L2 cache; less would cost more
 * rounds than it saves misses (measured: docs/performance.md). */
#define DIRECT_SLICE    (64 * KIB)
/* Below this sockets save less than the hops between them cost. */
#define SOCKETS_LEAST   (256 * KIB)
/* Pipelines want several blocks per hop, but none so small that the cost of a
 * message shows. */
#define PIPELINE_BLOCKS 4
#define SLICE_LEAST     (16 * KIB)
/* Slices are cut at cache lines. */
#define SLICE_ALIGN     ((size_t)64)

/* A pin being read: the entry for one collective, [at, end). */
struct pin {
	const char *at, *end; /* the list of algorithms, NULL: no entry */
	bool excludes;
};

struct word {
	const char *at;
	size_t len;
};

/* The next word of [*at, end) up to one of `stops`, without blanks around it. */
static struct word next_word(const char **at, const char *end, char stop)
{
	const char *from = *at, *to;

	while (*at < end && **at != stop)
		(*at)++;
	to = *at;
	if (*at < end)
		(*at)++;
	while (from < to && *from == ' ')
		from++;
	while (to > from && to[-1] == ' ')
		to--;
	return (struct word){ from, (size_t)(to - from) };
}

static bool word_is(struct word word, const char *text)
{
	return strlen(text) == word.len && memcmp(word.at, text, word.len) == 0;
}

static const struct tti_algorithm *find_word(tutti_collective coll, struct word word)
{
	const struct tti_algorithm *algo;

	for (int i = 0; (algo = tti_algorithm_at(coll, i)); i++)
		if (word_is(word, algo->name))
			return algo;
	return NULL;
}

/* The names of a collective's algorithms, for error texts. */
static void list_algorithms(tutti_collective coll, char *buf, size_t size)
{
	const struct tti_algorithm *algo;
	size_t used = 0;

	buf[0] = '\0';
	for (int i = 0; (algo = tti_algorithm_at(coll, i)) && used < size; i++) {
		const int len =
			snprintf(buf + used, size - used, "%s%s", i ? ", " : "", algo->name);

		used += len > 0 ? (size_t)len : 0;
	}
}

/* Every name of a list, whether it matters for this call or not: a typing error
 * must not wait until the call it was meant for. */
static tutti_status check_list(tutti_collective coll, const char *at, const char *end)
{
	char names[200];

	do {
		const struct word word = next_word(&at, end, ',');

		if (find_word(coll, word))
			continue;
		list_algorithms(coll, names, sizeof(names));
		if (word.len && word.at[0] == '^')
			return tti_fail(TUTTI_EINVAL,
					"TUTTI_ALGO: %s: ^ stands before the list and excludes "
					"all of it, not before one name of it",
					tutti_collective_name(coll));
		return tti_fail(TUTTI_EINVAL, "TUTTI_ALGO: %s has no algorithm \"%.*s\": it has %s",
				tutti_collective_name(coll), (int)word.len, word.at, names);
	} while (at < end);
	return TUTTI_OK;
}

static tutti_status find_collective(struct word word, tutti_collective *out)
{
	for (int coll = 0; coll < TUTTI_COLLECTIVE_COUNT; coll++)
		if (word_is(word, tutti_collective_name((tutti_collective)coll))) {
			*out = (tutti_collective)coll;
			return TUTTI_OK;
		}
	return tti_fail(TUTTI_EINVAL,
			"TUTTI_ALGO: no collective \"%.*s\"; write all_reduce:ring;broadcast:chain",
			(int)word.len, word.at);
}

/* collective:list;collective:list. *out is the entry of `coll`. */
static tutti_status read_pin(const char *text, tutti_collective coll, struct pin *out)
{
	const char *at = text, *const end = text + strlen(text);

	memset(out, 0, sizeof(*out));
	while (at < end) {
		const struct word entry = next_word(&at, end, ';');
		const char *rest = entry.at, *const stop = entry.at + entry.len;
		const struct word name = next_word(&rest, stop, ':');
		tutti_collective named = TUTTI_COLLECTIVE_COUNT;
		bool excludes;

		if (!entry.len)
			continue;
		TTI_TRY(find_collective(name, &named));
		while (rest < stop && *rest == ' ')
			rest++;
		if (rest == stop)
			return tti_fail(TUTTI_EINVAL, "TUTTI_ALGO: no algorithm after \"%.*s\"",
					(int)entry.len, entry.at);
		excludes = *rest == '^';
		rest += excludes;
		TTI_TRY(check_list(named, rest, stop));
		if (named != coll)
			continue;
		if (out->at)
			return tti_fail(TUTTI_EINVAL, "TUTTI_ALGO names %s twice",
					tutti_collective_name(coll));
		*out = (struct pin){ rest, stop, excludes };
	}
	return TUTTI_OK;
}

static bool fits(const struct tti_algorithm *algo, int n)
{
	return !algo->fits || algo->fits(n);
}

static bool excluded(const struct pin *pin, const struct tti_algorithm *algo)
{
	const char *at = pin->at;

	if (!pin->excludes)
		return false;
	while (at < pin->end)
		if (word_is(next_word(&at, pin->end, ','), algo->name))
			return true;
	return false;
}

/* The first of the pin's list that can be used; NULL: none. */
static const struct tti_algorithm *pinned(const struct pin *pin,
					  const struct tti_choice_input *input)
{
	const char *at = pin->at;

	while (at < pin->end) {
		const struct tti_algorithm *algo =
			find_word(input->coll, next_word(&at, pin->end, ','));

		if (algo && fits(algo, input->n))
			return algo;
	}
	return NULL;
}

static bool usable(const struct pin *pin, const struct tti_choice_input *input,
		   const struct tti_algorithm *algo)
{
	return algo && fits(algo, input->n) && !excluded(pin, algo);
}

/* By the tuning file; NULL: it says nothing. */
static const struct tti_algorithm *by_file(const struct pin *pin,
					   const struct tti_choice_input *input)
{
	for (uint32_t i = 0; input->tune && i < input->tune->nrules; i++) {
		const struct tti_tune_rule *rule = &input->tune->rules[i];
		const struct tti_algorithm *algo =
			tti_algorithm_find(input->coll, tti_tune_algo_name(rule->algo));

		if (rule->coll == input->coll && input->nbytes <= rule->upto &&
		    usable(pin, input, algo))
			return algo;
	}
	return NULL;
}

/* -- Between hosts ----------------------------------------------------------------- */

/* Whether the groups of the shape are the hosts: of ranks that share no memory, be they
 * on one machine, each is one. */
static bool knows_hosts(const struct tti_choice_input *input)
{
	return input->shape && input->shape->ngroups == (uint32_t)input->nhosts;
}

static struct tti_tune_machine machine_of(const struct tti_choice_input *input)
{
	const uint32_t n = (uint32_t)input->n, nhosts = (uint32_t)input->nhosts;
	struct tti_tune_machine machine =
		tti_tune_machine_of_groups(n, nhosts, (n + nhosts - 1) / nhosts, n / nhosts);

	if (input->machine && input->machine->nnodes == nhosts) {
		machine = *input->machine;
		/* Whatever the plan was made for, these programs move host memory. */
		machine.gpu = false;
		return machine;
	}
	for (uint32_t group = 0; knows_hosts(input) && group < nhosts; group++) {
		const uint32_t size = input->shape->group_size[group];

		machine.most = group && machine.most > size ? machine.most : size;
		machine.least = group && machine.least < size ? machine.least : size;
	}
	return machine;
}

static bool is_hierarchical(const char *algorithm)
{
	return strncmp(algorithm, "hierarchical", strlen("hierarchical")) == 0;
}

/* The least time, of equal ones the first in the table; NULL: nothing is predicted. */
static const struct tti_algorithm *by_time(const struct pin *pin,
					   const struct tti_choice_input *input)
{
	const struct tti_tune_constants defaults = tti_tune_defaults().constants;
	const struct tti_tune_machine machine = machine_of(input);
	const struct tti_algorithm *algo, *best = NULL;
	struct tti_tune_time time, least = { 0 };
	enum tti_tune_algo name;

	for (int i = 0; (algo = tti_algorithm_at(input->coll, i)); i++) {
		if (!usable(pin, input, algo) ||
		    (is_hierarchical(algo->name) && !knows_hosts(input)) ||
		    !tti_tune_algo_find(algo->name, &name) ||
		    !tti_tune_predict(input->tune ? &input->tune->constants : &defaults, &machine,
				      input->coll, name, input->nbytes, &time) ||
		    (best && time.us >= least.us))
			continue;
		best = algo;
		least = time;
	}
	return best;
}

/* -- On one host ------------------------------------------------------------------- */

static bool applies(enum where where, const struct tti_choice_input *input)
{
	return where == ONE_HOST || input->crowded;
}

/* By the rules, without what the pin excludes; NULL: it excludes all. */
static const struct tti_algorithm *by_rules(const struct pin *pin,
					    const struct tti_choice_input *input)
{
	const struct tti_algorithm *algo;

	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		const struct rule *rule = &rules[i];

		if (rule->coll != input->coll || !applies(rule->where, input) ||
		    input->n > rule->ranks || input->nbytes > rule->bytes)
			continue;
		algo = tti_algorithm_find(rule->coll, rule->algorithm);
		if (usable(pin, input, algo))
			return algo;
	}
	for (int i = 0; (algo = tti_algorithm_at(input->coll, i)); i++)
		if (usable(pin, input, algo))
			return algo;
	return NULL;
}

/* Whether sockets should go by themselves, in place of `algo`, for all_reduce of much.
 * Seen from one socket with p of the n ranks, for a vector of S bytes, each way over its
 * link to the others, which every ring of the plan crosses once:
 *
 *     direct        2 p (n - p) / n * S, as each rank reads all that the others wrote:
 *                   parts to their owners, and as much back
 *     hierarchical  2 (sockets - 1) / sockets * S
 *
 * beside 2 S that every rank reads in both. Only where direct is what would be taken and
 * the link takes it twice as long as all else: not where it might be so. */
static bool pays_by_socket(const struct tti_choice_input *input, const struct tti_algorithm *algo)
{
	const struct tti_shape *shape = input->shape;
	double p, linked, read;

	if (input->coll != TUTTI_ALL_REDUCE || input->nbytes < SOCKETS_LEAST || !shape ||
	    shape->ngroups < 2 || !shape->even || shape->group_size[0] < 2 ||
	    shape->ring_gbps <= 0 || strcmp(algo->name, "direct") != 0)
		return false;
	p = shape->group_size[0];
	linked = 2 * p * (input->n - p) / input->n / (double)shape->ring_gbps;
	read = 2 / (input->tune ? input->tune->constants.cross_gbps
				: tti_tune_defaults().constants.cross_gbps);
	return linked > 2 * read;
}

/* Which algorithm without a pin that names one. */
static const struct tti_algorithm *decide(const struct pin *pin,
					  const struct tti_choice_input *input)
{
	const struct tti_algorithm *algo = by_file(pin, input), *sockets;

	if (!algo && input->nhosts > 1)
		algo = by_time(pin, input);
	if (algo)
		return algo;
	algo = by_rules(pin, input);
	sockets = tti_algorithm_find(input->coll, "hierarchical");
	return algo && input->nhosts <= 1 && usable(pin, input, sockets) &&
			       pays_by_socket(input, algo)
		       ? sockets
		       : algo;
}

/* -- Slices ------------------------------------------------------------------------ */

static size_t clamp(size_t value, size_t least, size_t most)
{
	if (value < least)
		value = least;
	return value > most ? most : value;
}

static size_t choose_slice(const struct tti_choice_input *input, const char *algorithm)
{
	const size_t n = (size_t)input->n;
	size_t slice = input->slot_bytes;

	if (strcmp(algorithm, "direct") == 0 || is_hierarchical(algorithm))
		slice = clamp(DIRECT_SLICE, SLICE_LEAST, input->slot_bytes);
	else if (strcmp(algorithm, "chain") == 0 || strcmp(algorithm, "double_tree") == 0)
		slice = clamp(input->nbytes / (PIPELINE_BLOCKS * n), SLICE_LEAST,
			      input->slot_bytes);
	return slice;
}

tutti_status tti_choose(const struct tti_choice_input *input, const char *pin_text, size_t slice,
			struct tti_choice *out)
{
	struct pin pin = { NULL, NULL, false };
	struct tti_choice choice;

	if (pin_text)
		TTI_TRY(read_pin(pin_text, input->coll, &pin));
	choice.algo = pin.at && !pin.excludes ? pinned(&pin, input) : decide(&pin, input);
	if (!choice.algo && pin.at)
		return tti_fail(TUTTI_EINVAL, "TUTTI_ALGO leaves no algorithm for %s of %d ranks",
				tutti_collective_name(input->coll), input->n);
	if (!choice.algo)
		return tti_fail(TUTTI_EINTERNAL, "no algorithm for %s",
				tutti_collective_name(input->coll));
	choice.slice_bytes =
		slice ? clamp(slice, 1, input->slot_bytes) : choose_slice(input, choice.algo->name);
	if (choice.slice_bytes > SLICE_ALIGN)
		choice.slice_bytes -= choice.slice_bytes % SLICE_ALIGN;
	*out = choice;
	return TUTTI_OK;
}
