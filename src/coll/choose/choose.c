/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll/choose/choose.h"

#include <stdint.h>

#include "coll/choose/choose_parts.h"
#include "plan/tune/tune.h"
#include "util/error.h"

#define KIB       ((size_t)1024)
#define MIB       (KIB * KIB)
#define ANY_RANKS INT32_MAX
#define ANY_BYTES SIZE_MAX

/* OVERSUBSCRIBED: more ranks than cores; OWN_CORES: not so. COPIED: the kernel copies the buffers,
 * and each rank has a core; COPIED_OVERSUBSCRIBED: it has not. What their rows do not decide is
 * decided as for any one host. */
enum where { ONE_HOST, OVERSUBSCRIBED, OWN_CORES, COPIED, COPIED_OVERSUBSCRIBED };

/* For one host. The first row that fits is taken. If TUTTI_ALGO excludes what it names, the
 * search goes on, so the last rows of a collective are also its second choices. */
struct rule {
	tutti_collective coll;
	enum where where;
	int ranks;    /* up to here */
	size_t bytes; /* up to here */
	const char *algorithm;
	/* COPIED: the kernel must save so much beside slots, as their rates are here, for each
	 * rank that a rank copies from, since calls into one process wait for each other.
	 * COPIED_OVERSUBSCRIBED: in all, since ranks that share a core do not call at the same
	 * time. */
	double least_us;
};

/* Measured on the Xeon and the EPYC of util/measured.h, of two cores each; rows of OWN_CORES,
 * and the 4.2 us, on the Rapids, of sixteen. docs/performance.md has the figures. A tune file
 * goes before these rules. */
