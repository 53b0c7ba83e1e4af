/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/piece.h"

#include <errno.h>
#include <fcntl.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/allocation.h"
#include "engine/arena.h"
#include "engine/held.h"
#include "engine/internal.h"

static void *pieces; /* a set of spans; locked */

int tti_cuda_piece_check(const struct tti_cuda_piece *piece, const char *what)
{
	const struct tti_cuda_piece *const found =
		piece ? tti_cuda_span_find(&pieces, piece, 1) : NULL;

	if (found && found->nrefs)
		return 0;
	return tti_cuda_fail(TTI_CUDA_EINVAL,
			     "%s: %p is no handle of memory (cuMemCreate), or was released", what,
			     (const void *)piece);
}

static void end(struct tti_cuda_piece *piece)
{
	if (piece->is_claimed)
		tti_cuda_arena_unclaim(piece->file.device, piece->file.nbytes);
	tti_cuda_file_close(&piece->file);
	free(piece);
}

void tti_cuda_piece_drop_unused(struct tti_cuda_piece *piece)
{
	if (piece->nrefs || piece->nmaps)
		return;
	tti_cuda_span_remove(&pieces, &piece->span);
	tti_cuda_held_add(TTI_CUDA_HELD_pieces, -1);
	end(piece);
}

/* One that has its file already: it is known from now on. The file is closed if that fails. */
static int add(struct tti_cuda_piece *piece, struct tti_cuda_piece **out)
{
	bool is_added;

	piece->span = (struct tti_cuda_span){ (char *)piece, 1 };
	piece->nrefs = 1;
	tti_cuda_lock_write();
	is_added = tti_cuda_span_add(&pieces, &piece->span);
	if (is_added)
		tti_cuda_held_add(TTI_CUDA_HELD_pieces, 1);
	else
		end(piece);
	tti_cuda_unlock();
	if (!is_added)
		return tti_cuda_fail(TTI_CUDA_ENOMEM, "this host is out of memory");
	*out = piece;
	return 0;
}

int tti_cuda_piece_create(size_t nbytes, int device, struct tti_cuda_piece **out)
{
	struct tti_cuda_piece *piece;
	int error = tti_cuda_memory_begin();

	if (!error)
		error = tti_cuda_device_check(device);
	if (error)
		return error;
	if (nbytes == 0 || nbytes % TTI_CUDA_GRANULARITY != 0)
		return tti_cuda_fail(
			TTI_CUDA_EINVAL,
			"cuMemCreate: %zu bytes are no multiple of the granularity, %u", nbytes,
			TTI_CUDA_GRANULARITY);
	piece = calloc(1, sizeof(*piece));
	if (!piece)
		return tti_cuda_fail(TTI_CUDA_ENOMEM, "this host is out of memory");
	tti_cuda_lock_write();
	error = tti_cuda_arena_claim(device, nbytes);
	tti_cuda_unlock();
	if (!error) {
		error = tti_cuda_file_create(TTI_CUDA_FILE_PIECE, device, nbytes, 0, &piece->file);
		if (!error) {
			piece->is_claimed = true;
			return add(piece, out);
		}
		tti_cuda_lock_write();
		tti_cuda_arena_unclaim(device, nbytes);
		tti_cuda_unlock();
	}
	free(piece);
	return error;
}

int tti_cuda_piece_retain(struct tti_cuda_piece *piece)
{
	int error = tti_cuda_memory_begin();

	if (error)
		return error;
	tti_cuda_lock_write();
	error = tti_cuda_piece_check(piece, "retain");
	if (!error)
		piece->nrefs++;
	tti_cuda_unlock();
	return error;
}

int tti_cuda_piece_release(struct tti_cuda_piece *piece)
{
	int error = tti_cuda_memory_begin();

	if (error)
		return error;
	tti_cuda_lock_write();
	error = tti_cuda_piece_check(piece, "release");
	if (!error) {
		piece->nrefs--;
		tti_cuda_piece_drop_unused(piece);
	}
	tti_cuda_unlock();
	return error;
}

static int copy_fd(int fd, int *out)
{
	const int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);

	if (copy < 0)
		return tti_cuda_fail(
			errno == EBADF ? TTI_CUDA_EINVAL : TTI_CUDA_ESYS,
			"file descriptor %d cannot be copied: %s%s", fd, strerror(errno),
			errno == EMFILE ? ". Raise the limit on open files (ulimit -n)" : "");
	*out = copy;
	return 0;
}

int tti_cuda_piece_export(struct tti_cuda_piece *piece, int *out_fd)
{
	int error = tti_cuda_memory_begin();

	if (error)
		return error;
	tti_cuda_lock_read();
	error = tti_cuda_piece_check(piece, "export");
	if (!error)
		error = tti_cuda_file_check(&piece->file);
	if (!error)
		error = copy_fd(piece->file.fd, out_fd);
	tti_cuda_unlock();
	return error;
}

static int import(int fd, struct tti_cuda_piece *piece)
{
	int copy = -1;
	int error = copy_fd(fd, &copy);

	if (error)
		return error;
	error = tti_cuda_file_read(copy, TTI_CUDA_FILE_PIECE, &piece->file);
	if (error) {
		close(copy);
		return error;
	}
	if (piece->file.nbytes % TTI_CUDA_GRANULARITY != 0) {
		error = tti_cuda_fail(
			TTI_CUDA_EINVAL,
			"import: the piece has %llu bytes, no multiple of the granularity, %u",
			(unsigned long long)piece->file.nbytes, TTI_CUDA_GRANULARITY);
		tti_cuda_file_close(&piece->file);
		return error;
	}
	if (piece->file.device >= tti_cuda_device_count()) /* the other process has more */
		piece->file.device = tti_cuda_device_current();
	return 0;
}

int tti_cuda_piece_import(int fd, struct tti_cuda_piece **out)
{
	struct tti_cuda_piece *piece;
	int error = tti_cuda_memory_begin();

	if (!error)
		error = tti_cuda_device_check(tti_cuda_device_current());
	if (error)
		return error;
	piece = calloc(1, sizeof(*piece));
	if (!piece)
		return tti_cuda_fail(TTI_CUDA_ENOMEM, "this host is out of memory");
	error = import(fd, piece);
	if (!error)
		return add(piece, out);
	free(piece);
	return error;
}

size_t tti_cuda_piece_bytes(const struct tti_cuda_piece *piece)
{
	size_t nbytes;

	tti_cuda_lock_read();
	nbytes = tti_cuda_piece_check(piece, "size") ? 0 : piece->file.nbytes;
	tti_cuda_unlock();
	return nbytes;
}

int tti_cuda_piece_device(const struct tti_cuda_piece *piece)
{
	int device;

	tti_cuda_lock_read();
	device = tti_cuda_piece_check(piece, "device") ? -1 : piece->file.device;
	tti_cuda_unlock();
	return device;
}

void tti_cuda_piece_share(struct tti_cuda_piece *piece)
{
	tti_cuda_lock_write();
	piece->is_shared = true;
	tti_cuda_unlock();
}

bool tti_cuda_piece_is_shared(const struct tti_cuda_piece *piece)
{
	bool is;

	tti_cuda_lock_read();
	is = !tti_cuda_piece_check(piece, "handle types") && piece->is_shared;
	tti_cuda_unlock();
	return is;
}

static void abandon(const void *node, VISIT visit, int depth)
{
	struct tti_cuda_piece *const piece = *(void *const *)node;

	(void)depth;
	if (visit == preorder || visit == leaf)
		tti_cuda_file_close(&piece->file);
}

void tti_cuda_piece_abandon(void)
{
	twalk(pieces, abandon);
}
