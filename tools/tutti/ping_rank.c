/* SPDX-License-Identifier: BSD-3-Clause */
/* One rank of ping. What ranks tell each other goes along a chain, from each to the next, so
 * that two that do not reach each other do not stop the rest: neighbours must, or there would
 * be no communicator. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ping.h"

struct ping_rank {
	const struct ping_options *options;
	struct rank *base;
	tutti_comm_t comm;
	int rank, nranks;
	struct ping_place *places; /* [nranks] */
	struct ping_pairs pairs;
	struct ping_results results; /* rank 0 */
	bool misused;                /* by all ranks alike */
};

/* False: the call failed, and that was printed. */
static bool is_good(struct ping_rank *pr, tutti_status status, const char *what)
{
	return ranks_is_good(pr->base, status, what);
}

/* -- The chain ---------------------------------------------------------------------- */

#define TELLING "telling the others"

static bool tell(struct ping_rank *pr, int to, const void *data, size_t nbytes)
{
	return is_good(pr, tutti_send(data, nbytes, TUTTI_UINT8, to, pr->comm, NULL), TELLING);
}

static bool hear(struct ping_rank *pr, int from, void *data, size_t nbytes)
{
	return is_good(pr, tutti_recv(data, nbytes, TUTTI_UINT8, from, pr->comm, NULL), TELLING);
}

/* Every rank's place at all ranks. */
static bool share_places(struct ping_rank *pr)
{
	const size_t size = sizeof(*pr->places);
	const size_t behind = (size_t)(pr->nranks - 1 - pr->rank);
	struct ping_place *const own = pr->places + pr->rank;

	if (behind && !hear(pr, pr->rank + 1, own + 1, behind * size))
		return false;
	if (pr->rank > 0 && (!tell(pr, pr->rank - 1, own, (behind + 1) * size) ||
			     !hear(pr, pr->rank - 1, pr->places, (size_t)pr->nranks * size)))
		return false;
	return !behind || tell(pr, pr->rank + 1, pr->places, (size_t)pr->nranks * size);
}

/* The texts of all ranks, each with a 0 behind it, at rank 0; others get an empty one.
 * `text` is taken. NULL: it failed, and the error was printed. */
static char *gather(struct ping_rank *pr, char *text)
{
	uint64_t own = strlen(text) + 1, behind = 0, all;
	char *both;

	own = own > 1 ? own : 0;
	if (pr->rank + 1 < pr->nranks && !hear(pr, pr->rank + 1, &behind, sizeof(behind))) {
		free(text);
		return NULL;
	}
	all = own + behind;
	both = realloc(text, all + 1);
	if (!both) {
		free(text);
		is_good(pr, TUTTI_ENOMEM, "gathering the results");
		return NULL;
	}
	both[all] = 0;
	if ((!behind || hear(pr, pr->rank + 1, both + own, behind)) &&
	    (pr->rank == 0 || (tell(pr, pr->rank - 1, &all, sizeof(all)) &&
			       (!all || tell(pr, pr->rank - 1, both, all))))) {
		if (pr->rank > 0)
			both[0] = 0;
		return both;
	}
	free(both);
	return NULL;
}

/* All have come; what rank 0 says is then known to all. */
static bool spread(struct ping_rank *pr, int *value)
{
	return (pr->rank == 0 || hear(pr, pr->rank - 1, value, sizeof(*value))) &&
	       (pr->rank + 1 == pr->nranks || tell(pr, pr->rank + 1, value, sizeof(*value)));
}

/* -- Measuring ------------------------------------------------------------------------ */

/* Which pair of the step is this rank's; NULL: none. */
static const struct ping_pair *own_pair(const struct ping_rank *pr, int step)
{
	for (size_t i = 0; i < pr->pairs.n; i++) {
		const struct ping_pair *pair = &pr->pairs.at[i];

		if (pair->step == step && (pair->a == pr->rank || pair->b == pr->rank))
			return pair;
	}
	return NULL;
}

/* The result as text, "" where another rank has it. NULL: it failed, and the error was printed. */
static char *measure(struct ping_rank *pr, const struct ping_pair *pair)
{
	const char *transport;
	tutti_ping_t ping;
	json_t *object = NULL;
	char *text;

	if (!pair)
		return strdup("");
	if (!is_good(pr, tutti_ping(pr->comm, pair->a, pair->b, &pr->options->ping, &ping),
		     "measuring"))
		return NULL;
	/* The higher rank connects, and so knows more of what was in the way. */
	if (pr->rank < pair->a || pr->rank < pair->b) {
		text = strdup("");
	} else {
		if (tutti_comm_transport(pr->comm, pr->rank == pair->a ? pair->b : pair->a,
					 &transport) == TUTTI_OK)
			object = ping_json(pair, pr->places, transport, ping);
		text = object ? json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(9)) : NULL;
		json_decref(object);
	}
	tutti_ping_free(ping);
	if (!text)
		is_good(pr, TUTTI_ENOMEM, "writing down the result");
	return text;
}

