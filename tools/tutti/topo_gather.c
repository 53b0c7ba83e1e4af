/* SPDX-License-Identifier: BSD-3-Clause */
/* tutti topo gather: what describes this machine, in one file. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tool.h"
#include "topo.h"

#define TOP "tutti-topo"

struct gather {
	const char *file;          /* what is written                              */
	struct topo_unpacked copy; /* goes at the end                              */
	char *part;                /* the file while it is written; NULL: none     */
	int fd;                    /* of the part, -1                              */
};

/* The answers of the driver of GPUs are in no file, so the detected topology goes along. */
static bool write_topology(const struct gather *gather)
{
	tutti_topo_t topo;
	char *text = NULL, *path = NULL;
	tutti_status status = tutti_topo_load(NULL, &topo);
	FILE *file = NULL;
	bool good;

	if (status) {
		tool_fail("%s", tool_why(NULL, status));
		return false;
	}
	status = tutti_topo_print(topo, TUTTI_TOPO_XML, 0, &text);
	tutti_topo_free(topo);
	if (status) {
		tool_fail("%s", tool_why(NULL, status));
		return false;
	}
	if (asprintf(&path, "%s/topology.xml", gather->copy.root) < 0)
		path = NULL;
	else
		file = fopen(path, "we");
	good = file && fputs(text, file) >= 0;
	if (file && fclose(file))
		good = false;
	free(text);
	free(path);
	if (!good)
		tool_fail("cannot write %s/topology.xml: %m", gather->copy.root);
	return good;
}

static bool collect(struct gather *gather)
{
	char template[] = P_tmpdir "/tutti-topo-XXXXXX";
	tutti_status status;

	if (!topo_make_folder(template, &gather->copy))
		return false;
	if (asprintf(&gather->copy.root, "%s/" TOP, template) < 0) {
		gather->copy.root = NULL;
		tool_fail("out of memory");
		return false;
	}
	status = tutti_topo_gather(gather->copy.root);
	if (status) {
		tool_fail("%s", tool_why(NULL, status));
		return false;
	}
	return write_topology(gather);
}

/* A file beside the one that is wanted: what is there stays until the new one is whole. */
static bool open_part(struct gather *gather)
{
	const mode_t mask = umask(022);

	umask(mask);
	if (asprintf(&gather->part, "%s.XXXXXX", gather->file) < 0) {
		gather->part = NULL;
		tool_fail("out of memory");
		return false;
	}
	gather->fd = mkostemp(gather->part, O_CLOEXEC);
	if (gather->fd >= 0)
		return fchmod(gather->fd, 0666 & ~mask) == 0;
	tool_bad_usage("cannot write '%s': %m", gather->file);
	free(gather->part);
	gather->part = NULL;
	return false;
}

static bool pack(struct gather *gather)
{
	char *argv[] = { "tar", "-cz", "--owner=0", "--group=0", "-C", gather->copy.folder,
			 TOP,   NULL };
	const int code = topo_run_program(argv, -1, gather->fd);

	if (code == 0 && fsync(gather->fd) == 0 && rename(gather->part, gather->file) == 0) {
		free(gather->part);
		gather->part = NULL;
		return true;
	}
	if (code < 0)
		tool_fail("cannot run tar, which packs the file: %m");
	else if (code)
		tool_fail("tar failed with exit code %d", code);
	else
		tool_fail("cannot write '%s': %m", gather->file);
	return false;
}

static bool report(const struct gather *gather, bool json)
{
	struct stat info;

	if (fstat(gather->fd, &info) < 0)
		info.st_size = 0;
	if (json)
		return tool_print_json(json_pack("{s:s, s:I}", "file", gather->file, "bytes",
						 (json_int_t)info.st_size));
	printf("%s: %lld KB; 'tutti topo --sysfs %s' shows the machine\n", gather->file,
	       ((long long)info.st_size + 1023) / 1024, gather->file);
	return true;
}

static void clean_up(struct gather *gather)
{
	topo_remove(&gather->copy);
	if (gather->part)
		(void)unlink(gather->part);
	free(gather->part);
	if (gather->fd >= 0)
		close(gather->fd);
}

static bool is_tarball(const char *file)
{
	const char *const ends[] = { ".tar.gz", ".tgz" };
	const size_t len = strlen(file);

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		if (len > strlen(ends[i]) && !strcmp(file + len - strlen(ends[i]), ends[i]))
			return true;
	return false;
}

int topo_gather_run(void *self)
{
	const struct topo_gather_options *const options = self;
	struct gather gather = { .file = options->file, .fd = -1 };
	bool good;

	if (!is_tarball(gather.file))
		return tool_bad_usage("'%s' does not end in .tar.gz", gather.file);
	if (!open_part(&gather))
		return TOOL_USAGE;
	good = collect(&gather) && pack(&gather) && report(&gather, options->json);
	clean_up(&gather);
	return good ? TOOL_GOOD : TOOL_FINDING;
}
