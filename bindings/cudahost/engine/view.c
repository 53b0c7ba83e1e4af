/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/view.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "engine/internal.h"

/* Less is written without asking. */
#define ZERO_LEAST ((size_t)64 << 10)

static struct {
	pthread_once_t once;
	const char *wrong; /* value of the variable */
	bool is_on;
} guard = { .once = PTHREAD_ONCE_INIT };

static void read_guard(void)
{
	const char *const value = tti_cuda_setting("TUTTI_CUDAHOST_GUARD");

	guard.is_on = value && strcmp(value, "1") == 0;
	if (value && !guard.is_on && strcmp(value, "0") != 0)
		guard.wrong = value;
}

int tti_cuda_view_guard(bool *out)
{
	(void)pthread_once(&guard.once, read_guard);
	*out = guard.is_on;
	if (guard.wrong)
		return tti_cuda_fail(TTI_CUDA_EINVAL,
				     "TUTTI_CUDAHOST_GUARD is \"%s\": it must be 0 or 1",
				     guard.wrong);
	return 0;
}

static int fail_map(const char *what, size_t nbytes)
{
	const int error = errno == ENOMEM || errno == EAGAIN ? TTI_CUDA_ENOMEM : TTI_CUDA_ESYS;

	return tti_cuda_fail(
		error,
		"%s of %zu bytes failed: %s. The limit on addresses (ulimit -v) or on "
		"mappings (vm.max_map_count) may be too low; TUTTI_CUDAHOST_MEMORY set "
		"to less needs fewer addresses",
		what, nbytes, strerror(errno));
}

/* No child of fork() may see it: what it writes would be written here. And a core file would make
 * all pages that are not there. */
static int keep_private(char *at, size_t nbytes)
{
	if (madvise(at, nbytes, MADV_DONTFORK) == 0 && madvise(at, nbytes, MADV_DONTDUMP) == 0)
		return 0;
	return -1;
}

static char *map_nothing(void *at, size_t nbytes, int flags)
{
	void *const got = mmap(at, nbytes, PROT_NONE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);

	return got == MAP_FAILED ? NULL : got;
}

/* NULL and errno. */
static char *reserve_aligned(size_t nbytes, size_t alignment)
{
	const size_t extra = alignment - tti_cuda_file_page();
	char *const got = nbytes > SIZE_MAX - extra ? NULL : map_nothing(NULL, nbytes + extra, 0);
	size_t skip;

	if (!got) {
		errno = ENOMEM;
		return NULL;
	}
	skip = (alignment - (uintptr_t)got % alignment) % alignment;
	if (skip)
		munmap(got, skip);
	if (extra - skip)
		munmap(got + skip + nbytes, extra - skip);
	return got + skip;
}

static char *reserve(size_t nbytes, size_t alignment, void *hint)
{
	char *got = NULL;

	if (hint && (uintptr_t)hint % alignment == 0)
		got = map_nothing(hint, nbytes, MAP_FIXED_NOREPLACE);
	if (got && got != hint) { /* before Linux 4.17 */
		munmap(got, nbytes);
		got = NULL;
	}
	return got ? got : reserve_aligned(nbytes, alignment);
}

int tti_cuda_view_reserve(size_t nbytes, size_t alignment, void *hint, struct tti_cuda_view *out)
{
	struct tti_cuda_view view = { .nbytes = nbytes };
	bool guarded;
	int error = tti_cuda_view_guard(&guarded);

	if (error)
		return error;
	if (alignment < tti_cuda_file_page())
		alignment = tti_cuda_file_page();
	view.address = reserve(nbytes, alignment, hint);
	view.reach = guarded && view.address ? reserve(nbytes, alignment, NULL) : view.address;
	if (!view.reach || keep_private(view.address, nbytes) < 0 ||
	    keep_private(view.reach, nbytes) < 0) {
		error = fail_map("reserving addresses for memory", nbytes);
		tti_cuda_view_release(&view);
		return error;
	}
	*out = view;
	return 0;
}

