/* SPDX-License-Identifier: BSD-3-Clause */
/* The two programs that `tutti topo` has others do its work with: tar and dot. */
#include "topo.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <spawn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tool.h"

int topo_run_program(char *const argv[], int in, int out)
{
	posix_spawn_file_actions_t actions;
	int error, status;
	pid_t pid;

	error = posix_spawn_file_actions_init(&actions);
	if (error)
		goto fail;
	if (in >= 0)
		error = posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
	else
		error = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null",
							 O_RDONLY, 0);
	if (!error && out >= 0)
		error = posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
	if (!error)
		error = posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (error)
		goto fail;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);

fail:
	errno = error;
	return -1;
}

/* -- tar ---------------------------------------------------------------------------- */

static int open_up(const char *path, const struct stat *info, int type, struct FTW *walk)
{
	(void)walk;
	/* Folders that were captured read-only could not be removed. */
	return type == FTW_D ? chmod(path, (info->st_mode & 0777) | 0700) : 0;
}

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *walk)
{
	(void)info;
	(void)type;
	(void)walk;
	return remove(path);
}

void topo_remove(struct topo_unpacked *unpacked)
{
	if (unpacked->folder) {
		(void)nftw(unpacked->folder, open_up, 16, FTW_PHYS);
		(void)nftw(unpacked->folder, remove_one, 16, FTW_PHYS | FTW_DEPTH);
	}
	free(unpacked->folder);
	free(unpacked->root);
	*unpacked = (struct topo_unpacked){ NULL, NULL };
}

/* PARENT/NAME if there is a sys/ in it, else NULL. */
static char *machine_at(const char *parent, const char *name)
{
	char *path, *sys;
	bool found;

	if (asprintf(&path, "%s/%s", parent, name) < 0)
		return NULL;
	if (asprintf(&sys, "%s/sys", path) < 0) {
		free(path);
		return NULL;
	}
	found = access(sys, F_OK) == 0;
	free(sys);
	if (found)
		return path;
	free(path);
	return NULL;
}

/* The archive holds the machine, or one folder with the machine. */
static char *find_machine(const char *folder)
{
	char *found = machine_at(folder, ".");
	DIR *dir = found ? NULL : opendir(folder);
	struct dirent *entry;

	while (dir && !found && (entry = readdir(dir)) != NULL)
		if (entry->d_name[0] != '.')
			found = machine_at(folder, entry->d_name);
	if (dir)
		closedir(dir);
	return found;
}

#define NO_TAR 1000

/* No archive begins so, but the topology file that was meant for --xml does. */
static bool is_markup(const char *path)
{
	FILE *file = fopen(path, "re");
	const int first = file ? getc(file) : EOF;

	if (file)
		fclose(file);
	return first == '<';
}

bool topo_make_folder(char *template, struct topo_unpacked *out)
{
	*out = (struct topo_unpacked){ NULL, NULL };
	if (!mkdtemp(template)) {
		tool_fail("cannot make a folder %s: %m", template);
		return false;
	}
	out->folder = strdup(template);
	if (out->folder)
		return true;
	tool_fail("out of memory");
	rmdir(template);
	return false;
}

bool topo_unpack(const char *tarball, struct topo_unpacked *out)
{
	/* Caches are most of a capture, and nobody reads them. */
	char template[] = P_tmpdir "/tutti-topo-XXXXXX";
	char *argv[] = { "tar", "-xf",    (char *)(uintptr_t)tarball,
			 "-C",  template, "--no-same-owner",
			 NULL };
	int code;

	if (!topo_make_folder(template, out))
		return false;
	code = is_markup(tarball) ? NO_TAR : topo_run_program(argv, -1, -1);
	if (code == 0)
		out->root = find_machine(template);
	if (out->root)
		return true;
	if (code == NO_TAR)
		tool_fail("'%s' is a text of XML or HTML, not a captured machine: --xml takes a "
			  "topology file",
			  tarball);
	else if (code < 0)
		tool_fail("cannot run tar to unpack '%s': %m", tarball);
	else if (code)
		tool_fail("tar could not unpack '%s', exit code %d: it is damaged, or not what "
			  "`tutti topo gather` writes, the .tar.gz of a captured machine",
			  tarball, code);
	else
		tool_fail("'%s' holds no captured machine: there is no sys/ in it", tarball);
	topo_remove(out);
	return false;
}

/* -- dot ---------------------------------------------------------------------------- */

/* Append all of `from` to `to`. */
static bool copy_file(FILE *from, FILE *to)
{
	char buf[65536];
	size_t n;

	rewind(from);
	while ((n = fread(buf, 1, sizeof(buf), from)) > 0)
		if (fwrite(buf, 1, n, to) != n)
			return false;
	return !ferror(from);
}

int topo_draw_text(char *text, FILE *to)
{
	char *argv[] = { "dot", "-Tsvg", NULL };
	/* Files, for with two pipes each side could wait for the other. */
	FILE *graph = tmpfile(), *picture = tmpfile();
	int code = TOOL_FINDING, result;

	if (!graph || !picture || fputs(text, graph) < 0 || fflush(graph)) {
		tool_fail("cannot write a temporary file: %m");
		goto done;
	}
	rewind(graph);
	result = topo_run_program(argv, fileno(graph), fileno(picture));
	if (result < 0 && errno == ENOENT)
		tool_fail("there is no program 'dot', which draws SVG: install the package "
			  "graphviz, or take --format dot");
	else if (result < 0)
		tool_fail("cannot run dot: %m");
	else if (result)
		tool_fail("dot failed with exit code %d", result);
	else if (!copy_file(picture, to))
		tool_fail("writing the picture failed: %m");
	else
		code = TOOL_GOOD;
done:
	free(text);
	if (graph)
		fclose(graph);
	if (picture)
		fclose(picture);
	return code;
}

int topo_draw(tutti_topo_t topo, FILE *to)
{
	char *text;
	const tutti_status status = tutti_topo_print(topo, TUTTI_TOPO_DOT, 0, &text);

	return status ? tool_fail("%s", tool_why(NULL, status)) : topo_draw_text(text, to);
}
