/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/call/submit.h"
#include "core/comm_error.h"
#include "core/handle.h"
#include "core/lifetime.h"
#include "core/prepare/predict.h"
#include "core/sequence.h"
#include "util/error.h"
#include "util/fork.h"

tutti_status tutti_group_start(void)
{
	tti_fork_watch();
	if (tti_call_group.depth > 0 && !tti_group_is_open()) {
		tti_group_clear();
		tti_call_group.depth = 0;
	}
	tti_call_group.pid = tti_fork_pid();
	tti_call_group.depth++;
	return TUTTI_OK;
}

/* A send to oneself that nothing receives would wait for ever. */
static tutti_status check_self_transfers(const struct tti_queued_call *calls, size_t ncalls)
{
	for (size_t i = 0; i < ncalls; i++) {
		int sends = 0, recvs = 0;

		for (size_t k = 0; k < ncalls; k++)
			if (tti_is_transfer(&calls[k]) && calls[k].comm == calls[i].comm &&
			    calls[k].args.root == calls[k].comm->rank &&
			    calls[k].stream == calls[i].stream) {
				sends += calls[k].args.is_send;
				recvs += !calls[k].args.is_send;
			}
		if (sends != recvs)
			return tti_fail(
				TUTTI_EUSAGE,
				"the group has %d sends to and %d receives from the own rank %d "
				"on one stream: put as many receives as sends into it",
				sends, recvs, calls[i].comm->rank);
	}
	return TUTTI_OK;
}

static tutti_status wait_for_inits(void)
{
	tutti_status st = TUTTI_OK;

	for (size_t i = 0; i < tti_call_group.inits.n; i++) {
		struct tti_comm *comm = atomic_load(&tti_call_group.inits.at[i]->comm);

		pthread_join(comm->init_thread, NULL);
		comm->has_init_thread = false;
		if (st == TUTTI_OK)
			st = tti_comm_init_error(comm);
		if (comm->is_outsider) {
			tti_handle_free(tti_call_group.inits.at[i]);
			tti_comm_free(comm);
		}
	}
	return st;
}

static tutti_status start_streams(const struct tti_queued_call *calls, size_t n)
{
	tutti_status st = TUTTI_OK;

	for (size_t i = 0; i < n && st == TUTTI_OK; i++) {
		size_t first = 0;

		while (calls[first].stream != calls[i].stream)
			first++;
		if (first == i && calls[i].stream && !calls[i].is_launched)
			st = tti_submit_batch(calls, n, calls[i].stream);
	}
	return st;
}

/* Streams first: they run while the caller runs its own batch. A launch may wait for other ranks, which makes
 * lanes; so those of this thread that have no device, and thus no launch, are queued before. */
static tutti_status start_batches(struct tti_queued_call *calls, size_t n)
{
	tutti_status st = tti_submit_place(calls, n);
	bool has_null = false, hosts_first = true;
	size_t nlaunched = 0;

	for (size_t i = 0; i < n; i++) {
		nlaunched += calls[i].is_launched;
		has_null |= !calls[i].stream;
		hosts_first &= !calls[i].stream || calls[i].is_launched || !calls[i].comm->device;
	}
	if (st == TUTTI_OK && hosts_first)
		st = start_streams(calls, n);
	if (st == TUTTI_OK && nlaunched > 0)
		st = tti_submit_launches(calls, n);
	if (st == TUTTI_OK && !hosts_first)
		st = start_streams(calls, n);
	if (st == TUTTI_OK && has_null)
		st = tti_submit_batch(calls, n, NULL);
	return st;
}

static tutti_status run_group(void)
{
	struct tti_queued_call *calls = tti_call_group.calls.at;
	tutti_status st = check_self_transfers(calls, tti_call_group.calls.n);
	size_t begun = 0;

	for (; begun < tti_call_group.calls.n && st == TUTTI_OK; begun++)
		if (!tti_sequence_begin(calls[begun].comm, &calls))
			break;
	if (st == TUTTI_OK && begun < tti_call_group.calls.n)
		st = tti_handle_fail_busy(calls[begun].handle);
	if (st == TUTTI_OK)
		st = start_batches(calls, tti_call_group.calls.n);
	while (begun-- > 0)
		tti_sequence_end(calls[begun].comm);
	return st;
}

/* The sends and receives of one communicator on one stream run at the same time; all else in
 * sequence, as on one core. */
static tutti_status predict_group(double *us)
{
	const struct tti_queued_call *calls = tti_call_group.calls.at;
	tutti_status st = check_self_transfers(calls, tti_call_group.calls.n);

	*us = 0;
	for (size_t i = 0; i < tti_call_group.calls.n && st == TUTTI_OK; i++) {
		struct tti_predicted_traffic traffic = { 0 };
		size_t k = tti_is_transfer(&calls[i]) ? 0 : i;

		if (!tti_is_transfer(&calls[i]))
			st = tti_predict_call(calls[i].comm, &calls[i].args, &traffic, us);
		for (; k < tti_call_group.calls.n && tti_is_transfer(&calls[i]); k++) {
			if (!tti_is_transfer(&calls[k]) || calls[k].comm != calls[i].comm ||
			    calls[k].stream != calls[i].stream)
				continue;
			if (k < i)
				break; /* counted with the first of them */
			tti_predict_transfer(calls[k].comm, &calls[k].args, &traffic);
		}
		*us += tti_predict_traffic(calls[i].comm, &traffic);
	}
	return st;
}

/* End the outermost group: run its calls, or, with `us`, predict them. */
static tutti_status end_group(double *us)
{
	tutti_status st = tti_call_group.error == TUTTI_OK
				  ? TUTTI_OK
				  : tti_fail_quiet(tti_call_group.error, "%s", tti_call_group.text);

	if (tti_call_group.inits.n > 0) {
		const tutti_status inits = wait_for_inits();

		st = st == TUTTI_OK ? inits : st;
	}
	if (st == TUTTI_OK)
		st = us ? predict_group(us) : run_group();
	tti_group_clear();
	return st;
}

/* TUTTI_OK: the outermost group ends now; TUTTI_AGAIN: only an inner one. */
static tutti_status leave_group(void)
{
	const tutti_status st = tti_fork_check("group", &tti_call_group, tti_call_group.pid);

	if (--tti_call_group.depth > 0)
		return st == TUTTI_OK ? TUTTI_AGAIN : st;
	if (st != TUTTI_OK)
		tti_group_clear();
	return st;
}

tutti_status tutti_group_end(void)
{
	tutti_status st;

	if (tti_call_group.depth == 0)
		return tti_fail(TUTTI_EUSAGE, "tutti_group_end() without tutti_group_start()");
	st = leave_group();
	if (st == TUTTI_AGAIN)
		return TUTTI_OK;
	return st == TUTTI_OK ? end_group(NULL) : st;
}

tutti_status tutti_group_simulate_end(double *us)
{
	tutti_status st;

	if (tti_call_group.depth == 0)
		return tti_fail(TUTTI_EUSAGE,
				"tutti_group_simulate_end() without tutti_group_start()");
	if (!us)
		return tti_fail(TUTTI_EINVAL, "us is NULL: pass the address of a double. The group "
					      "is still open");
	if (tti_call_group.depth > 1)
		return tti_fail(
			TUTTI_EUSAGE,
			"tutti_group_simulate_end() inside %d groups: end the inner ones with "
			"tutti_group_end() first",
			tti_call_group.depth);
	st = leave_group();
	return st == TUTTI_OK ? end_group(us) : st;
}
