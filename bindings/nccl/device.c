/* SPDX-License-Identifier: BSD-3-Clause */
/* What programs call on behalf of their kernels. Tutti runs no kernels: a team of ranks that share
 * memory by addresses is one rank, and what only a kernel could use is refused. */
#include "binding.h"

static ncclResult_t refuse(const char *name, const char *what)
{
	return tti_nccl_fail(
		NULL, ncclInvalidUsage,
		"%s() is for kernels of the program, which Tutti does not serve: no %s", name,
		what);
}

/* -- Teams ------------------------------------------------------------------------------ */

ncclTeam_t pncclTeamWorld(ncclComm_t comm)
{
	ncclTeam_t team = { 0, 0, 1 };

	(void)(pncclCommCount(comm, &team.nRanks) || pncclCommUserRank(comm, &team.rank));
	return team;
}
ALSO_NAMED(ncclTeamWorld);

/* A team of this rank alone. */
static ncclTeam_t team_of_one(void)
{
	return (ncclTeam_t){ 1, 0, 1 };
}

ncclTeam_t pncclTeamLsa(ncclComm_t comm)
{
	(void)comm;
	return team_of_one();
}
ALSO_NAMED(ncclTeamLsa);

/* One rank of each team of ncclTeamLsa(). */
ncclTeam_t pncclTeamRail(ncclComm_t comm)
{
	return pncclTeamWorld(comm);
}
ALSO_NAMED(ncclTeamRail);

ncclTeam_t pncclTeamCft(ncclComm_t comm, ncclCftTeamMode_t mode)
{
	(void)comm;
	(void)mode;
	return team_of_one();
}
ALSO_NAMED(ncclTeamCft);

ncclTeam_t pncclTeamCftMultimem(ncclComm_t comm)
{
	(void)comm;
	return team_of_one();
}
ALSO_NAMED(ncclTeamCftMultimem);

int pncclTeamRankToWorld(ncclComm_t comm, ncclTeam_t team, int rank)
{
	return pncclTeamWorld(comm).rank + (rank - team.rank) * team.stride;
}
ALSO_NAMED(ncclTeamRankToWorld);

/* This rank is rank 0 of the team. */
int pncclTeamRankToLsa(ncclComm_t comm, ncclTeam_t team, int rank)
{
	(void)comm;
	return (rank - team.rank) * team.stride;
}
ALSO_NAMED(ncclTeamRankToLsa);

/* -- What only a kernel could use --------------------------------------------------------- */

ncclResult_t pncclDevCommCreate(ncclComm_t comm, const ncclDevCommRequirements_t *requirements,
				ncclDevComm_t *out)
{
	(void)comm;
	(void)requirements;
	(void)out;
	return refuse("ncclDevCommCreate", "communicators of kernels");
}
ALSO_NAMED(ncclDevCommCreate);

ncclResult_t pncclDevCommDestroy(ncclComm_t comm, const ncclDevComm_t *devcomm)
{
	(void)comm;
	(void)devcomm;
	return refuse("ncclDevCommDestroy", "communicators of kernels");
}
ALSO_NAMED(ncclDevCommDestroy);

/* No memory is multicast: NULL says so. */
static ncclResult_t give_none(ncclWindow_t window, void **out)
{
	if (!window || !out)
		return tti_nccl_fail(NULL, ncclInvalidArgument, "the window or the result is NULL");
	*out = NULL;
	return ncclSuccess;
}

ncclResult_t pncclGetLsaMultimemDevicePointer(ncclWindow_t window, size_t offset, void **out)
{
	(void)offset;
	return give_none(window, out);
}
ALSO_NAMED(ncclGetLsaMultimemDevicePointer);

ncclResult_t pncclGetMultimemDevicePointer(ncclWindow_t window, size_t offset,
					   ncclMultimemHandle_t handle, void **out)
{
	(void)offset;
	(void)handle;
	return give_none(window, out);
}
ALSO_NAMED(ncclGetMultimemDevicePointer);

