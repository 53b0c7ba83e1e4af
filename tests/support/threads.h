/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_SUPPORT_THREADS_H
#define TESTS_SUPPORT_THREADS_H

/* What the threads of another process are doing, for tests that find one that hangs. */

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>

/* The file's lines, each with `; ` in place of its end. */
static inline void threads_print_file(pid_t pid, const char *thread, const char *name, size_t most)
{
	char path[320];
	FILE *file;
	int c;

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%s/%s", (int)pid, thread, name);
	file = fopen(path, "re");
	if (!file)
		return;
	(void)fprintf(stderr, " | %s: ", name);
	while (most-- > 0 && (c = fgetc(file)) != EOF)
		(void)fputs(c == '\n' ? "; " : (char[]){ (char)c, '\0' }, stderr);
	(void)fclose(file);
}

/* One line for each thread: its name, its state and times, in which system call it is with which arguments and
 * at which address, and where in the kernel. */
static inline void threads_print(pid_t pid)
{
	char path[64];
	DIR *tasks;

	(void)snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	tasks = opendir(path);
	if (!tasks)
		return;
	for (const struct dirent *at = readdir(tasks); at; at = readdir(tasks)) {
		if (at->d_name[0] == '.')
			continue;
		(void)fprintf(stderr, "process %d thread %s", (int)pid, at->d_name);
		threads_print_file(pid, at->d_name, "stat", 200);
		threads_print_file(pid, at->d_name, "syscall", 200);
		threads_print_file(pid, at->d_name, "stack", 600);
		threads_print_file(pid, at->d_name, "maps", 60); /* where the program begins */
		(void)fputc('\n', stderr);
	}
	(void)closedir(tasks);
}

#endif