void tti_cuda_view_release(struct tti_cuda_view *view)
{
	if (view->reach && view->reach != view->address)
		munmap(view->reach, view->nbytes);
	if (view->address)
		munmap(view->address, view->nbytes);
	*view = (struct tti_cuda_view){ 0 };
}

static int place(char *at, size_t nbytes, const struct tti_cuda_file *file, uint64_t from)
{
	if (mmap(at, nbytes, PROT_NONE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, file->fd,
		 (off_t)from) == MAP_FAILED)
		return -1;
	return keep_private(at, nbytes);
}

static int clear(char *at, size_t nbytes)
{
	return map_nothing(at, nbytes, MAP_FIXED) ? keep_private(at, nbytes) : -1;
}

int tti_cuda_view_place(const struct tti_cuda_view *view, size_t at, size_t nbytes,
			const struct tti_cuda_file *file, uint64_t from)
{
	int error = tti_cuda_file_check(file);

	if (error)
		return error;
	if (place(view->address + at, nbytes, file, from) == 0 &&
	    (view->reach == view->address || place(view->reach + at, nbytes, file, from) == 0))
		return 0;
	error = fail_map("mapping memory of a device", nbytes);
	(void)clear(view->address + at, nbytes);
	if (view->reach != view->address)
		(void)clear(view->reach + at, nbytes);
	return error;
}

int tti_cuda_view_allow(const struct tti_cuda_view *view, size_t at, size_t nbytes,
			enum tti_cuda_access access)
{
	const int protection = access == TTI_CUDA_ACCESS_BOTH   ? PROT_READ | PROT_WRITE
			       : access == TTI_CUDA_ACCESS_READ ? PROT_READ
								: PROT_NONE;

	if (mprotect(view->reach + at, nbytes, protection) < 0)
		return fail_map("giving access to memory", nbytes);
	return 0;
}

int tti_cuda_view_clear(const struct tti_cuda_view *view, size_t at, size_t nbytes)
{
	if (clear(view->address + at, nbytes) < 0 ||
	    (view->reach != view->address && clear(view->reach + at, nbytes) < 0))
		return fail_map("unmapping memory", nbytes);
	return 0;
}

int tti_cuda_view_map(const struct tti_cuda_file *file, uint64_t from, size_t nbytes,
		      size_t alignment, struct tti_cuda_view *out)
{
	int error = tti_cuda_view_reserve(nbytes, alignment, NULL, out);

	if (error)
		return error;
	error = tti_cuda_view_place(out, 0, nbytes, file, from);
	if (!error)
		error = tti_cuda_view_allow(out, 0, nbytes, TTI_CUDA_ACCESS_BOTH);
	if (error)
		tti_cuda_view_release(out);
	return error;
}

/* Whole pages, of which `is_there` says whether the machine has memory for them. Without it they
 * are zero, or were swapped out: to make a hole there is right for both. */
static void zero_pages(char *at, size_t page, const unsigned char *is_there, size_t n)
{
	for (size_t i = 0, end; i < n; i = end) {
		for (end = i + 1; end < n && (is_there[end] & 1) == (is_there[i] & 1); end++)
			;
		if (is_there[i] & 1 || madvise(at + i * page, (end - i) * page, MADV_REMOVE) < 0)
			memset(at + i * page, 0, (end - i) * page);
	}
}

void tti_cuda_view_zero(char *reach, size_t nbytes)
{
	const size_t page = tti_cuda_file_page();
	const size_t before = (page - (uintptr_t)reach % page) % page;
	unsigned char is_there[1024];

	if (nbytes < ZERO_LEAST || nbytes < 2 * page) {
		memset(reach, 0, nbytes);
		return;
	}
	memset(reach, 0, before);
	reach += before;
	nbytes -= before;
	while (nbytes >= page) {
		const size_t most = nbytes / page;
		const size_t n = most < sizeof(is_there) ? most : sizeof(is_there);

		if (mincore(reach, n * page, is_there) < 0)
			memset(is_there, 1, n);
		zero_pages(reach, page, is_there, n);
		reach += n * page;
		nbytes -= n * page;
	}
	memset(reach, 0, nbytes);
}