ncclResult_t pncclGetMultimemDeviceLeInfo(ncclWindow_t window, size_t offset, ncclCftLeId *id_out,
					  size_t *offset_out)
{
	(void)window;
	(void)offset;
	(void)id_out;
	(void)offset_out;
	return refuse("ncclGetMultimemDeviceLeInfo", "multicast memory");
}
ALSO_NAMED(ncclGetMultimemDeviceLeInfo);

ncclResult_t pncclGetCftDeviceLeInfo(ncclWindow_t window, size_t offset, int peer, ncclTeam_t team,
				     ncclCftLeId *id_out, size_t *offset_out)
{
	(void)window;
	(void)offset;
	(void)peer;
	(void)team;
	(void)id_out;
	(void)offset_out;
	return refuse("ncclGetCftDeviceLeInfo", "fabric of that kind");
}
ALSO_NAMED(ncclGetCftDeviceLeInfo);

ncclResult_t pncclGetPeerDeviceLeInfo(ncclWindow_t window, size_t offset, int peer,
				      ncclCftLeId *id_out, size_t *offset_out)
{
	(void)window;
	(void)offset;
	(void)peer;
	(void)id_out;
	(void)offset_out;
	return refuse("ncclGetPeerDeviceLeInfo", "fabric of that kind");
}
ALSO_NAMED(ncclGetPeerDeviceLeInfo);

ncclResult_t pncclLsaBarrierCreateRequirement(ncclTeam_t team, int nbarriers,
					      ncclLsaBarrierHandle_t *handle_out,
					      ncclDevResourceRequirements_t *out)
{
	(void)team;
	(void)nbarriers;
	(void)handle_out;
	(void)out;
	return refuse("ncclLsaBarrierCreateRequirement", "kernels that could wait");
}
ALSO_NAMED(ncclLsaBarrierCreateRequirement);

ncclResult_t pncclGinBarrierCreateRequirement(ncclComm_t comm, ncclTeam_t team, int nbarriers,
					      ncclGinBarrierHandle_t *handle_out,
					      ncclDevResourceRequirements_t *out)
{
	(void)comm;
	(void)team;
	(void)nbarriers;
	(void)handle_out;
	(void)out;
	return refuse("ncclGinBarrierCreateRequirement", "kernels that could wait");
}
ALSO_NAMED(ncclGinBarrierCreateRequirement);

int pncclLLA2ACalcSlots(int max_elements, int max_nbytes)
{
	(void)max_elements;
	(void)max_nbytes;
	return 0;
}
ALSO_NAMED(ncclLLA2ACalcSlots);

ncclResult_t pncclLLA2ACreateRequirement(int nblocks, int nslots, ncclLLA2AHandle_t *handle_out,
					 ncclDevResourceRequirements_t *out)
{
	(void)nblocks;
	(void)nslots;
	(void)handle_out;
	(void)out;
	return refuse("ncclLLA2ACreateRequirement", "kernels that could exchange");
}
ALSO_NAMED(ncclLLA2ACreateRequirement);

ncclResult_t pncclGinOutboxCreateRequirement(int nblocks, int size_log2,
					     struct ncclGinOutboxHandle *handle_out,
					     ncclDevResourceRequirements_t *out)
{
	(void)nblocks;
	(void)size_log2;
	(void)handle_out;
	(void)out;
	return refuse("ncclGinOutboxCreateRequirement", "kernels that could send");
}
ALSO_NAMED(ncclGinOutboxCreateRequirement);

ncclResult_t pncclGinInboxA2ACreateRequirement(ncclTeam_t peers, int nblocks, int size_log2,
					       struct ncclGinInboxA2AHandle *handle_out,
					       ncclDevResourceRequirements_t *out)
{
	(void)peers;
	(void)nblocks;
	(void)size_log2;
	(void)handle_out;
	(void)out;
	return refuse("ncclGinInboxA2ACreateRequirement", "kernels that could receive");
}
ALSO_NAMED(ncclGinInboxA2ACreateRequirement);
