/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls of the system that fail from now on in this process, by a filter of the kernel (seccomp). */
#ifndef TESTS_CUDAHOST_SYSTEM_FAULTS_H
#define TESTS_CUDAHOST_SYSTEM_FAULTS_H

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/prctl.h>

/* Let a call fail with `error` if (argument[at] & mask) == value. False: there are no filters. */
static inline bool system_fails(unsigned call, unsigned at, unsigned mask, unsigned value,
				unsigned error)
{
	const unsigned argument = (unsigned)offsetof(struct seccomp_data, args) + 8 * at;
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 4),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, argument),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, mask),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = { sizeof(filter) / sizeof(*filter), filter };

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

#endif
