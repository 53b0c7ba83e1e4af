/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_GPU_FD_OFFER_H
#define TTI_GPU_FD_OFFER_H

/* File descriptors of this process that processes of the same user on this host may take, if they
 * have been told of the offer: by pidfd_getfd() where the kernel lets one process look into the
 * other, else over a unix socket in the abstract name space, which a thread of the one who offers
 * serves while there are offers. Who takes one proves that it was told by the key.
 *
 * Errors are quiet. Threads: any. */

#include <stdint.h>

#include "tutti/status.h"

/* May be sent anywhere. */
struct tti_fd_offer {
	uint64_t key[2];
	uint64_t socket;  /* its name */
	uint64_t process; /* who offers (util/process.h) */
	int32_t pid, fd;
};

/* The file stays the caller's, and open until tti_fd_withdraw(). */
TUTTI_CHECKED tutti_status tti_fd_offer(int fd, struct tti_fd_offer *out);
void tti_fd_withdraw(const struct tti_fd_offer *offer);

/* *fd is the caller's. TUTTI_EUNSUPPORTED: the one who offers is not to be reached from here: on
 * another host, or in another network namespace; or it has withdrawn the offer, or has ended. */
TUTTI_CHECKED tutti_status tti_fd_accept(const struct tti_fd_offer *offer, int *fd);

/* Files that the offers of this process keep open: 0 without offers. */
int tti_fd_offer_files(void);

#endif