static const struct rule rules[] = {
	/* A memory program of ordinary memory gains one copy in place of two, against its
	 * calls and the meetings of all ranks, which are dear where ranks share cores. Past
	 * the caches its copies read each line that they write, and reduce and reduce_scatter
	 * gain nothing, as slots are combined from where they are. */
	{ TUTTI_ALL_REDUCE, COPIED, ANY_RANKS, 16 * MIB, "memory", 4.2 },
	{ TUTTI_BROADCAST, COPIED, ANY_RANKS, 8 * MIB, "memory", 4.2 },
	{ TUTTI_ALL_GATHER, COPIED, ANY_RANKS, 32 * MIB, "memory", 4.2 },
	{ TUTTI_ALL_TO_ALL, COPIED, ANY_RANKS, 16 * MIB, "memory", 4.2 },
	{ TUTTI_ALL_GATHER, COPIED_OVERSUBSCRIBED, 4, 8 * MIB, "memory", 4.2 },
	{ TUTTI_ALL_TO_ALL, COPIED_OVERSUBSCRIBED, 4, 8 * MIB, "memory", 4.2 },
	/* In shared memory: a fan-out is one write, an n-ary reduction one pass, so
	 * one hop beats all that saves messages, until n^2 slots are too many. */
	/* One hop in place of two is worth more bytes where a hop is a change of process. */
	{ TUTTI_ALL_REDUCE, OVERSUBSCRIBED, 4, 32 * KIB, "exchange", 0 },
	{ TUTTI_ALL_REDUCE, OVERSUBSCRIBED, 8, 16 * KIB, "exchange", 0 },
	{ TUTTI_ALL_REDUCE, OVERSUBSCRIBED, 16, 8 * KIB, "exchange", 0 },
	{ TUTTI_ALL_REDUCE, ONE_HOST, 2, 64 * KIB, "exchange", 0 },
	{ TUTTI_ALL_REDUCE, ONE_HOST, 4, 16 * KIB, "exchange", 0 },
	{ TUTTI_ALL_REDUCE, ONE_HOST, 8, 8 * KIB, "exchange", 0 },
	/* More ranks that run at the same time are in each other's way where all read from all. */
	{ TUTTI_ALL_REDUCE, OWN_CORES, ANY_RANKS, 4 * KIB, "recursive_doubling", 0 },
	{ TUTTI_ALL_REDUCE, ONE_HOST, 32, 2 * KIB, "exchange", 0 },
	{ TUTTI_ALL_REDUCE, ONE_HOST, 32, ANY_BYTES, "direct", 0 },
	{ TUTTI_ALL_REDUCE, ONE_HOST, ANY_RANKS, 4 * KIB, "recursive_doubling", 0 },
	{ TUTTI_ALL_REDUCE, ONE_HOST, 64, ANY_BYTES, "direct", 0 },
	{ TUTTI_ALL_REDUCE, ONE_HOST, ANY_RANKS, 1 * MIB, "double_tree", 0 },
	{ TUTTI_ALL_REDUCE, ONE_HOST, ANY_RANKS, ANY_BYTES, "ring", 0 },
	/* Where an order must be kept. */
	{ TUTTI_ALL_REDUCE, ONE_HOST, ANY_RANKS, 2 * KIB, "exchange", 0 },
	{ TUTTI_ALL_REDUCE, ONE_HOST, ANY_RANKS, ANY_BYTES, "direct", 0 },
	/* A root that writes once must wait until all have read; in a tree it waits for a few. */
	{ TUTTI_BROADCAST, ONE_HOST, 2, ANY_BYTES, "flat", 0 },
	{ TUTTI_BROADCAST, OWN_CORES, ANY_RANKS, 4 * KIB, "binomial", 0 },
	{ TUTTI_BROADCAST, ONE_HOST, 64, ANY_BYTES, "flat", 0 },
	{ TUTTI_BROADCAST, ONE_HOST, ANY_RANKS, 64 * KIB, "binomial", 0 },
	{ TUTTI_BROADCAST, ONE_HOST, ANY_RANKS, ANY_BYTES, "chain", 0 },
	{ TUTTI_REDUCE, ONE_HOST, 16, ANY_BYTES, "flat", 0 },
	{ TUTTI_REDUCE, ONE_HOST, ANY_RANKS, 64 * KIB, "binomial", 0 },
	{ TUTTI_REDUCE, ONE_HOST, ANY_RANKS, ANY_BYTES, "chain", 0 },
	{ TUTTI_ALL_GATHER, ONE_HOST, 64, ANY_BYTES, "direct", 0 },
	{ TUTTI_ALL_GATHER, ONE_HOST, ANY_RANKS, 64 * KIB, "bruck", 0 },
	{ TUTTI_ALL_GATHER, ONE_HOST, ANY_RANKS, ANY_BYTES, "ring", 0 },
	{ TUTTI_REDUCE_SCATTER, ONE_HOST, 64, ANY_BYTES, "direct", 0 },
	{ TUTTI_REDUCE_SCATTER, ONE_HOST, ANY_RANKS, ANY_BYTES, "ring", 0 },
	/* Every byte moves once and nothing is shared: fewer peers would cost more copies. */
	{ TUTTI_ALL_TO_ALL, ONE_HOST, ANY_RANKS, ANY_BYTES, "direct", 0 },
	{ TUTTI_GATHER, ONE_HOST, 64, ANY_BYTES, "flat", 0 },
	{ TUTTI_GATHER, ONE_HOST, ANY_RANKS, 64 * KIB, "binomial", 0 },
	{ TUTTI_GATHER, ONE_HOST, ANY_RANKS, ANY_BYTES, "flat", 0 },
	{ TUTTI_SCATTER, ONE_HOST, 64, ANY_BYTES, "flat", 0 },
	{ TUTTI_SCATTER, ONE_HOST, ANY_RANKS, 64 * KIB, "binomial", 0 },
	{ TUTTI_SCATTER, ONE_HOST, ANY_RANKS, ANY_BYTES, "flat", 0 },
	{ TUTTI_BARRIER, ONE_HOST, 4, ANY_BYTES, "exchange", 0 },
	{ TUTTI_BARRIER, OWN_CORES, ANY_RANKS, ANY_BYTES, "dissemination", 0 },
	{ TUTTI_BARRIER, ONE_HOST, 16, ANY_BYTES, "exchange", 0 },
	{ TUTTI_BARRIER, ONE_HOST, ANY_RANKS, ANY_BYTES, "dissemination", 0 },
};

/* Below this sockets save less than the hops between them cost. */
#define SOCKETS_LEAST (256 * KIB)

/* The user's algorithm for this call, from a file; NULL: none. */
static const struct tti_algorithm *supplied(const struct tti_choice_input *input)
{
	return input->file >= 0 && input->files ? &input->files->files.at[input->file]->algo : NULL;
}

/* The first of the forced algorithms that can be used; NULL: none. */
static const struct tti_algorithm *first_forced(const struct tti_forced *forced,
						const struct tti_choice_input *input)
{
	const struct tti_algorithm *algo = supplied(input), *best = NULL;
	int first = -1;

	for (int i = algo ? -1 : 0; (algo = i < 0 ? algo : tti_algorithm_at(input->coll, i)); i++) {
		const int at = tti_forced_find(forced, input->files, algo);

		if (at < 0 || !tti_choice_fits(algo, input) || (best && at >= first))
			continue;
		best = algo;
		first = at;
	}
	return best;
}

