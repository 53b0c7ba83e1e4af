/* SPDX-License-Identifier: BSD-3-Clause */
/* How finely an algorithm cuts the data, and how much of it goes in a message. */
#include "coll/choose/choose_parts.h"
#include "util/measured.h"

#define KIB ((size_t)1024)

/* Pipelines want several blocks per hop, but none so small that the cost of a
 * message shows. */
#define PIPELINE_BLOCKS 4
#define SLICE_LEAST     (16 * KIB)
/* Slices are cut at cache lines. */
#define SLICE_ALIGN     ((size_t)64)

static size_t clamp(size_t value, size_t least, size_t most)
{
	if (value < least)
		value = least;
	return value > most ? most : value;
}

/* How many members its ring has, or would have. */
static size_t groups_of(const struct tti_choice_input *input, const struct tti_algorithm *algo)
{
	const bool of_ranks =
		(algo->traits & (TTI_TRAIT_RING | TTI_TRAIT_GROUPS)) == TTI_TRAIT_RING;

	return (size_t)(of_ranks ? input->n : input->nhosts);
}

/* In a ring between hosts a message takes one lane of its link, and the other lanes wait for the
 * last message. So messages are a small part of what goes over a link. */
static size_t ring_slice(const struct tti_choice_input *input, const struct tti_algorithm *algo,
			 struct tti_split split, size_t most)
{
	const size_t groups = groups_of(input, algo);
	const size_t links = split.stripes > 1 ? (size_t)split.stripes : 1;
	const size_t passed = input->nbytes / groups * (groups - 1) / links;
	const size_t times = input->coll == TUTTI_ALL_REDUCE ? 2 : 1;

	return clamp(passed / TTI_LINK_SLICES * times,
		     most < TTI_LINK_LEAST ? most : TTI_LINK_LEAST, most);
}

/* Two that send as much as they get: nobody is ahead, as the root of a broadcast is, whose
 * messages are the steps of a pipeline. */
static bool is_pair(const struct tti_choice_input *input)
{
	return input->n == 2 && input->nhosts == 1 && !input->oversubscribed &&
	       !tti_collective_is_rooted(input->coll);
}

static size_t choose_slice(const struct tti_choice_input *input, const struct tti_algorithm *algo,
			   struct tti_split split)
{
	const bool direct = algo->traits & (TTI_TRAIT_DIRECT | TTI_TRAIT_GROUPS);
	const size_t step = is_pair(input) ? TTI_PAIR_SLICE : TTI_DIRECT_SLICE;
	const size_t most =
		direct ? clamp(step, SLICE_LEAST, input->slot_bytes) : input->slot_bytes;

	if (input->nhosts > 1 && algo->traits & TTI_TRAIT_RING)
		return ring_slice(input, algo, split, most);
	if (algo->traits & TTI_TRAIT_PIPELINE &&
	    (input->nhosts > 1 || !(algo->traits & TTI_TRAIT_GROUPS)))
		return clamp(input->nbytes / (PIPELINE_BLOCKS * (size_t)input->n), SLICE_LEAST,
			     most);
	return most;
}

/* Rings between hosts: what a round carries in several parts, so many that the wires are
 * busy while one is worked on, and none so small that the cost of a message shows. A kernel does
 * step after step, so no part would be on its way while it waits for another one; and what it
 * receives would no longer be sent on in the same pass. */
static int choose_parts(const struct tti_choice_input *input, const struct tti_algorithm *algo,
			int stripes)
{
	const bool by_rank = tti_collective_is_by_rank(input->coll);
	const size_t links = stripes > 1 ? (size_t)stripes : 1;
	const size_t round = input->nbytes / groups_of(input, algo) / links;
	const size_t owners = (size_t)input->n / (size_t)input->nhosts / links;
	/* If chunks are the ranks' own, a stripe has several of them anyway. */
	const size_t chunks = by_rank && stripes > 0 && owners > 1 ? owners : 1;
	/* Neither of two ranks that gather passes on what it gets: messages are as small as over
	 * any link, and no smaller. */
	const size_t least =
		input->coll == TUTTI_ALL_GATHER && input->n == 2 ? TTI_LINK_LEAST : SLICE_LEAST;
	size_t parts = 1;

	if (input->nhosts < 2 || input->in_order || !(algo->traits & TTI_TRAIT_RING))
		return 1;
	while (parts * chunks < TTI_RING_PARTS && round / (2 * parts * chunks) >= least)
		parts *= 2;
	return (int)parts;
}

struct tti_split tti_choice_split(const struct tti_choice_input *input,
				  const struct tti_algorithm *algo)
{
	struct tti_split split = { 0 };

	if (input->nhosts > 1 && algo->traits & TTI_TRAIT_GROUPS && tti_choice_knows_hosts(input))
		split.stripes = tti_choice_stripes(input, algo);
	split.parts = choose_parts(input, algo, split.stripes);
	return split;
}

size_t tti_choice_slice(const struct tti_choice_input *input, const struct tti_algorithm *algo,
			struct tti_split split, size_t slice)
{
	size_t nbytes =
		slice ? clamp(slice, 1, input->slot_bytes) : choose_slice(input, algo, split);

	if (nbytes > SLICE_ALIGN)
		nbytes -= nbytes % SLICE_ALIGN;
	return nbytes;
}
