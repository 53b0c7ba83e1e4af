/* SPDX-License-Identifier: BSD-3-Clause */
/* Files in memory (memfd) that hold memory or an event of devices, so that other processes can map it.
 *
 * A file has its content, then a table of what is exported (devices alone), then a trailer that
 * says what it is. Its size can change no more, so no mapping of it faults.
 *
 *	| content                        | table       | trailer |
 *	0                         table_at              nbytes - page
 *
 * Owner: the caller, who closes it. Threads: not synchronised. */
#ifndef TUTTI_CUDAHOST_ENGINE_FILE_H
#define TUTTI_CUDAHOST_ENGINE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Both names begin so; /proc/PID/fd shows them. */
#define TTI_CUDA_FILE_NAME "tutti_cudahost_"

enum tti_cuda_file_kind {
	TTI_CUDA_FILE_DEVICE = 1, /* all memory of one device of a process */
	TTI_CUDA_FILE_PIECE = 2,
	TTI_CUDA_FILE_EVENT = 3, /* what processes know of an event */
};

struct tti_cuda_file {
	int fd;
	uint64_t inode; /* with `volume`: which file it is, whatever happens to the fd */
	uint64_t volume;
	uint64_t nbytes;   /* of the content */
	uint64_t table_at; /* where the content ends */
	int device;
};

/* Bytes that are mapped and freed together: 4096, or the system's page where that is larger. */
size_t tti_cuda_file_page(void);
/* nbytes as whole pages; SIZE_MAX where there are not so many. */
size_t tti_cuda_file_round(size_t nbytes);

/* `nbytes` and `table` are whole pages. ENOMEM, ESYS. */
int tti_cuda_file_create(enum tti_cuda_file_kind kind, int device, uint64_t nbytes, uint64_t table,
			 struct tti_cuda_file *out);

/* Read what an open file is, which another process may have made. `fd` becomes out->fd in case of
 * success and else stays the caller's. EINVAL if it is none of `kind`. */
int tti_cuda_file_read(int fd, enum tti_cuda_file_kind kind, struct tti_cuda_file *out);

/* EINVAL if the program has closed our fd (it may be a file of its own by now). */
int tti_cuda_file_check(const struct tti_cuda_file *file);

/* Closes only what is ours. May be called between fork() and exec(). */
void tti_cuda_file_close(struct tti_cuda_file *file);

#endif