/* By the tuning file; NULL: it says nothing. */
static const struct tti_algorithm *by_file(const struct tti_forced *forced,
					   const struct tti_choice_input *input)
{
	for (uint32_t i = 0; input->tune && i < input->tune->nrules; i++) {
		const struct tti_tune_rule *rule = &input->tune->rules[i];
		const struct tti_algorithm *algo =
			tti_algorithm_find(input->coll, tti_tune_algo_name(rule->algo));

		if (tti_tune_rule_fits(rule, input->coll, input->nbytes, (uint32_t)input->n,
				       (uint32_t)input->nhosts, input->reach) &&
		    tti_choice_usable(forced, input, algo))
			return algo;
	}
	return NULL;
}

/* -- On one host ------------------------------------------------------------------- */

/* What the kernel saves beside slots, by its rates of so much that the caches hold both. */
static double saved_us(const struct tti_choice_input *input)
{
	const struct tti_reach_figures *figures = input->figures;

	if (!figures || !figures->slots_512k || !figures->copied_512k)
		return 0;
	return (double)input->nbytes * (1.0 / figures->slots_512k - 1.0 / figures->copied_512k);
}

static bool applies(const struct rule *rule, const struct tti_choice_input *input)
{
	if (rule->coll != input->coll || input->n > rule->ranks || input->nbytes > rule->bytes)
		return false;
	switch (rule->where) {
	case ONE_HOST:
		return true;
	case OVERSUBSCRIBED:
		return input->oversubscribed;
	case OWN_CORES:
		return !input->oversubscribed;
	case COPIED:
		return input->reach == TTI_REACH_COPIED && !input->oversubscribed &&
		       saved_us(input) >= rule->least_us * (input->n - 1);
	case COPIED_OVERSUBSCRIBED:
		return input->reach == TTI_REACH_COPIED && input->oversubscribed &&
		       saved_us(input) >= rule->least_us;
	}
	return false;
}

/* By the rules, without what TUTTI_ALGO excludes; NULL: it excludes all. */
static const struct tti_algorithm *by_rules(const struct tti_forced *forced,
					    const struct tti_choice_input *input)
{
	const struct tti_algorithm *algo;

	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		if (!applies(&rules[i], input))
			continue;
		algo = tti_algorithm_find(input->coll, rules[i].algorithm);
		if (tti_choice_usable(forced, input, algo))
			return algo;
	}
	for (int i = 0; (algo = tti_algorithm_at(input->coll, i)); i++)
		if (tti_choice_usable(forced, input, algo))
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
	    shape->ring_gbps <= 0 || !(algo->traits & TTI_TRAIT_DIRECT))
		return false;
	p = shape->group_size[0];
	linked = 2 * p * (input->n - p) / input->n / (double)shape->ring_gbps;
	read = 2 / (input->tune ? input->tune->constants.cross_gbps
				: tti_tune_defaults().constants.cross_gbps);
	return linked > 2 * read;
}

/* The first that works where the data lies, as all ranks address it; NULL: none. A barrier has
 * none, and is as fast by messages. */
static const struct tti_algorithm *in_memory(const struct tti_forced *forced,
					     const struct tti_choice_input *input)
{
	const struct tti_algorithm *algo;

	if (input->reach != TTI_REACH_MAPPED || input->coll == TUTTI_BARRIER)
		return NULL;
	for (int i = 0; (algo = tti_algorithm_at(input->coll, i)); i++)
		if (algo->needs_memory && tti_choice_usable(forced, input, algo))
			return algo;
	return NULL;
}

/* Whether the forced algorithms need memory, but for those that cannot be used. */
static bool asks_for_memory(const struct tti_forced *forced, const struct tti_choice_input *input)
{
	struct tti_choice_input reaching = *input;
	const struct tti_algorithm *algo;

	reaching.reach = TTI_REACH_MAPPED;
	algo = forced->at && !forced->excludes ? first_forced(forced, &reaching) : NULL;
	return algo && algo->needs_memory && input->reach == TTI_REACH_SLOTS;
}

/* Which algorithm, where none is forced. */
static const struct tti_algorithm *decide(const struct tti_forced *forced,
					  const struct tti_choice_input *input,
					  enum tti_choice_by *by)
{
	const struct tti_algorithm *algo = supplied(input), *sockets;

