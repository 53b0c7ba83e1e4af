/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/prepare/predict.h"

#include "core/call/args.h"
#include "core/call/counts.h"
#include "core/handoff/handoff.h"
#include "core/handoff/sides.h"
#include "core/init/tuning.h"
#include "core/prepare/layout.h"
#include "core/prepare/operators.h"
#include "core/prepare/programs.h"
#include "plan/tune/tune_terms.h"
#include "util/error.h"

static struct tti_tune_constants constants_of(const struct tti_comm *comm)
{
	return comm->tuning.table ? comm->tuning.table->constants : tti_tune_defaults().constants;
}

/* -- By pairs of ranks ------------------------------------------------------------------ */

static void add_pair(const struct tti_comm *comm, struct tti_predicted_traffic *traffic, int peer,
		     double nbytes, bool is_send)
{
	if (peer == comm->rank) {
		traffic->local += is_send ? nbytes : 0;
	} else if (comm->host_of[peer] == comm->host_of[comm->rank]) {
		*(is_send ? &traffic->near_out : &traffic->near_in) += nbytes;
		traffic->near_messages += !is_send;
	} else {
		*(is_send ? &traffic->far_out : &traffic->far_in) += nbytes;
		traffic->far_messages++;
	}
}

void tti_predict_transfer(struct tti_comm *comm, const struct tti_args *args,
			  struct tti_predicted_traffic *traffic)
{
	add_pair(comm, traffic, args->root,
		 (double)args->count * (double)tutti_type_size(args->type), args->is_send);
}

static void add_pairs(const struct tti_comm *comm, const struct tti_args *args,
		      struct tti_predicted_traffic *traffic)
{
	const double size = (double)tutti_type_size(args->type);
	struct tti_range range;

	for (int peer = 0; peer < comm->n; peer++)
		for (int is_send = 0; is_send < 2; is_send++)
			if (tti_pair_range(comm, args, peer, is_send, &range) && range.count > 0)
				add_pair(comm, traffic, peer, (double)range.count * size, is_send);
}

/* The elements that two ranks of a handoff share go from one to the other; all that hold them send
 * equal parts. */
static void add_handoff(const struct tti_comm *comm, const struct tti_args *args,
			struct tti_predicted_traffic *traffic)
{
	const tutti_side *from = args->from, *to = args->to;
	const double share = (double)tutti_type_size(args->type) / (from->sharded ? 1 : from->n);

	for (int i = 0; i < from->n; i++)
		for (int k = 0; k < to->n; k++) {
			const int giver = from->ranks[i], taker = to->ranks[k];
			size_t a, na, b, nb, first, end;

			if ((giver != comm->rank) == (taker != comm->rank))
				continue;
			tti_side_range(from, giver, args->count, &a, &na);
			tti_side_range(to, taker, args->count, &b, &nb);
			first = a > b ? a : b;
			end = a + na < b + nb ? a + na : b + nb;
			if (end > first)
				add_pair(comm, traffic, giver == comm->rank ? taker : giver,
					 (double)(end - first) * share, giver == comm->rank);
		}
}

double tti_predict_traffic(const struct tti_comm *comm, const struct tti_predicted_traffic *traffic)
{
	const struct tti_tune_constants constants = constants_of(comm);
	const struct tti_tune_machine machine =
		tti_tuning_machine(&comm->tuning, comm->n, comm->nhosts);
	const double far = traffic->far_in > traffic->far_out ? traffic->far_in : traffic->far_out;
	const double near = traffic->near_in + traffic->near_out;
	const double all = near + traffic->far_in + traffic->far_out + 2 * traffic->local;
	const double messages = traffic->near_messages + traffic->far_messages;
	struct tti_tune_terms terms = {
		.near_hops = near > 0,
		.far_hops = far > 0,
		.near_messages = traffic->near_messages,
		.far_messages = traffic->far_messages,
		.chunks = messages > 1 ? messages : 1,
	};

	if (all == 0 && messages == 0)
		return 0;
	if (all > 0) {
		terms.read = traffic->near_in / all;
		terms.written = traffic->near_out / all;
		terms.touched = 1; /* each byte once, where it is sent from or received to */
		terms.socket = (traffic->far_in + traffic->far_out) / all;
		/* As if all ranks of the host did the same. */
		terms.wire = far * machine.most / all;
	}
	return tti_tune_host_time(&constants, &machine, &terms, (size_t)all).us;
}

/* -- Collectives -------------------------------------------------------------------------- */

tutti_status tti_predict_call(struct tti_comm *comm, const struct tti_args *args,
			      struct tti_predicted_traffic *traffic, double *us)
{
	const struct tti_program_need need = {
		.coll = tti_collective_get(args->coll)->program,
		.root = args->root,
		.nbytes = tti_vector_bytes(comm, args),
		.order = tti_op_order(args->op, args->type),
		.algo = args->algo,
	};
	struct tti_tune_time time;

	if (args->coll == TUTTI_HANDOFF) {
		add_handoff(comm, args, traffic);
		return TUTTI_OK;
	}
	if (tti_is_by_pairs(args->coll)) {
		add_pairs(comm, args, traffic);
		return TUTTI_OK;
	}
	TTI_TRY(tti_programs_predict(comm, &need, &time));
	*us += time.us;
	return TUTTI_OK;
}
