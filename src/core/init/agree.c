/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/init/agree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "boot/boot.h"
#include "coll/shape.h"
#include "core/init/comm_job.h"
#include "core/init/nics.h"
#include "core/init/wiring.h"
#include "plan/search/clp.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/fault.h"
#include "util/file.h"
#include "util/hash.h"
#include "util/log.h"
#include "util/mem.h"
#include "util/params.h"
#include "util/strbuf.h"

/* How long each search may look for more, at init. */
#define SEARCH_MS 100
#define WHY_BYTES 1024

bool tti_needs_plan(const struct tti_peers *peers, int nhosts)
{
	return peers->n > 1 && (nhosts > 1 || peers->asks);
}

/* -- Rank 0 makes it ----------------------------------------------------------------- */

/* The broadcast before the text: its size, or why there is none. */
struct decision {
	int32_t status;
	uint8_t has_members;   /* behind the text: the endpoint of each rank */
	uint8_t has_parts;     /* ... the part of its host of each rank      */
	uint8_t has_nics;      /* ... and the NICs that each should use first        */
	uint8_t has_choice;    /* some of them have several                         */
	uint32_t nlocated;     /* ... and which interfaces the NICs of the plan are  */
	uint64_t nbytes, hash; /* 0 bytes: there is no plan, ranks go by number  */
	char why[WHY_BYTES];
};

struct draft {
	struct decision decision;
	char *text;
	uint32_t *part, *member;    /* [n] */
	struct tti_nic_order *nics; /* [n] */
	uint8_t *located;           /* of tti_nics_locate() */
};

static tutti_status no_memory(int n)
{
	return tti_fail(TUTTI_ENOMEM, "the plan of %d ranks: out of memory", n);
}

static tutti_status make(const struct tti_comm_job *job, struct tti_plan **out)
{
	const uint32_t inside = 1u << TTI_PATTERN_RING | 1u << TTI_PATTERN_TREE;
	const uint32_t across = 1u << TTI_PATTERN_BALANCED_TREE | 1u << TTI_PATTERN_SPLIT_TREE;
	const struct tti_plan_config config = {
		.patterns = job->job.nnodes > 1 ? inside | across : inside,
		.cross_nic = TTI_CROSS_AUTO,
		.both_ways = true,
		.budget_ms = SEARCH_MS,
	};
	tutti_status st;

	TTI_TRY(tti_plan_make(&job->job, &config, out));
	st = tti_plan_check(*out);
	if (st != TUTTI_OK) {
		tti_plan_free(*out);
		*out = NULL;
	}
	return st;
}

/* Number the parts by their lowest ranks. */
static tutti_status label_parts(const uint32_t *part, int n, uint32_t *label_out)
{
	uint64_t *key = tti_calloc((size_t)n, sizeof(*key));
	int *first = tti_calloc((size_t)n, sizeof(*first));
	tutti_status st = key && first ? TUTTI_OK : no_memory(n);

	for (int rank = 0; rank < n && st == TUTTI_OK; rank++)
		key[rank] = (uint64_t)part[rank] + 1;
	if (st == TUTTI_OK)
		st = tti_peers_group(key, n, first);
	for (int rank = 0; rank < n && st == TUTTI_OK; rank++)
		label_out[rank] = (uint32_t)first[rank];
	tti_free(key);
	tti_free(first);
	return st;
}

static void list_members(const struct tti_plan_job *job, uint32_t *member)
{
	for (uint32_t node = 0; node < job->nnodes; node++)
		for (uint32_t i = 0; i < job->nodes[node].nranks; i++)
			member[job->nodes[node].ranks[i]] = job->nodes[node].members[i];
}

/* The endpoints of ranks, and on several hosts, their NICs. */
static tutti_status describe(const struct tti_comm_job *job, const struct tti_host_classes *hosts,
			     const struct tti_plan *plan, struct draft *draft)
{
	bool has_choice = false;

	list_members(&job->job, draft->member);
	draft->decision.has_members = 1;
	if (job->job.nnodes == 1)
		return TUTTI_OK;
	TTI_TRY(tti_nics_deal(job, hosts, draft->nics, &has_choice));
	draft->decision.has_nics = 1;
	draft->decision.has_choice = has_choice;
	if (!has_choice || !plan)
		return TUTTI_OK;
	return tti_nics_locate(job, hosts, plan, &draft->located, &draft->decision.nlocated);
}

