/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_TOPO_TREE_H
#define TESTS_TOPO_TREE_H

/* Directories made for a test: a made-up machine, or an unpacked one.
 * cmocka's header comes before this one. */

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct tree {
	char top[64];
	char path[2048]; /* of the last tree_path() */
};

static inline void tree_make(struct tree *tree)
{
	/* In memory where that is to be had: machines are thousands of files. */
	snprintf(tree->top, sizeof(tree->top), "/dev/shm/tutti-tree-XXXXXX");
	if (mkdtemp(tree->top))
		return;
	snprintf(tree->top, sizeof(tree->top), "/tmp/tutti-tree-XXXXXX");
	assert_non_null(mkdtemp(tree->top));
}

static inline const char *tree_path(struct tree *tree, const char *name)
{
	const int n = snprintf(tree->path, sizeof(tree->path), "%s/%s", tree->top, name);

	assert_true((size_t)n < sizeof(tree->path));
	return tree->path;
}

/* A directory and those above it. */
static inline void tree_dir(struct tree *tree, const char *name)
{
	char path[2048];

	assert_true((size_t)snprintf(path, sizeof(path), "%s", tree_path(tree, name)) <
		    sizeof(path));
	for (char *at = path + strlen(tree->top) + 1;; at++) {
		const char was = *at;

		if (was != '/' && was != '\0')
			continue;
		*at = '\0';
		assert_true(mkdir(path, 0700) == 0 || errno == EEXIST);
		if (was == '\0')
			return;
		*at = was;
	}
}

static inline void tree_parent(struct tree *tree, const char *name)
{
	char path[2048];
	char *slash;

	assert_true((size_t)snprintf(path, sizeof(path), "%s", name) < sizeof(path));
	slash = strrchr(path, '/');
	if (!slash)
		return;
	*slash = '\0';
	tree_dir(tree, path);
}

static inline void tree_file(struct tree *tree, const char *name, const char *text)
{
	FILE *file;

	tree_parent(tree, name);
	file = fopen(tree_path(tree, name), "we");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static inline void tree_link(struct tree *tree, const char *name, const char *target)
{
	tree_parent(tree, name);
	assert_int_equal(symlink(target, tree_path(tree, name)), 0);
}

static inline int tree_remove_one(const char *path, const struct stat *info, int kind,
				  struct FTW *place)
{
	(void)info;
	(void)kind;
	(void)place;
	return remove(path);
}

/* Once is enough, more is fine. */
static inline void tree_remove(struct tree *tree)
{
	if (tree->top[0] == '\0')
		return;
	assert_int_equal(nftw(tree->top, tree_remove_one, 32, FTW_DEPTH | FTW_PHYS), 0);
	tree->top[0] = '\0';
}

#endif
