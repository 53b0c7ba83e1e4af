/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll/send_recv.h"

#include "util/error.h"

tutti_status tti_send_recv_program(const struct tti_transfer_step *step, int32_t n, int32_t nchunks,
				   int rank, int nranks, struct tti_program *out)
{
	struct tti_program prog = { .coll = TUTTI_SEND_RECV,
				    .algorithm = "send_recv",
				    .rank = rank,
				    .n = nranks,
				    .nchunks = nchunks };

	for (int32_t i = 0; i < n; i++) {
		if (step[i].kind == TTI_TRANSFER_SEND)
			tti_send(&prog, step[i].chunk, step[i].peer);
		else if (step[i].kind == TTI_TRANSFER_RECV)
			tti_recv(&prog, step[i].chunk, step[i].peer);
		else
			tti_copy_chunk(&prog, step[i].chunk);
	}
	if (prog.failed) {
		tti_program_release(&prog);
		return tti_fail(TUTTI_ENOMEM, "program of %d sends and receives: out of memory", n);
	}
	*out = prog;
	return TUTTI_OK;
}