	*by = TTI_CHOICE_BY_ALGO_FILE;
	if (tti_choice_usable(forced, input, algo))
		return algo;
	*by = TTI_CHOICE_BY_TUNE_FILE;
	algo = by_file(forced, input);
	if (algo)
		return algo;
	*by = TTI_CHOICE_BY_RULE;
	algo = in_memory(forced, input);
	if (algo)
		return algo;
	*by = TTI_CHOICE_BY_MODEL;
	algo = input->nhosts > 1 ? tti_choice_by_time(forced, input) : NULL;
	if (algo)
		return algo;
	*by = TTI_CHOICE_BY_RULE;
	algo = by_rules(forced, input);
	sockets = tti_algorithm_find(input->coll, "hierarchical");
	return algo && input->nhosts <= 1 && tti_choice_usable(forced, input, sockets) &&
			       pays_by_socket(input, algo)
		       ? sockets
		       : algo;
}

/* Who may have forced algorithms. */
#define ASKERS "(TUTTI_ALGO, config.algo or tutti_comm_set_algorithm())"

static tutti_status fail_order(const struct tti_choice_input *input, const char *algo_text)
{
	char names[200];

	tti_forced_names(input->coll, input->order, input->files, names, sizeof(names));
	return tti_fail(
		TUTTI_EINVAL,
		"\"%.80s\" " ASKERS " leaves no algorithm for %s of %d ranks that reduces in the "
		"order of ranks%s, as this call must (reproducible, or an operator that does not "
		"commute): add one of %s",
		algo_text, tutti_collective_name(input->coll), input->n,
		input->order == TTI_ORDER_ONE_PASS ? " in one pass" : "", names);
}

tutti_status tti_choose(const struct tti_choice_input *input, const char *algo_text, size_t slice,
			struct tti_choice *out)
{
	struct tti_forced forced;
	struct tti_choice choice = { .by = TTI_CHOICE_FORCED };

	TTI_TRY(tti_forced_read(algo_text, input->coll, input->nbytes, input->files, &forced));
	/* Where its buffers are not reached a call still has to be made. */
	if (asks_for_memory(&forced, input) && !first_forced(&forced, input))
		forced = (struct tti_forced){ 0 };
	choice.algo = forced.at && !forced.excludes ? first_forced(&forced, input)
						    : decide(&forced, input, &choice.by);
	if (!choice.algo && forced.at && input->order != TTI_ORDER_ANY)
		return fail_order(input, algo_text);
	if (!choice.algo && forced.at)
		return tti_fail(TUTTI_EINVAL,
				"\"%.80s\" " ASKERS " leaves no algorithm for %s of %d ranks",
				algo_text, tutti_collective_name(input->coll), input->n);
	if (!choice.algo)
		return tti_fail(TUTTI_EINTERNAL, "no algorithm for %s",
				tutti_collective_name(input->coll));
	choice.split = tti_choice_split(input, choice.algo);
	choice.slice_bytes = tti_choice_slice(input, choice.algo, choice.split, slice);
	*out = choice;
	return TUTTI_OK;
}

tutti_status tti_choose_ways(tutti_collective coll, size_t nbytes, const char *algo_text,
			     const struct tti_algo_files *files, unsigned *out)
{
	struct tti_forced forced;
	int memory, direct;
	bool by_memory, by_messages;

	*out = TTI_SEND_BY_MESSAGES | TTI_SEND_BY_MEMORY;
	TTI_TRY(tti_forced_read(algo_text, coll, nbytes, files, &forced));
	if (!forced.at)
		return TUTTI_OK;
	memory = tti_forced_find(&forced, files, tti_algorithm_find(coll, "memory"));
	direct = tti_forced_find(&forced, files, tti_algorithm_find(coll, "direct"));
	by_memory = (memory >= 0) != forced.excludes;
	by_messages = (direct >= 0) != forced.excludes;
	if (by_memory && by_messages && direct < memory)
		by_memory = false;
	*out = (by_messages || forced.for_all ? TTI_SEND_BY_MESSAGES : 0) |
	       (by_memory ? TTI_SEND_BY_MEMORY | TTI_SEND_IS_FORCED : 0);
	return *out ? TUTTI_OK
		    : tti_fail(TUTTI_EINVAL, "\"%.80s\" " ASKERS " leaves no algorithm for %s",
			       algo_text, tutti_collective_name(coll));
}

const char *tti_choice_by_text(enum tti_choice_by by)
{
	static const char *const texts[] = {
		[TTI_CHOICE_BY_RULE] = "measured",
		[TTI_CHOICE_BY_MODEL] = "predicted",
		[TTI_CHOICE_BY_TUNE_FILE] = "tune file",
		[TTI_CHOICE_BY_ALGO_FILE] = "TUTTI_ALGO_FILE",
		[TTI_CHOICE_FORCED] = "TUTTI_ALGO",
	};

	return texts[by];
}
