/* SPDX-License-Identifier: BSD-3-Clause */
/* Old names of functions, for programs that were written or compiled with them. Version 0.2
 * takes them away, with their declarations in include/tutti. */
#include "tutti/tutti.h"

tutti_status tutti_plan_create(const tutti_call *call, tutti_comm_t comm, tutti_persistent_t *out)
{
	return tutti_persistent_create(call, comm, out);
}

tutti_status tutti_plan_start(tutti_persistent_t persistent, tutti_stream_t stream)
{
	return tutti_persistent_start(persistent, stream);
}

tutti_status tutti_plan_wait(tutti_persistent_t persistent)
{
	return tutti_persistent_wait(persistent);
}

tutti_status tutti_plan_destroy(tutti_persistent_t persistent)
{
	return tutti_persistent_destroy(persistent);
}

tutti_status tutti_comm_init_scalable(tutti_comm_t *out, int nranks, int rank, int nids,
				      const tutti_unique_id *ids, const tutti_config *config)
{
	return tutti_comm_init_rank_scalable(out, nranks, rank, nids, ids, config);
}
