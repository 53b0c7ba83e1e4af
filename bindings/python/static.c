/* SPDX-License-Identifier: BSD-3-Clause */
/* What Debian's static libraries expect of what they are linked to, and a wheel that runs on older
 * systems has not. Part of each library of such a wheel.
 *
 * Owner: nothing is owned. Threads: any. */

#include <dlfcn.h>
#include <stddef.h>
#include <sys/random.h>

#define LOCAL __attribute__((visibility("hidden")))

/* Compiled for programs, they reach these streams as if they were in the same file. */
LOCAL void *stdin, *stdout, *stderr;

/* By the names that all libraries share: behind this one, where RTLD_NEXT looks, there is no libc if
 * the library came by LD_PRELOAD. The three above are hidden, and not found. */
__attribute__((constructor)) static void take_streams(void)
{
	stdin = *(void **)dlsym(RTLD_DEFAULT, "stdin");
	stdout = *(void **)dlsym(RTLD_DEFAULT, "stdout");
	stderr = *(void **)dlsym(RTLD_DEFAULT, "stderr");
}

/* Of glibc 2.36. Expat's hash tables are salted with it. */
LOCAL void arc4random_buf(void *out, size_t nbytes);
LOCAL void arc4random_buf(void *out, size_t nbytes)
{
	char *at = out;

	while (nbytes > 0) {
		const ssize_t n = getrandom(at, nbytes, 0);

		if (n > 0) {
			at += n;
			nbytes -= (size_t)n;
		}
	}
}

/* Of glibc 2.32: whether a process has one thread, so that atomics may be plain. They never are. */
LOCAL char __libc_single_threaded;

/* The solver could read compressed files, and is never told to: none can be opened. */
#define NONE(result, name)        \
	LOCAL result name(void);  \
	LOCAL result name(void)   \
	{                         \
		return (result)0; \
	}
NONE(void *, gzopen)
NONE(int, gzclose)
NONE(int, gzread)
NONE(int, gzwrite)
NONE(void *, BZ2_bzReadOpen)
NONE(void *, BZ2_bzWriteOpen)
NONE(int, BZ2_bzRead)
NONE(int, BZ2_bzWrite)
NONE(int, BZ2_bzReadClose)
NONE(int, BZ2_bzWriteClose)