/* At rank 0: print what came. */
static bool take_results(struct ping_rank *pr, const char *texts)
{
	while (*texts) {
		json_error_t error;
		json_t *const pair = json_loads(texts, 0, &error);

		if (!pair || !ping_print_pair(&pr->results, pair))
			return is_good(pr, TUTTI_ENOMEM, "reading the results");
		texts += strlen(texts) + 1;
	}
	return true;
}

static bool run_step(struct ping_rank *pr, int step)
{
	char *text = measure(pr, own_pair(pr, step));
	bool good;
	int go = 1;

	if (!text)
		return false;
	text = gather(pr, text);
	if (!text)
		return false;
	good = take_results(pr, text);
	free(text);
	return good && spread(pr, &go);
}

/* -- Beginning and end ------------------------------------------------------------------ */

static bool find_host(struct ping_rank *pr, int *out)
{
	const char *transport = "";

	for (int peer = 0; peer < pr->rank; peer++) {
		if (!is_good(pr, tutti_comm_transport(pr->comm, peer, &transport), "asking"))
			return false;
		*out = peer;
		if (!strcmp(transport, "shm"))
			return true;
	}
	*out = pr->rank;
	return true;
}

static bool introduce(struct ping_rank *pr)
{
	struct ping_place *own;

	pr->places = calloc((size_t)pr->nranks, sizeof(*pr->places));
	pr->results.pairs = json_array();
	if (!pr->places || !pr->results.pairs)
		return is_good(pr, TUTTI_ENOMEM, "allocating");
	own = &pr->places[pr->rank];
	own->pid = (int)getpid();
	gethostname(own->name, sizeof(own->name) - 1);
	return find_host(pr, &own->host) && share_places(pr);
}

/* One pair alone, of those that the user named. */
static bool choose_peer(struct ping_rank *pr)
{
	const int *peer = pr->options->peer;

	if (peer[0] >= pr->nranks || peer[1] >= pr->nranks) {
		pr->misused = true;
		if (pr->rank == 0)
			tool_bad_usage("--peer %d,%d: there are ranks 0 to %d", peer[0], peer[1],
				       pr->nranks - 1);
		return false;
	}
	pr->pairs.at = calloc(1, sizeof(*pr->pairs.at));
	if (!pr->pairs.at)
		return is_good(pr, TUTTI_ENOMEM, "allocating");
	pr->pairs.at[0].a = peer[0];
	pr->pairs.at[0].b = peer[1];
	pr->pairs.n = 1;
	pr->pairs.nsteps = 1;
	return true;
}

static bool choose_pairs(struct ping_rank *pr)
{
	bool all_ranks = pr->options->whom == PING_RANKS;
	int nhosts = 0;

	if (pr->nranks < 2) {
		pr->misused = true;
		tool_bad_usage("there is one rank, and so nothing between: start "
			       "two or more");
		return false;
	}
	if (pr->options->peer[0] >= 0)
		return choose_peer(pr);
	for (int rank = 0; rank < pr->nranks; rank++)
		nhosts += pr->places[rank].host == rank;
	if (nhosts < 2 && pr->options->whom == PING_HOSTS) {
		pr->misused = true;
		if (pr->rank == 0)
			tool_bad_usage("all ranks are on one host: --ranks all "
				       "measures between them");
		return false;
	}
	all_ranks |= nhosts < 2;
	return ping_pairs_make(pr->places, pr->nranks, all_ranks, &pr->pairs) ||
	       is_good(pr, TUTTI_ENOMEM, "pairing the ranks");
}

static bool run_all(struct ping_rank *pr)
{
	if (!introduce(pr) || !choose_pairs(pr))
		return false;
	pr->results.options = pr->options;
	pr->results.places = pr->places;
	pr->results.nranks = pr->nranks;
	if (pr->rank == 0)
		ping_print_start(&pr->results, &pr->pairs);
	for (int step = 0; step < pr->pairs.nsteps; step++)
		if (!run_step(pr, step))
			return false;
	return pr->rank != 0 || ping_print_end(&pr->results) ||
	       is_good(pr, TUTTI_ENOMEM, "comparing the results");
}

int ping_rank_main(void *options, struct rank *rank)
{
	struct ping_rank pr = { .options = options,
				.base = rank,
				.comm = rank->comm,
				.rank = rank->rank,
				.nranks = rank->n };

	rank->failed |= !run_all(&pr) && !pr.misused;
	free(pr.places);
	free(pr.pairs.at);
	json_decref(pr.results.pairs);
	if (pr.misused)
		return TOOL_USAGE;
	/* Findings are rank 0's: one exit code is enough to say it. */
	return pr.results.nfindings ? TOOL_FINDING : TOOL_GOOD;
}
