/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/shm/memfd.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/error.h"
#include "util/fault.h"
#include "util/fd.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8u
#endif

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

/* Growing a file past RLIMIT_FSIZE would be a deadly signal. */
static tutti_status check_limit(uint64_t nbytes)
{
	struct rlimit limit;

	if (!getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur != RLIM_INFINITY &&
	    limit.rlim_cur < nbytes)
		return tti_fail_quiet(
			TUTTI_ESYS,
			"shared memory is a sparse file of %llu bytes, the limit on file "
			"sizes is %llu: raise it (ulimit -f)",
			(unsigned long long)nbytes, (unsigned long long)limit.rlim_cur);
	return TUTTI_OK;
}

static int open_memfd(const char *name)
{
	const unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	int fd;

	if (tti_fault("shm.memfd")) {
		errno = ENFILE;
		return -1;
	}
	fd = memfd_create(name, flags | MFD_NOEXEC_SEAL);
	if (fd < 0 && errno == EINVAL) /* before Linux 6.3 */
		fd = memfd_create(name, flags);
	return fd;
}

tutti_status tti_memfd_create(const char *name, uint64_t nbytes, int *out)
{
	tutti_status st;
	int fd;

	TTI_TRY(check_limit(nbytes));
	fd = open_memfd(name);
	if (fd < 0)
		return tti_fail_quiet(TUTTI_ESYS, "memfd_create for shared memory: %m");
	if (ftruncate(fd, (off_t)nbytes) < 0 || fcntl(fd, F_ADD_SEALS, SEALS) < 0) {
		st = tti_fail_quiet(TUTTI_ESYS, "sizing shared memory to %llu bytes: %m",
				    (unsigned long long)nbytes);
		tti_fd_close(&fd);
		return st;
	}
	*out = fd;
	return TUTTI_OK;
}

tutti_status tti_memfd_check(int fd, uint64_t nbytes)
{
	const int seals = fcntl(fd, F_GET_SEALS); /* -1: the file system has none */
	struct stat stat;

	if (fstat(fd, &stat) < 0 || (uint64_t)stat.st_size != nbytes || seals < 0 ||
	    (seals & SEALS) != SEALS)
		return tti_fail_quiet(
			TUTTI_EPROTO,
			"the shared memory offered is not a sealed file of %llu bytes",
			(unsigned long long)nbytes);
	return TUTTI_OK;
}
