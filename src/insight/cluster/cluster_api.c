/* SPDX-License-Identifier: BSD-3-Clause */
#include "insight/cluster/cluster_report.h"
#include "insight/print/print_words.h"
#include "tutti/insight.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "insight/cluster/cluster.h"
#include "topo/detect/detect.h"
#include "util/error.h"

/* The public handle is the cluster itself. */
static struct tti_cluster *cluster_of(tutti_cluster_t handle)
{
	return (struct tti_cluster *)handle;
}

tutti_status tutti_cluster_make(tutti_cluster_t *out)
{
	struct tti_cluster *cluster;

	if (!out)
		return tti_fail(TUTTI_EINVAL, "tutti_cluster_make: out is NULL");
	*out = NULL;
	TTI_TRY(tti_cluster_create(&cluster));
	*out = (tutti_cluster_t)cluster;
	return TUTTI_OK;
}

/* Its old name. Version 0.2 takes it away. */
tutti_status tutti_cluster_create(tutti_cluster_t *out)
{
	return tutti_cluster_make(out);
}

void tutti_cluster_free(tutti_cluster_t handle)
{
	tti_cluster_free(cluster_of(handle));
}

/* A file, or the root directory of a captured machine. */
static tutti_status load(const char *path, struct tti_xml_doc **out)
{
	const struct tti_detect_config config = { .sysfs_root = path };
	struct stat info;

	if (stat(path, &info) == 0 && S_ISDIR(info.st_mode))
		return tti_detect_machine(&config, out);
	return tti_xml_read_file(path, out);
}

tutti_status tutti_cluster_add(tutti_cluster_t handle, const char *name, const char *path,
			       int count)
{
	struct tti_cluster *cluster = cluster_of(handle);
	struct tti_xml_doc *doc;
	tutti_status status;

	if (!cluster || !name || !path || count < 0)
		return tti_fail(TUTTI_EINVAL, "tutti_cluster_add: cluster, name or path is NULL, "
					      "or count is below 0");
	TTI_TRY(load(path, &doc));
	if (count)
		status = tti_cluster_add_many(cluster, name, (uint32_t)count, doc);
	else
		status = tti_cluster_add(cluster, name, doc);
	tti_xml_free(doc);
	return status;
}

tutti_status tutti_cluster_read_rails(tutti_cluster_t handle, const char *path)
{
	if (!handle || !path)
		return tti_fail(TUTTI_EINVAL, "tutti_cluster_read_rails: cluster or path is NULL");
	return tti_cluster_read_rails(cluster_of(handle), path);
}

tutti_status tutti_cluster_print(tutti_cluster_t handle, int json, char **out)
{
	struct tti_cluster *cluster = cluster_of(handle);
	struct tti_strbuf text = { 0 };
	tutti_status status = TUTTI_OK;

	if (!cluster || !out)
		return tti_fail(TUTTI_EINVAL, "tutti_cluster_print: cluster or out is NULL");
	*out = NULL;
	if (cluster->build)
		status = tti_cluster_seal(cluster);
	if (status == TUTTI_OK)
		status = json ? tti_cluster_print_json(cluster, &text)
			      : tti_cluster_print(cluster, &text);
	return tti_print_take(status, &text, "printing a cluster", out);
}
