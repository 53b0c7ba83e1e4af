/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll/check/check_memory.h"

#include <string.h>

#include "util/bitset.h"
#include "util/error.h"

/* Memory is in cells: the input and the output of each chunk at each rank. In place an input is
 * the cell of the output that lies there. A rank that does a run of steps block by block does the
 * same in every block, and chunks that share a cell share it block by block, so whole chunks
 * stand for all of them. */

/* The step by which an operation reads from a peer, or puts. */
int tti_check_access_step(const struct tti_check *check, int32_t oper, int peer, bool is_put)
{
	const int rank = check->rank_of[oper];
	const struct tti_operation *at = tti_check_operation(check, oper);
	const int first = check->compiled[rank].step[tti_check_index(check, oper)];
	const int made = at->nget ? at->nget : at->to != TTI_PLACE_NONE;
	const int from = first + (is_put ? made : 0);

	for (int i = 0; first >= 0 && i < (is_put ? at->nput : at->nget); i++)
		if (check->prog[rank].steps.at[from + i].peer == peer)
			return from + i;
	return first;
}

static bool is_input(const struct tti_program *prog, int chunk)
{
	/* If send_recv does not say it, an input is what somebody gets. */
	return (prog->coll == TUTTI_SEND_RECV && !prog->ends.n) || tti_chunk_is_input(prog, chunk);
}

size_t tti_check_cell_of(const struct tti_check_memory_run *run, int rank, int chunk,
			 bool is_output)
{
	const struct tti_program *prog = &run->check->prog[rank];

	if (!is_output && prog->in_place &&
	    tti_chunk_is_output(prog, tti_chunk_twin(prog, chunk))) {
		chunk = tti_chunk_twin(prog, chunk);
		is_output = true;
	}
	return ((size_t)rank * 2 + is_output) * (size_t)prog->nchunks + (size_t)chunk;
}

uint64_t *tti_check_cell_value(const struct tti_check_memory_run *run, size_t cell)
{
	return run->value + cell * run->check->value_words;
}

/* Whether operation `before` is before what operation `oper` does. */
static bool is_before(const struct tti_check_memory_run *run, int32_t before, int32_t oper)
{
	const struct tti_check *check = run->check;
	const int rank = check->rank_of[oper], other = check->rank_of[before];

	return rank == other ||
	       run->clock[rank * check->n + other] > tti_check_index(check, before);
}

static int step_of_access(const struct tti_check_memory_run *run,
			  const struct tti_check_access *access)
{
	return tti_check_access_step(run->check, access->oper, access->owner, access->writes);
}

/* Two accesses that nothing orders. */
static tutti_status unordered(const struct tti_check_memory_run *run,
			      const struct tti_check_access *access, int32_t other,
			      const char *what)
{
	const struct tti_check *check = run->check;
	const int rank = check->rank_of[access->oper], peer = check->rank_of[other];

	return tti_fail_quiet(
		TUTTI_EINVAL,
		"rank %d, step %d: chunk %d of rank %d is %s while rank %d, step %d, may "
		"still %s that memory: a wait must come between them",
		rank, step_of_access(run, access), access->chunk, access->owner,
		access->writes ? "written" : "read", peer,
		tti_check_access_step(check, other, access->owner, strcmp(what, "write") == 0),
		what);
}

/* Check that the owner's program has begun. */
static tutti_status check_begun(struct tti_check_memory_run *run,
				const struct tti_check_access *access)
{
	const struct tti_check *check = run->check;
	const int rank = check->rank_of[access->oper];

	if (rank == access->owner)
		return TUTTI_OK;
	run->touched[access->owner * check->n + rank] = access->oper + 1;
	if (run->clock[rank * check->n + access->owner] > 0)
		return TUTTI_OK;
	return tti_fail_quiet(
		TUTTI_EINVAL,
		"rank %d, step %d: chunk %d of rank %d is %s before any wait for that "
		"rank, which may not have begun",
		rank, step_of_access(run, access), access->chunk, access->owner,
		access->writes ? "written" : "read");
}

tutti_status tti_check_read(struct tti_check_memory_run *run, const struct tti_check_access *access,
			    const uint64_t **value)
{
	const struct tti_check *check = run->check;
	const size_t index =
		tti_check_cell_of(run, access->owner, access->chunk, access->is_output);
	const int rank = check->rank_of[access->oper];
	const struct tti_check_reader reader = { access->oper, run->cell[index].readers };
	struct tti_check_cell *cell = &run->cell[index];

	TTI_TRY(check_begun(run, access));
	if (rank != access->owner && !is_input(&check->prog[access->owner], access->chunk))
		return tti_fail_quiet(TUTTI_EINVAL,
				      "rank %d, step %d: chunk %d is no input of rank %d", rank,
				      step_of_access(run, access), access->chunk, access->owner);
	if (cell->writer >= 0 && !is_before(run, cell->writer, access->oper))
		return unordered(run, access, cell->writer, "write");
	if (cell->holds != access->chunk)
		return tti_fail_quiet(
			TUTTI_EINVAL,
			"rank %d, step %d: chunk %d of rank %d is read after chunk %d "
			"was written to that memory, in place",
			rank, step_of_access(run, access), access->chunk, access->owner,
			cell->holds);
	if (!tti_vec_push(&run->reader, reader))
		return tti_check_no_memory(check);
	cell->readers = (int32_t)run->reader.n - 1;
	*value = tti_check_cell_value(run, index);
	return TUTTI_OK;
}

tutti_status tti_check_write(struct tti_check_memory_run *run,
			     const struct tti_check_access *access)
{
	const struct tti_check *check = run->check;
	const size_t index = tti_check_cell_of(run, access->owner, access->chunk, true);
	const int rank = check->rank_of[access->oper];
	struct tti_check_cell *cell = &run->cell[index];

	TTI_TRY(check_begun(run, access));
	if (!tti_chunk_is_output(&check->prog[access->owner], access->chunk))
		return tti_fail_quiet(TUTTI_EINVAL,
				      "rank %d, step %d: chunk %d is no output of rank %d", rank,
				      step_of_access(run, access), access->chunk, access->owner);
	if (cell->writer >= 0 && !is_before(run, cell->writer, access->oper))
		return unordered(run, access, cell->writer, "write");
	for (int32_t r = cell->readers; r >= 0; r = run->reader.at[r].next)
		if (!is_before(run, run->reader.at[r].oper, access->oper))
			return unordered(run, access, run->reader.at[r].oper, "read");
	cell->writer = access->oper;
	cell->readers = -1;
	cell->holds = access->chunk;
	memcpy(tti_check_cell_value(run, index), run->result,
	       run->check->value_words * sizeof(uint64_t));
	return TUTTI_OK;
}

void tti_check_fill_cells(struct tti_check_memory_run *run)
{
	const struct tti_check *check = run->check;
	const size_t ncells = (size_t)check->n * 2 * (size_t)check->prog->nchunks;

	for (size_t i = 0; i < ncells; i++)
		run->cell[i] = (struct tti_check_cell){
			.writer = -1, .kept = -1, .readers = -1, .holds = -1
		};
	for (int rank = 0; rank < check->n; rank++)
		for (int chunk = 0; chunk < check->prog->nchunks; chunk++) {
			const size_t index = tti_check_cell_of(run, rank, chunk, false);

			if (!is_input(&check->prog[rank], chunk))
				continue;
			run->cell[index].holds = chunk;
			tti_bit_set(tti_check_cell_value(run, index), (size_t)rank);
		}
}
