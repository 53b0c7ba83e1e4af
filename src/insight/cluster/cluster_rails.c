/* SPDX-License-Identifier: BSD-3-Clause */
#include "insight/cluster/cluster_build.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "util/bitset.h"
#include "util/error.h"
#include "util/mem.h"

/* The sources of rails, the strongest first, as sentences say it. */
static const struct {
	const char *name, *verb;
} sources[] = {
	[TTI_RAIL_FILE] = { "the file of rails", "names" },
	[TTI_RAIL_XML] = { "rail= in the XML", "names" },
	[TTI_RAIL_SUBNET] = { "subnets", "are known of" },
	[TTI_RAIL_GUID] = { "switches", "are known of" },
	[TTI_RAIL_ORDER] = { "the order of NICs", "gives" },
};

const char *tti_rail_source_name(enum tti_rail_source source)
{
	return sources[source].name;
}

/* Each NIC, and its place. */
struct nic_at {
	uint32_t host, port;
};

struct work {
	struct tti_cluster *cluster;
	struct tti_cluster_build *build;
	struct nic_at *at; /* of each NIC */
	size_t n;
};

static const struct tti_cluster_kind *kind_at(const struct work *work, size_t nic)
{
	return &work->build->kinds.at[work->build->hosts.at[work->at[nic].host].kind];
}

static const struct tti_cluster_port *port_at(const struct work *work, size_t nic)
{
	return &kind_at(work, nic)->ports[work->at[nic].port];
}

static int32_t xml_rail(const struct work *work, size_t nic)
{
	return tti_cluster_port_node(kind_at(work, nic), work->at[nic].port)->net.rail;
}

static bool says(const struct work *work, enum tti_rail_source source, size_t nic)
{
	const struct tti_nic_said *said = &work->build->said.at[nic];

	switch (source) {
	case TTI_RAIL_FILE:
		return said->rule != TTI_INTERN_NONE;
	case TTI_RAIL_XML:
		return xml_rail(work, nic) >= 0;
	case TTI_RAIL_SUBNET:
		return said->subnet != TTI_INTERN_NONE;
	case TTI_RAIL_GUID:
		return said->leaf != TTI_INTERN_NONE;
	case TTI_RAIL_ORDER:
		break;
	}
	return true;
}

/* -- Rails that are numbers already: of a file, of the XML, of the order --------------------- */

static int32_t number_of(const struct work *work, enum tti_rail_source source, size_t nic)
{
	if (source == TTI_RAIL_FILE)
		return work->build->rules.at[work->build->said.at[nic].rule].rail;
	if (source == TTI_RAIL_XML)
		return xml_rail(work, nic);
	return (int32_t)port_at(work, nic)->slot;
}

static int by_value(const void *a, const void *b)
{
	const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;

	return (x > y) - (x < y);
}

static bool add_rail(struct work *work, const char *name)
{
	const struct tti_cluster_rail rail = {
		.name = tti_arena_strdup(&work->cluster->arena, name),
	};

	return rail.name && tti_vec_push(&work->build->rails, rail);
}

/* Numbers may have gaps, indices have none. */
static bool rails_of_numbers(struct work *work, enum tti_rail_source source)
{
	int32_t *number = tti_calloc(work->n + 1, sizeof(*number));
	size_t n = 0, ndistinct = 0;
	char name[16];
	bool good = number != NULL;

	for (size_t i = 0; good && i < work->n; i++)
		if (number_of(work, source, i) >= 0)
			number[n++] = number_of(work, source, i);
	if (good && n)
		qsort(number, n, sizeof(*number), by_value);
	for (size_t i = 0; good && i < n; i++) {
		if (i && number[i] == number[i - 1])
			continue;
		snprintf(name, sizeof(name), "%" PRId32, number[i]);
		good = add_rail(work, name);
		number[ndistinct++] = number[i];
	}
	for (size_t i = 0; good && i < work->n; i++) {
		const int32_t want = number_of(work, source, i);
		const int32_t *at = bsearch(&want, number, ndistinct, sizeof(*number), by_value);

		work->build->nics.at[i].rail = at ? (int32_t)(at - number) : -1;
	}
	tti_free(number);
	return good;
}

/* -- Rails of networks: NICs on one subnet, or on one switch ---------------------------------- */

/* The NICs on one network. A rail is often made of several: one leaf switch for each
 * 32 hosts, a subnet for each leaf. Those at one place in their hosts are one rail, unless
 * a host is on both. */
struct net {
	uint32_t word, first, n; /* members[first .. + n): NICs                   */
	uint32_t place;          /* where most of them are in their hosts            */
};

