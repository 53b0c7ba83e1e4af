/* SPDX-License-Identifier: BSD-3-Clause */
/* What Debian's static libraries expect of the program that they are linked to, and older systems, on
 * which a wheel runs as well, do not have. Part of each library of such a wheel.
 *
 * Owner: nothing is owned. Threads: any. */

#include <dlfcn.h>
#include <stddef.h>
#include <sys/random.h>

#define LOCAL __attribute__((visibility("hidden")))

/* Those libraries are compiled for programs: they use these streams as if they were in the same file. */
LOCAL void *stdin, *stdout, *stderr;

/* Look in the names that all libraries share. Behind this library, where RTLD_NEXT looks, there is no
 * libc if it was loaded by LD_PRELOAD. The three above are hidden, and so not found. */
__attribute__((constructor)) static void take_streams(void)
{
	stdin = *(void **)dlsym(RTLD_DEFAULT, "stdin");
	stdout = *(void **)dlsym(RTLD_DEFAULT, "stdout");
	stderr = *(void **)dlsym(RTLD_DEFAULT, "stderr");
}

/* glibc 2.36 has it. Expat salts its hash tables with it. */
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

/* glibc 2.32 has it: whether a process has one thread, so that atomics may be plain. Here they never are. */
LOCAL char __libc_single_threaded;

/* The solver could read compressed files, but is never told to: none can be opened. */
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
