/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "boot/boot.h"
#include "core/comm.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/log.h"
#include "util/params.h"

/* Which rank am I, of how many, and where do we meet? Each launcher says it with
 * other variables; the first that says both rank and size is believed. */
static const struct launcher {
	const char *name, *rank, *size;
} launchers[] = {
	{ "Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE" },
	{ "Hydra (MPICH)", "PMI_RANK", "PMI_SIZE" },
	{ "Slurm", "SLURM_PROCID", "SLURM_NTASKS" },
	{ "torchrun", "RANK", "WORLD_SIZE" },
};

struct place {
	const char *launcher;
	int rank, nranks;
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
	const struct tti_params *params = tti_params();

	if (params->rank >= 0 && params->nranks >= 0) {
		*out = (struct place){ "TUTTI_RANK", (int)params->rank, (int)params->nranks };
		return TUTTI_OK;
	}
	if (params->rank >= 0 || params->nranks >= 0)
		return tti_fail(TUTTI_EUSAGE, "TUTTI_RANK and TUTTI_NRANKS: only one of them is "
					      "set, set both");
	for (size_t i = 0; i < sizeof(launchers) / sizeof(launchers[0]); i++) {
		const char *rank = tti_env_foreign(launchers[i].rank);
		const char *size = tti_env_foreign(launchers[i].size);

		if (!rank || !size)
			continue;
		out->launcher = launchers[i].name;
		TTI_TRY(parse_int(launchers[i].rank, rank, &out->rank));
		return parse_int(launchers[i].size, size, &out->nranks);
	}
	return tti_fail(TUTTI_EUSAGE,
			"no launcher says which rank this is: start it with `tutti run -n N`, "
			"mpirun, srun or torchrun, or set TUTTI_RANK and TUTTI_NRANKS");
}

/* -- The id through a file ----------------------------------------------------- */

/* Nobody may put an id of his own in the place of ours, in a folder that all may write to: so the
 * file is made here, or it is an error. */
static tutti_status make_id(const char *path, tutti_unique_id *out)
{
	const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	tutti_status st;

	/* An id of an earlier run would make ranks wait for somebody who is gone. */
	if (fd < 0 && errno == EEXIST)
		return tti_fail(TUTTI_EUSAGE,
				"TUTTI_COMM_FILE=%s exists already: remove it, or name another "
				"file for each run",
				path);
	if (fd < 0)
		return tti_fail(TUTTI_ESYS, "TUTTI_COMM_FILE: cannot create %s: %m", path);
	st = tti_boot_id_create(out);
	if (st == TUTTI_OK &&
	    write(fd, out->bytes, sizeof(out->bytes)) != (ssize_t)sizeof(out->bytes))
		st = tti_fail(TUTTI_ESYS, "TUTTI_COMM_FILE: cannot write %s: %m", path);
	close(fd);
	if (st != TUTTI_OK)
		unlink(path);
	return st;
}

/* Whoever made the file says with whom this rank talks, so it must be a rank of the same user. */
static tutti_status check_maker(const char *path, int fd)
{
	struct stat file;

	if (fstat(fd, &file) < 0)
		return tti_fail(TUTTI_ESYS, "TUTTI_COMM_FILE: cannot look at %s: %m", path);
	if (!S_ISREG(file.st_mode) || file.st_uid != geteuid() || (file.st_mode & 077))
		return tti_fail(TUTTI_EUSAGE,
				"TUTTI_COMM_FILE=%s is not what rank 0 makes: it has mode %03o and "
				"belongs to user %u, and must be a file of mode 600 of user %u; "
				"remove it, or name one in a folder of your own",
				path, file.st_mode & 0777, file.st_uid, geteuid());
	return TUTTI_OK;
}