struct nets {
	struct net *at;
	size_t n;
	uint32_t *members;
	uint32_t *slots;             /* scratch, one for each NIC                 */
	TTI_VEC(uint64_t *) taken;   /* of each rail: a bit for each host on it   */
	TTI_VEC(uint32_t) places;    /* of each rail: of its nets                 */
	TTI_VEC(const char *) names; /* of each rail: its largest net             */
};

static uint32_t word_of(const struct work *work, enum tti_rail_source source, size_t nic)
{
	const struct tti_nic_said *said = &work->build->said.at[nic];

	return source == TTI_RAIL_SUBNET ? said->subnet : said->leaf;
}

static void nets_release(struct nets *nets)
{
	for (size_t i = 0; i < nets->taken.n; i++)
		tti_free(nets->taken.at[i]);
	tti_vec_release(&nets->taken);
	tti_vec_release(&nets->places);
	tti_vec_release(&nets->names);
	tti_free(nets->at);
	tti_free(nets->members);
	tti_free(nets->slots);
}

/* The members of each word's net, in order: a counting sort. */
static bool gather(const struct work *work, enum tti_rail_source source, struct nets *nets)
{
	const size_t nwords = work->build->words.entries.n;
	uint32_t next = 0;

	nets->at = tti_calloc(nwords + 1, sizeof(*nets->at));
	nets->members = tti_calloc(work->n + 1, sizeof(*nets->members));
	nets->slots = tti_calloc(work->n + 1, sizeof(*nets->slots));
	if (!nets->at || !nets->members || !nets->slots)
		return false;
	for (size_t i = 0; i < work->n; i++)
		nets->at[word_of(work, source, i)].n++;
	for (size_t i = 0; i < nwords; i++) {
		nets->at[i].word = (uint32_t)i;
		nets->at[i].first = next;
		next += nets->at[i].n;
		nets->at[i].n = 0;
	}
	for (size_t i = 0; i < work->n; i++) {
		struct net *net = &nets->at[word_of(work, source, i)];

		nets->members[net->first + net->n++] = (uint32_t)i;
	}
	for (size_t i = 0; i < nwords; i++)
		if (nets->at[i].n)
			nets->at[nets->n++] = nets->at[i];
	return true;
}

