/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "boot/boot.h"
#include "boot/init/own_secret.h"
#include "boot/pmi/pmi.h"
#include "core/call/timeout.h"
#include "core/comm.h"
#include "core/init/init.h"
#include "core/init/meeting.h"
#include "util/error.h"
#include "util/log.h"
#include "util/params.h"

/* Which rank is this, of how many, and where do they meet? Each launcher sets other variables; the
 * first row whose variables are all set counts. Launchers start others (srun starts torchrun), so
 * rows with more variables come first. */
static const struct launcher {
	const char *name, *rank, *size;
	const char *mark; /* that it sets, too; NULL: none */
	tti_pmi_way way;  /* to its key-value store; NULL: it has none that we use */
} launchers[] = {
	{ "torchrun", "RANK", "WORLD_SIZE", "TORCHELASTIC_RUN_ID", NULL },
	{ "Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", NULL, tti_pmi_x },
	{ "PMI-1", "PMI_RANK", "PMI_SIZE", NULL, tti_pmi_wire },
	{ "Slurm with PMIx", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "PMIX_RANK", tti_pmi_x_slurm },
	{ "Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", NULL, tti_pmi_slurm },
	{ "RANK and WORLD_SIZE", "RANK", "WORLD_SIZE", NULL, NULL },
	{ "Kubernetes", "JOB_COMPLETION_INDEX", "WORLD_SIZE", NULL, NULL },
};

struct place {
	const char *launcher;
	tti_pmi_way way;
	int rank, nranks;
	char secret_path[PATH_MAX]; /* the file of the secret that the ranks prove; "": none */
};

static tutti_status parse_int(const char *variable, const char *text, int *out)
{
	char *end;

	errno = 0;
	const long value = strtol(text, &end, 10);

	if (errno || *end || end == text || value < 0 || value > 1 << 24)
		return tti_fail(TUTTI_EUSAGE, "%s=\"%s\" is no rank or number of ranks", variable,
				text);
	*out = (int)value;
	return TUTTI_OK;
}

static tutti_status find_place(struct place *out)
{
	const struct tti_param_values *params = tti_params();

	if (params->rank >= 0 && params->nranks >= 0) {
		out->launcher = "TUTTI_RANK";
		out->rank = (int)params->rank;
		out->nranks = (int)params->nranks;
		return TUTTI_OK;
	}
	if (params->rank >= 0 || params->nranks >= 0)
		return tti_fail(TUTTI_EUSAGE, "TUTTI_RANK and TUTTI_NRANKS: only one of them is "
					      "set, set both");
	for (size_t i = 0; i < sizeof(launchers) / sizeof(launchers[0]); i++) {
		const char *rank = tti_env_foreign(launchers[i].rank);
		const char *size = tti_env_foreign(launchers[i].size);

		if (!rank || !size || (launchers[i].mark && !tti_env_foreign(launchers[i].mark)))
			continue;
		out->launcher = launchers[i].name;
		out->way = launchers[i].way;
		TTI_TRY(parse_int(launchers[i].rank, rank, &out->rank));
		return parse_int(launchers[i].size, size, &out->nranks);
	}
	return tti_fail(TUTTI_EUSAGE,
			"no launcher says which rank this is: start it with `tutti run -n N`, "
			"mpirun, srun or torchrun, or set TUTTI_RANK and TUTTI_NRANKS");
}

/* The launcher gives no secret, so the user's own one counts. */
static tutti_status id_with_secret(struct place *place, const char *address,
				   const struct tti_timeout *timeout, tutti_unique_id *out)
{
	struct tti_own_secret own;
	tutti_status st;

	if (tti_params()->comm_secret)
		return tti_boot_id_from_address(address, tti_params()->comm_secret, timeout->ms,
						out);
	TTI_TRY(tti_own_secret_read(&own));
	st = tti_boot_id_from_address(address, own.text, timeout->ms, out);
	memcpy(place->secret_path, own.path, sizeof(own.path));
	explicit_bzero(&own, sizeof(own));
	return st;
}

/* torchrun's own store has MASTER_PORT: rank 0 listens on the next port, or where it is told to. */
static tutti_status id_from_master(struct place *place, const char *host, const char *port,
				   const struct tti_timeout *timeout, tutti_unique_id *out)
{
	const int own = (int)tti_params()->master_port;
	char address[512];
	int number = 0;

	TTI_TRY(parse_int("MASTER_PORT", port, &number));
	if (number < 1 || number > 65534 + (own != 0))
		return tti_fail(TUTTI_EUSAGE,
				"MASTER_PORT=%s: 1 to 65534, or 65535 with TUTTI_MASTER_PORT",
				port);
	if (snprintf(address, sizeof(address), strchr(host, ':') ? "[%s]:%d" : "%s:%d", host,
		     own ? own : number + 1) >= (int)sizeof(address))
		return tti_fail(TUTTI_EUSAGE, "MASTER_ADDR is too long: %.80s...", host);
	return id_with_secret(place, address, timeout, out);
}

/* `meeting`: set if the ranks meet through a file. */
static tutti_status find_id(struct place *place, const struct tti_timeout *timeout,
			    tutti_unique_id *out, struct tti_meeting **meeting)
{
	const struct tti_param_values *params = tti_params();
	const char *host = tti_env_foreign("MASTER_ADDR");
	const char *port = tti_env_foreign("MASTER_PORT");

	if (params->comm_id)
		return tti_boot_id_from_address(params->comm_id, params->comm_secret, timeout->ms,
						out);
	if (params->comm_file)
		return place->rank == 0
			       ? tti_meeting_open(params->comm_file, out, meeting)
			       : tti_meeting_read(params->comm_file, timeout, out, meeting);
	if (place->nranks == 1)
		return tti_boot_id_create(out);
	if (place->way) {
		const tutti_status st =
			tti_pmi_share_id(place->way, place->rank, place->nranks, timeout->ms, out);

		/* The error that a library or socket is missing was logged; an address will do. */
		if (st != TUTTI_EUNSUPPORTED || !host || !port)
			return st;
	}
	if (host && port)
		return id_from_master(place, host, port, timeout, out);
	return tti_fail(TUTTI_EUSAGE,
			"%s says rank %d of %d, but not where the ranks meet: set MASTER_ADDR and "
			"MASTER_PORT, or TUTTI_COMM_ID to "
			"host:port of rank 0 (with TUTTI_COMM_SECRET), or TUTTI_COMM_FILE to a new "
			"file that all can see",
			place->launcher, place->rank, place->nranks);
}

tutti_status tutti_comm_init_env(tutti_comm_t *out, const tutti_config *config)
{
	struct place place = { 0 };
	struct tti_meeting *meeting = NULL;
	/* Errors of the config come later, once the other ranks can read them (meeting.h). */
	const struct tti_timeout timeout = tti_timeout_of_boot(config);
	tutti_unique_id id;
	tutti_status st;

	TTI_TRY(find_place(&place));
	TTI_TRY(find_id(&place, &timeout, &id, &meeting));
	tti_log(TTI_LOG_INFO, TTI_CORE, "rank %d of %d by %s", place.rank, place.nranks,
		place.launcher);
	st = tti_init_by_ids(out, place.nranks, place.rank,
			     &(struct tti_init_ids){ .ids = &id,
						     .nids = 1,
						     .meeting = meeting,
						     .secret_path = place.secret_path },
			     config);
	explicit_bzero(&id, sizeof(id));
	return st;
}