static tutti_status make_of_hosts(const struct tti_peers *peers,
				  const struct tti_host_classes *hosts, const int *host_of,
				  struct draft *draft, struct tti_plan **out)
{
	struct tti_comm_job job;
	tutti_status st = TUTTI_OK;

	TTI_TRY(tti_comm_job_build(peers, hosts, host_of, &job));
	if (tti_clp_missing())
		tti_log(TTI_LOG_WARN, TTI_PLAN,
			"no plan can be made, so rings and trees go by the numbers of the ranks: "
			"the "
			"solver Clp (package coinor-libclp1) is missing on rank 0: %s",
			tti_clp_missing());
	else
		st = make(&job, out);
	if (st == TUTTI_OK)
		st = describe(&job, hosts, *out, draft);
	if (st == TUTTI_OK && *out && job.job.nnodes == 1) {
		st = label_parts(job.part, peers->n, draft->part);
		draft->decision.has_parts = 1;
	}
	tti_comm_job_release(&job);
	return st;
}

/* Whether the ranks of each of its nodes are those of one host. */
static tutti_status check_hosts(const struct tti_plan *plan, const int *host_of, int n, int nhosts)
{
	if (plan->nranks != (uint32_t)n || plan->nnodes != (uint32_t)nhosts)
		return tti_fail(TUTTI_EPLAN,
				"it is of %u ranks on %u nodes, and these are %d on %d host%s",
				plan->nranks, plan->nnodes, n, nhosts, nhosts == 1 ? "" : "s");
	for (int rank = 0; rank < n; rank++) {
		const uint32_t node = plan->ranks[rank].node;
		const int first = (int)plan->nodes[node].ranks[0];

		if (host_of[rank] != host_of[first])
			return tti_fail(TUTTI_EPLAN,
					"its node %u holds ranks %d and %d, which are on "
					"different hosts",
					node, first, rank);
	}
	return TUTTI_OK;
}

static bool has_ways(const struct tti_plan *plan)
{
	for (uint32_t i = 0; i < plan->npatterns; i++)
		for (uint32_t k = 0; k < plan->patterns[i].nchannels; k++)
			if (plan->patterns[i].channels[k].ways)
				return true;
	return false;
}

static tutti_status read_plan(const struct tti_peers *peers, const int *host_of, int nhosts,
			      struct tti_plan **out)
{
	const char *path = tti_params()->plan_file;
	struct tti_plan *plan = NULL;
	tutti_status st =
		tti_plan_read(peers->plan_text, peers->info[0].plan_file.nbytes, path, &plan);

	if (st == TUTTI_OK)
		st = check_hosts(plan, host_of, peers->n, nhosts);
	if (st == TUTTI_OK) {
		/* Ranks on CPUs reach ranks of their host by memory only. */
		if (has_ways(plan))
			tti_log(TTI_LOG_WARN, TTI_PLAN,
				"TUTTI_PLAN_FILE %s: hops of \"over_nets\" go by shared memory, as "
				"ranks are on CPUs",
				path);
		*out = plan;
		return TUTTI_OK;
	}
	tti_plan_free(plan);
	if (st == TUTTI_ENOMEM)
		return st;
	return tti_fail(TUTTI_EPLAN, "TUTTI_PLAN_FILE %s cannot be used: %s", path,
			tti_error_text());
}

/* The user's plan; its NICs are looked up on the hosts. */
static tutti_status read_file(const struct tti_peers *peers, const struct tti_host_classes *hosts,
			      const int *host_of, int nhosts, struct draft *draft,
			      struct tti_plan **out)
{
	struct tti_comm_job job;
	tutti_status st;

	TTI_TRY(read_plan(peers, host_of, nhosts, out));
	if (nhosts == 1)
		return TUTTI_OK;
	TTI_TRY(tti_comm_job_build(peers, hosts, host_of, &job));
	st = describe(&job, hosts, *out, draft);
	tti_comm_job_release(&job);
	return st;
}

static tutti_status write_text(const struct tti_plan *plan, struct draft *draft)
{
	struct tti_strbuf text = { 0 };
	tutti_status st = tti_plan_json(plan, &text);

	if (st == TUTTI_OK) {
		draft->decision.nbytes = text.len;
		draft->decision.hash = tti_hash_bytes(text.text, text.len);
		draft->text = tti_strbuf_take(&text);
	}
	tti_strbuf_release(&text);
	return st;
}

