/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/device.h"
#include "engine/held.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8u
#endif

#define SEALS      (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
#define MAGIC      0x7475746375646131u
#define PAGE_LEAST 4096

struct trailer {
	uint64_t magic;
	uint32_t kind;
	uint32_t device;
	uint64_t nbytes;
	uint64_t table_at;
	uint64_t page;
};

size_t tti_cuda_file_page(void)
{
	const long page = sysconf(_SC_PAGESIZE);

	return page > PAGE_LEAST ? (size_t)page : PAGE_LEAST;
}

size_t tti_cuda_file_round(size_t nbytes)
{
	const size_t rest = tti_cuda_file_page() - 1;

	return nbytes > SIZE_MAX - rest ? SIZE_MAX : (nbytes + rest) & ~rest;
}

/* Growing a file past RLIMIT_FSIZE would be a deadly signal. */
static int check_limit(uint64_t nbytes)
{
	struct rlimit limit;

	if (nbytes > INT64_MAX)
		return tti_cuda_fail(TTI_CUDA_ENOMEM, "no file has %llu bytes",
				     (unsigned long long)nbytes);
	if (!getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur != RLIM_INFINITY &&
	    limit.rlim_cur < nbytes)
		return tti_cuda_fail(
			TTI_CUDA_ENOMEM,
			"memory of a device is a sparse file of %llu bytes, and the limit on file "
			"sizes is %llu: raise it (ulimit -f), or set TUTTI_CUDAHOST_MEMORY to less",
			(unsigned long long)nbytes, (unsigned long long)limit.rlim_cur);
	return 0;
}

static int open_memfd(enum tti_cuda_file_kind kind, int device)
{
	const unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	char name[64];
	int fd;

	(void)snprintf(name, sizeof(name), TTI_CUDA_FILE_NAME "%s%d",
		       kind == TTI_CUDA_FILE_DEVICE  ? "device"
		       : kind == TTI_CUDA_FILE_PIECE ? "piece"
						     : "event",
		       device);
	fd = memfd_create(name, flags | MFD_NOEXEC_SEAL);
	if (fd < 0 && errno == EINVAL) /* before Linux 6.3 */
		fd = memfd_create(name, flags);
	return fd;
}

static int fail_create(int device, const char *call, uint64_t nbytes)
{
	const bool of_memory = errno == ENOMEM || errno == EFBIG || errno == ENOSPC;

	return tti_cuda_fail(
		of_memory ? TTI_CUDA_ENOMEM : TTI_CUDA_ESYS,
		"memory of device %d cannot be made, as %s for %llu bytes failed: %s%s", device,
		call, (unsigned long long)nbytes, strerror(errno),
		errno == EMFILE ? ". Raise the limit on open files (ulimit -n)" : "");
}

static int fill(int fd, const struct trailer *trailer, uint64_t total, const char **call)
{
	*call = "ftruncate";
	if (ftruncate(fd, (off_t)total) < 0)
		return -1;
	*call = "writing the trailer";
	if (pwrite(fd, trailer, sizeof(*trailer), (off_t)(total - trailer->page)) !=
	    (ssize_t)sizeof(*trailer))
		return -1;
	*call = "sealing (F_ADD_SEALS)";
	return fcntl(fd, F_ADD_SEALS, SEALS);
}

static int identify(int fd, struct tti_cuda_file *out)
{
	struct stat stat;

	if (fstat(fd, &stat) < 0)
		return -1;
	out->fd = fd;
	out->inode = stat.st_ino;
	out->volume = stat.st_dev;
	return 0;
}

int tti_cuda_file_create(enum tti_cuda_file_kind kind, int device, uint64_t nbytes, uint64_t table,
			 struct tti_cuda_file *out)
{
	const size_t page = tti_cuda_file_page();
	const uint64_t total = nbytes + table + page;
	const struct trailer trailer = { MAGIC, kind, (uint32_t)device, nbytes, nbytes, page };
	const char *call = "memfd_create";
	int error;
	int fd;

	if (nbytes > INT64_MAX - table - page)
		return check_limit(UINT64_MAX);
	error = check_limit(total);
	if (error)
		return error;
	fd = open_memfd(kind, device);
	if (fd < 0)
		return fail_create(device, call, total);
	*out = (struct tti_cuda_file){ .nbytes = nbytes, .table_at = nbytes, .device = device };
	if (fill(fd, &trailer, total, &call) < 0 || identify(fd, out) < 0) {
		error = fail_create(device, call, total);
		close(fd);
		return error;
	}
	tti_cuda_held_add(TTI_CUDA_HELD_descriptors, 1);
	return 0;
}

static bool is_sane(const struct trailer *trailer, enum tti_cuda_file_kind kind, uint64_t total)
{
	const uint64_t page = tti_cuda_file_page();

	return trailer->magic == MAGIC && trailer->kind == kind && trailer->page == page &&
	       trailer->nbytes > 0 && trailer->nbytes % page == 0 &&
	       trailer->nbytes <= total - page && trailer->table_at == trailer->nbytes;
}

int tti_cuda_file_read(int fd, enum tti_cuda_file_kind kind, struct tti_cuda_file *out)
{
	const uint64_t page = tti_cuda_file_page();
	struct trailer trailer = { 0 };
	struct stat stat;
	int seals;

	if (fstat(fd, &stat) < 0)
		return tti_cuda_fail(TTI_CUDA_EINVAL, "file descriptor %d cannot be used: %s", fd,
				     strerror(errno));
	seals = fcntl(fd, F_GET_SEALS); /* -1: the file system has none */
	if (seals < 0 || (seals & SEALS) != SEALS || (uint64_t)stat.st_size <= page ||
	    pread(fd, &trailer, sizeof(trailer), stat.st_size - (off_t)page) !=
		    (ssize_t)sizeof(trailer) ||
	    !is_sane(&trailer, kind, (uint64_t)stat.st_size))
		return tti_cuda_fail(
			TTI_CUDA_EINVAL,
			"file descriptor %d (%lld bytes) is not %s of this library: it comes from "
			"something else, or from another version",
			fd, (long long)stat.st_size,
			kind == TTI_CUDA_FILE_DEVICE  ? "the memory of a device"
			: kind == TTI_CUDA_FILE_PIECE ? "an exported piece of memory"
						      : "an event");
	*out = (struct tti_cuda_file){ .fd = fd,
				       .inode = stat.st_ino,
				       .volume = stat.st_dev,
				       .nbytes = trailer.nbytes,
				       .table_at = trailer.table_at,
				       .device = (int)(trailer.device & INT32_MAX) };
	tti_cuda_held_add(TTI_CUDA_HELD_descriptors, 1);
	return 0;
}

static bool is_ours(const struct tti_cuda_file *file)
{
	struct stat stat;

	return fstat(file->fd, &stat) == 0 && stat.st_ino == file->inode &&
	       stat.st_dev == file->volume;
}

int tti_cuda_file_check(const struct tti_cuda_file *file)
{
	if (is_ours(file))
		return 0;
	return tti_cuda_fail(
		TTI_CUDA_EINVAL,
		"the program has closed file descriptor %d, which holds memory of device %d: it "
		"must leave open what it did not open",
		file->fd, file->device);
}

void tti_cuda_file_close(struct tti_cuda_file *file)
{
	const int error = errno;

	if (file->fd >= 0)
		tti_cuda_held_add(TTI_CUDA_HELD_descriptors, -1);
	if (file->fd >= 0 && is_ours(file))
		close(file->fd);
	file->fd = -1;
	errno = error;
}
