/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_TOPO_CAPTURE_H
#define TESTS_TOPO_CAPTURE_H

/* The captured machines of tests/data/sysfs, unpacked for a test.
 * cmocka's header comes before this one. */

#include <dirent.h>
#include <stdbool.h>

#include "tree.h"

static const char *const captures[] = {
	"128arm-2pa2n8cluster4co.tar.bz2",
	"32intel64-2p8co2t+8ve.tar.bz2",
	"40intel64-2g2n4c+pcilocality.tar.bz2",
	"40intel64-4n10c+pci-conflicts.tar.bz2",
	"linux-amd64-61797caf7c0b6bca1725ad7975ed4773.tar.gz",
	"linux-amd64-accel-nvidia.tar.gz",
	"nvidia-dgx-gb10.tar.bz2",
	"nvidiagpunumanodes.tar.bz2",
	"qemu-q35-2numa-pciswitch-sysfs.tar.gz",
};
#define NCAPTURES (sizeof(captures) / sizeof(captures[0]))

struct capture {
	struct tree tree;
	char root[2048]; /* the directory with sys/ in it */
};

static inline bool has_sys_dir(const char *dir)
{
	char path[4096];
	struct stat info;

	assert_true((size_t)snprintf(path, sizeof(path), "%s/sys", dir) < sizeof(path));
	return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

/* Some archives hold sys/, some one directory with it. */
static inline void capture_find_root(struct capture *capture)
{
	const struct dirent *entry;
	DIR *dir;

	snprintf(capture->root, sizeof(capture->root), "%s", capture->tree.top);
	if (has_sys_dir(capture->root))
		return;
	dir = opendir(capture->tree.top);
	assert_non_null(dir);
	while (!has_sys_dir(capture->root) && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			snprintf(capture->root, sizeof(capture->root), "%s",
				 tree_path(&capture->tree, entry->d_name));
	closedir(dir);
	assert_true(has_sys_dir(capture->root));
}

static inline void capture_unpack(struct capture *capture, const char *name)
{
	char command[4096];

	tree_make(&capture->tree);
	snprintf(command, sizeof(command), "tar -x --no-same-owner -f '%s/sysfs/%s' -C '%s'",
		 TEST_DATA, name, capture->tree.top);
	assert_int_equal(system(command), 0);
	capture_find_root(capture);
}

static inline void capture_remove(struct capture *capture)
{
	tree_remove(&capture->tree);
}

#endif