static int by_slot(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* The place in its host that most NICs of a net have; the first of equals. */
static void find_place(const struct work *work, struct nets *nets, struct net *net)
{
	uint32_t best = 0, run = 0;

	for (uint32_t i = 0; i < net->n; i++)
		nets->slots[i] = port_at(work, nets->members[net->first + i])->slot;
	qsort(nets->slots, net->n, sizeof(*nets->slots), by_slot);
	for (uint32_t i = 0; i < net->n; i++) {
		run = i && nets->slots[i] == nets->slots[i - 1] ? run + 1 : 1;
		if (run > best) {
			best = run;
			net->place = nets->slots[i];
		}
	}
}

static int by_size(const void *a, const void *b)
{
	const struct net *x = a, *y = b;

	if (x->n != y->n)
		return x->n < y->n ? 1 : -1;
	return (x->word > y->word) - (x->word < y->word);
}

/* Whether the rail is of the net's place and none of the net's hosts is on it. */
static bool fits(const struct work *work, const struct nets *nets, const struct net *net,
		 size_t rail)
{
	if (nets->places.at[rail] != net->place)
		return false;
	for (uint32_t i = 0; i < net->n; i++)
		if (tti_bit_has(nets->taken.at[rail], work->at[nets->members[net->first + i]].host))
			return false;
	return true;
}

static bool open_rail(const struct work *work, struct nets *nets, uint32_t place)
{
	uint64_t *hosts = tti_calloc(TTI_BITSET_WORDS(work->build->hosts.n), sizeof(*hosts));

	if (hosts && tti_vec_grow(&nets->names) && tti_vec_grow(&nets->places) &&
	    tti_vec_push(&nets->taken, hosts)) {
		nets->names.at[nets->names.n++] = NULL;
		nets->places.at[nets->places.n++] = place;
		return true;
	}
	tti_free(hosts);
	return false;
}

/* The first rail of its place that its hosts are not on yet. The rails 0, 1, ... are those of
 * these places; what finds no room opens more. */
static bool put_net(const struct work *work, struct nets *nets, const struct net *net)
{
	size_t rail = net->place;

	while (rail < nets->taken.n && !fits(work, nets, net, rail))
		rail++;
	if (rail == nets->taken.n && !open_rail(work, nets, net->place))
		return false;
	if (!nets->names.at[rail])
		nets->names.at[rail] = tti_intern_get(&work->build->words, net->word);
	for (uint32_t i = 0; i < net->n; i++) {
		const uint32_t nic = nets->members[net->first + i];

		tti_bit_set(nets->taken.at[rail], work->at[nic].host);
		work->build->nics.at[nic].rail = (int32_t)rail;
	}
	return true;
}

/* Places without a net leave no gap. */
static bool close_gaps(struct work *work, const struct nets *nets)
{
	int32_t *index = tti_calloc(nets->names.n + 1, sizeof(*index));
	bool good = index != NULL;

	for (size_t i = 0; good && i < nets->names.n; i++) {
		index[i] = (int32_t)work->build->rails.n;
		good = !nets->names.at[i] || add_rail(work, nets->names.at[i]);
	}
	for (size_t i = 0; good && i < work->n; i++)
		work->build->nics.at[i].rail = index[work->build->nics.at[i].rail];
	tti_free(index);
	return good;
}

static tutti_status rails_of_nets(struct work *work, enum tti_rail_source source)
{
	struct nets nets = { 0 };
	bool good = gather(work, source, &nets);

	for (size_t i = 0; good && i < nets.n; i++)
		find_place(work, &nets, &nets.at[i]);
	if (good && nets.n)
		qsort(nets.at, nets.n, sizeof(*nets.at), by_size);
	for (size_t i = 0; good && i < nets.n; i++)
		while (good && nets.taken.n <= nets.at[i].place)
			good = open_rail(work, &nets, (uint32_t)nets.taken.n);
	for (size_t i = 0; good && i < nets.n; i++)
		good = put_net(work, &nets, &nets.at[i]);
	good = good && close_gaps(work, &nets);
	if (good && nets.n > work->build->rails.n) {
		const tutti_status status = tti_cluster_note(
			work->cluster,
			"%zu %s make %zu rails: those at one place in their hosts are one rail",
			nets.n, sources[source].name, work->build->rails.n);

		good = status == TUTTI_OK;
	}
	nets_release(&nets);
	return good ? TUTTI_OK : tti_cluster_no_memory();
}

/* -- The whole ------------------------------------------------------------------------------- */

static bool place_nics(struct work *work)
{
	size_t nic = 0;

	work->at = tti_calloc(work->n + 1, sizeof(*work->at));
	if (!work->at)
		return false;
	for (uint32_t h = 0; h < work->build->hosts.n; h++) {
		const uint32_t kind = work->build->hosts.at[h].kind;

		for (uint32_t i = 0; i < work->build->kinds.at[kind].nports; i++)
			work->at[nic++] = (struct nic_at){ h, i };
	}
	return true;
}

/* The strongest source that says it of every NIC. */
static tutti_status choose(struct work *work, enum tti_rail_source *out)
{
	enum tti_rail_source source;

	for (source = TTI_RAIL_FILE; source < TTI_RAIL_ORDER; source++) {
		size_t n = 0;

		for (size_t i = 0; i < work->n; i++)
			n += says(work, source, i);
		if (n && n == work->n)
			break;
		if (n)
			TTI_TRY(tti_cluster_note(work->cluster,
						 "%s %s %zu of %zu NICs only, so rails are taken "
						 "from elsewhere",
						 sources[source].name, sources[source].verb, n,
						 work->n));
	}
	*out = source;
	if (source == TTI_RAIL_ORDER && work->n)
		TTI_TRY(tti_cluster_note(work->cluster,
					 "rails are assumed: the first NIC of each host is on the "
					 "first rail, and so on"));
	return TUTTI_OK;
}

static void sum_up(struct work *work)
{
	for (size_t i = 0; i < work->n; i++) {
		const double gbps = port_at(work, i)->gbps;
		struct tti_cluster_rail *rail;

		if (work->build->nics.at[i].rail < 0)
			continue;
		rail = &work->build->rails.at[work->build->nics.at[i].rail];
		if (rail->nnics == 0 || gbps < rail->slowest_gbps)
			rail->slowest_gbps = gbps;
		if (rail->nnics == 0 || gbps > rail->fastest_gbps)
			rail->fastest_gbps = gbps;
		rail->nnics++;
		rail->gbps += gbps;
	}
}

static tutti_status find_rails(struct work *work)
{
	enum tti_rail_source source;

	TTI_TRY(choose(work, &source));
	work->cluster->rail_source = source;
	if (source == TTI_RAIL_SUBNET || source == TTI_RAIL_GUID)
		TTI_TRY(rails_of_nets(work, source));
	else if (!rails_of_numbers(work, source))
		return tti_cluster_no_memory();
	sum_up(work);
	return TUTTI_OK;
}

tutti_status tti_cluster_find_rails(struct tti_cluster *cluster)
{
	struct work work = { .cluster = cluster,
			     .build = cluster->build,
			     .n = cluster->build->nics.n };
	tutti_status status;

	if (!place_nics(&work))
		return tti_cluster_no_memory();
	status = find_rails(&work);
	tti_free(work.at);
	return status;
}