static void fill_draft(const struct tti_peers *peers, const struct tti_host_classes *hosts,
		       const int *host_of, int nhosts, struct draft *draft)
{
	struct tti_plan *plan = NULL;
	tutti_status st = peers->plan_text ? read_file(peers, hosts, host_of, nhosts, draft, &plan)
					   : make_of_hosts(peers, hosts, host_of, draft, &plan);

	if (st == TUTTI_OK && plan)
		st = write_text(plan, draft);
	if (st == TUTTI_OK && plan && tti_params()->plan_dump_file)
		st = tti_file_replace(tti_params()->plan_dump_file, draft->text,
				      draft->decision.nbytes);
	tti_plan_free(plan);
	draft->decision.status = st;
	if (st != TUTTI_OK)
		(void)snprintf(draft->decision.why, sizeof(draft->decision.why), "%s",
			       tti_error_text());
}

/* -- All receive it ---------------------------------------------------------------------- */

static tutti_status receive(const struct tti_peers *peers, struct draft *draft)
{
	struct decision *decision = &draft->decision;

	TTI_TRY(tti_boot_broadcast(peers->boot, 0, decision, sizeof(*decision)));
	decision->why[sizeof(decision->why) - 1] = '\0';
	if (decision->status != TUTTI_OK && peers->rank == 0)
		return tti_fail_quiet((tutti_status)decision->status, "%s", decision->why);
	if (decision->status != TUTTI_OK)
		return tti_fail(decision->status < 0 ? (tutti_status)decision->status
						     : TUTTI_EPROTO,
				"rank 0: %s", decision->why);
	if (peers->rank != 0 || !decision->nbytes) {
		draft->text = tti_alloc(decision->nbytes + 1);
		draft->located = tti_alloc(decision->nlocated + 1);
		if (!draft->text || !draft->located)
			return no_memory(peers->n);
	}
	draft->text[decision->nbytes] = '\0';
	if (decision->nbytes)
		TTI_TRY(tti_boot_broadcast(peers->boot, 0, draft->text, decision->nbytes));
	if (decision->has_members)
		TTI_TRY(tti_boot_broadcast(peers->boot, 0, draft->member,
					   (size_t)peers->n * sizeof(*draft->member)));
	if (decision->has_nics)
		TTI_TRY(tti_boot_broadcast(peers->boot, 0, draft->nics,
					   (size_t)peers->n * sizeof(*draft->nics)));
	if (decision->nlocated)
		TTI_TRY(tti_boot_broadcast(peers->boot, 0, draft->located, decision->nlocated));
	if (!decision->has_parts)
		return TUTTI_OK;
	return tti_boot_broadcast(peers->boot, 0, draft->part,
				  (size_t)peers->n * sizeof(*draft->part));
}

static tutti_status derive(int rank, struct draft *draft, struct tti_agreed *out)
{
	const struct decision *decision = &draft->decision;

	if (!decision->nbytes)
		return TUTTI_OK;
	if (tti_hash_bytes(draft->text, decision->nbytes) != decision->hash)
		return tti_fail(TUTTI_EPLAN, "the plan of rank 0 came to rank %d damaged", rank);
	TTI_TRY(tti_plan_read(draft->text, decision->nbytes, "the plan of rank 0", &out->plan));
	TTI_TRY(tti_shape_of_plan(out->plan, &out->shape));
	if (out->plan->nnodes > 1)
		return TUTTI_OK;
	return decision->has_parts ? tti_shape_group(out->shape, draft->part)
				   : tti_shape_group_by_name(out->shape, out->plan);
}

/* -- It is the same on all ---------------------------------------------------------------- */

static uint64_t mix(uint64_t hash, const uint32_t *list, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		hash = tti_hash_combine(hash, list[i]);
	return hash;
}

static uint64_t shape_hash(const struct tti_shape *shape)
{
	uint64_t hash = tti_hash_combine(shape->n, shape->ngroups);

	for (uint32_t i = 0; i < shape->nrings; i++) {
		hash = tti_hash_combine(hash, shape->rings[i].share);
		hash = mix(hash, shape->rings[i].order, shape->n);
	}
	for (uint32_t i = 0; i < shape->ntrees; i++) {
		hash = tti_hash_combine(hash, shape->trees[i].share);
		hash = mix(hash, shape->trees[i].parent, shape->n);
	}
	return mix(mix(hash, shape->group_of, shape->n), shape->members, shape->n);
}

/* What each rank holds. */
struct proof {
	uint64_t plan, shape;
	int32_t status;
	uint32_t reserved;
};