/* TUTTI_AGAIN: it is not there yet, or not all of it. */
static tutti_status read_id(const char *path, tutti_unique_id *id)
{
	const int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	tutti_status st;

	if (fd < 0 && errno == ENOENT)
		return TUTTI_AGAIN;
	if (fd < 0 && errno == ELOOP)
		return tti_fail(TUTTI_EUSAGE,
				"TUTTI_COMM_FILE=%s is a symbolic link: name the file itself",
				path);
	if (fd < 0)
		return tti_fail(TUTTI_ESYS, "TUTTI_COMM_FILE: cannot open %s: %m", path);
	st = check_maker(path, fd);
	if (st == TUTTI_OK && read(fd, id->bytes, sizeof(id->bytes)) != (ssize_t)sizeof(id->bytes))
		st = TUTTI_AGAIN;
	close(fd);
	return st;
}

static tutti_status id_from_file(const char *path, int rank, tutti_unique_id *out)
{
	const int64_t deadline = tti_deadline(tti_params()->boot_timeout_ms);
	struct timespec nap = { .tv_nsec = 500 * 1000 };
	tutti_status st;

	if (rank == 0)
		return make_id(path, out);
	while ((st = read_id(path, out)) == TUTTI_AGAIN) {
		if (tti_now_ns() > deadline)
			return tti_fail(TUTTI_ETIMEOUT,
					"rank 0 has not written TUTTI_COMM_FILE=%s within %lld ms "
					"(TUTTI_BOOT_TIMEOUT_MS)",
					path, (long long)tti_params()->boot_timeout_ms);
		nanosleep(&nap, NULL);
		if (nap.tv_nsec < 20 * 1000 * 1000)
			nap.tv_nsec += nap.tv_nsec / 4;
	}
	return st;
}

/* torchrun's MASTER_PORT is its own store's: rank 0 listens on the next one. */
static tutti_status id_from_master(const char *host, const char *port, tutti_unique_id *out)
{
	char address[512];
	int number = 0;

	TTI_TRY(parse_int("MASTER_PORT", port, &number));
	if (number < 1 || number > 65534)
		return tti_fail(TUTTI_EUSAGE, "MASTER_PORT=%s: 1 to 65534", port);
	if (snprintf(address, sizeof(address), strchr(host, ':') ? "[%s]:%d" : "%s:%d", host,
		     number + 1) >= (int)sizeof(address))
		return tti_fail(TUTTI_EUSAGE, "MASTER_ADDR is too long: %.80s...", host);
	return tti_boot_id_from_address(address, tti_params()->comm_secret, out);
}

static tutti_status find_id(const struct place *place, tutti_unique_id *out)
{
	const struct tti_params *params = tti_params();
	const char *host = tti_env_foreign("MASTER_ADDR");
	const char *port = tti_env_foreign("MASTER_PORT");

	if (params->comm_id)
		return tti_boot_id_from_address(params->comm_id, params->comm_secret, out);
	if (params->comm_file)
		return id_from_file(params->comm_file, place->rank, out);
	if (place->nranks == 1)
		return tti_boot_id_create(out);
	if (host && port)
		return id_from_master(host, port, out);
	return tti_fail(TUTTI_EUSAGE,
			"%s says rank %d of %d, but not where the ranks meet: set TUTTI_COMM_ID to "
			"host:port of rank 0 (with TUTTI_COMM_SECRET), or TUTTI_COMM_FILE to a new "
			"file that all can see",
			place->launcher, place->rank, place->nranks);
}

tutti_status tutti_comm_init_env(tutti_comm_t *out, const tutti_config *config)
{
	struct place place = { 0 };
	const char *made = NULL;
	tutti_unique_id id;
	tutti_status st;

	TTI_TRY(find_place(&place));
	TTI_TRY(find_id(&place, &id));
	if (place.rank == 0 && !tti_params()->comm_id)
		made = tti_params()->comm_file;
	tti_log(TTI_LOG_INFO, TTI_CORE, "rank %d of %d by %s", place.rank, place.nranks,
		place.launcher);
	st = tti_comm_init_met(out, place.nranks, place.rank, &id, made, config);
	if (st != TUTTI_OK && made)
		unlink(made);
	return st;
}