static tutti_status compare(const struct tti_peers *peers, const struct tti_agreed *agreed,
			    tutti_status status)
{
	struct proof *proof = tti_calloc((size_t)peers->n, sizeof(*proof));
	tutti_status st;

	if (!proof)
		return no_memory(peers->n);
	proof[peers->rank].status = status;
	if (status == TUTTI_OK && agreed->plan) {
		proof[peers->rank].plan = agreed->plan->hash;
		proof[peers->rank].shape = shape_hash(agreed->shape) ^ tti_fault("core.shape");
	}
	st = tti_boot_all_gather(peers->boot, proof, sizeof(*proof));
	for (int rank = 0; rank < peers->n && st == TUTTI_OK; rank++)
		if (proof[rank].status != TUTTI_OK)
			st = tti_peers_fail(peers->boot, rank, (tutti_status)proof[rank].status);
	for (int rank = 1; rank < peers->n && st == TUTTI_OK; rank++)
		if (proof[rank].plan != proof[0].plan || proof[rank].shape != proof[0].shape)
			st = tti_fail(
				TUTTI_EPLAN,
				"rank %d makes other %s from the plan than rank 0 (%016llx, not "
				"%016llx): run the same build of Tutti on all ranks",
				rank, proof[rank].plan != proof[0].plan ? "channels" : "programs",
				(unsigned long long)proof[rank].shape,
				(unsigned long long)proof[0].shape);
	tti_free(proof);
	return st;
}

/* -- All of it ----------------------------------------------------------------------------- */

static tutti_status agree(const struct tti_peers *peers, struct tti_host_classes *hosts,
			  const int *host_of, int nhosts, struct tti_agreed *out)
{
	struct draft draft = { .part = tti_calloc((size_t)peers->n, sizeof(*draft.part)),
			       .member = tti_calloc((size_t)peers->n, sizeof(*draft.member)),
			       .nics = tti_calloc((size_t)peers->n, sizeof(*draft.nics)) };
	tutti_status st = draft.part && draft.member && draft.nics ? TUTTI_OK : no_memory(peers->n);

	if (st == TUTTI_OK && peers->rank == 0)
		fill_draft(peers, hosts, host_of, nhosts, &draft);
	if (st == TUTTI_OK)
		st = receive(peers, &draft);
	if (st == TUTTI_OK)
		st = compare(peers, out, derive(peers->rank, &draft, out));
	if (st == TUTTI_OK && draft.decision.has_choice)
		tti_nics_name(hosts, peers->rank, &draft.nics[peers->rank], &out->nics);
	if (st == TUTTI_OK && draft.decision.nlocated)
		st = tti_nics_wire(out->plan, hosts, draft.located, peers->rank, &out->wires);
	if (st == TUTTI_OK && draft.decision.has_members)
		st = tti_wiring_create(hosts, host_of, draft.member, peers->n, &out->wiring);
	tti_free(draft.text);
	tti_free(draft.member);
	tti_free(draft.nics);
	tti_free(draft.located);
	tti_free(draft.part);
	return st;
}

tutti_status tti_agree_on_plan(const struct tti_peers *peers, const int *host_of, int nhosts,
			       struct tti_agreed *out, int64_t *topology_ns)
{
	struct tti_agreed agreed = { .plan = NULL };
	struct tti_host_classes hosts = { 0 };
	const bool is_read = peers->has_plan_file && nhosts == 1;
	tutti_status st = is_read ? tti_dump_topology(peers)
				  : tti_host_classes_exchange(peers, nhosts > 1, &hosts);

	*topology_ns = tti_now_ns();
	if (st == TUTTI_OK)
		st = agree(peers, &hosts, host_of, nhosts, &agreed);
	tti_host_classes_release(&hosts);
	if (st == TUTTI_OK)
		*out = agreed;
	else
		tti_agreed_release(&agreed);
	return st;
}

void tti_agreed_release(struct tti_agreed *agreed)
{
	tti_shape_free(agreed->shape);
	tti_plan_free(agreed->plan);
	tti_nics_unwire(&agreed->wires);
	tti_wiring_free(agreed->wiring);
	*agreed = (struct tti_agreed){ .plan = NULL };
}

tutti_status tti_dump_topology(const struct tti_peers *peers)
{
	struct tti_host_classes hosts;

	if (!peers->dumps)
		return TUTTI_OK;
	TTI_TRY(tti_host_classes_exchange(peers, false, &hosts));
	tti_host_classes_release(&hosts);
	return TUTTI_OK;
}
