/* SPDX-License-Identifier: BSD-3-Clause */
#include "insight/topo/gather.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "topo/tree/busid.h"
#include "tutti/insight.h"
#include "util/error.h"
#include "util/fd.h"
#include "util/log.h"
#include "util/mem.h"
#include "util/params.h"

/* The part of a PCI function's configuration space that has the capabilities. The extended part
 * behind it may hold a serial number. */
#define CONFIG_BYTES 256
/* The files of a capture are much smaller: /proc/cpuinfo has 1.5 KB for each CPU. */
#define MAX_BYTES    ((size_t)16 << 20)

#define PCI_NAMES                                                                            \
	"class vendor device revision subsystem_vendor subsystem_device label numa_node "    \
	"local_cpus local_cpulist max_link_speed max_link_width current_link_speed "         \
	"current_link_width config enable sriov_numvfs sriov_totalvfs secondary_bus_number " \
	"subordinate_bus_number uevent driver subsystem physfn virtfn*"

/* Directories, and which of their entries; * as in a shell, within one name. */
static const struct {
	const char *where, *names;
} wanted[] = {
	{ "proc", "cpuinfo meminfo version sys/kernel/osrelease driver/nvidia/version" },
	{ "proc/driver/nvidia/gpus/*", "information numa_status" },
	{ "sys/devices/system/cpu", "online possible present kernel_max" },
	{ "sys/devices/system/cpu/cpu[0-9]*",
	  "online topology/* cache/index*/* regs/identification/* acpi_cppc/highest_perf" },
	{ "sys/devices/system/cpu/cpu[0-9]*/node*", "cpumap" },
	{ "sys/devices/system/node", "online possible has_cpu has_memory has_normal_memory" },
	{ "sys/devices/system/node/node*",
	  "cpumap cpulist distance meminfo access*/initiators/* cpu[0-9]*" },
	{ "sys/bus/pci/devices/*", PCI_NAMES },
	{ "sys/class/pci_bus/*", "cpuaffinity cpulistaffinity" },
	{ "sys/bus/node/devices/*", "" },
	{ "sys/bus/cpu/devices/*", "" },
	{ "sys/class/net/*",
	  "type speed duplex mtu flags dev_id dev_port ifindex iflink operstate carrier "
	  "addr_assign_type phys_port_name tun_flags uevent parent bridge bonding/mode "
	  "bonding/slaves wireless phy80211 device device/driver device/numa_node master "
	  "lower_* upper_* subsystem" },
	{ "sys/class/infiniband/*",
	  "node_type node_guid sys_image_guid hca_type hw_rev fw_ver parent device "
	  "device/driver device/numa_node subsystem" },
	{ "sys/class/infiniband/*/ports/*",
	  "state phys_state rate link_layer gids/0 gid_attrs/ndevs/0 gid_attrs/types/0" },
	{ "sys/class/drm/card*", "device" },
	{ "sys/class/drm/renderD*", "device" },
	{ "sys/class/kfd/kfd/topology", "generation_id system_properties" },
	{ "sys/class/kfd/kfd/topology/nodes/*",
	  "gpu_id name properties io_links/*/properties p2p_links/*/properties" },
	{ "sys/class/dmi/id", "sys_vendor product_name board_vendor board_name bios_version" },
	{ "sys/module/nvidia*", "version" },
	{ "sys/module/nv_peer_mem", "version" },
	{ "sys/module/amdgpu", "version" },
	{ "sys/module/amdkcl", "version" },
	{ "sys/module/gdrdrv", "version" },
	{ "sys/module/efa*", "version" },
	{ "sys/module/mlx[45]_*", "version" },
	{ "sys/module/ib_*", "version" },
	{ "sys/module/rdma_*", "version" },
	{ "sys/module/irdma", "version" },
	{ "sys/module/bnxt_*", "version" },
	{ "sys/kernel/mm/memory_peers/*", "version" },
	{ "sys/kernel/pci_switch_link", "refresh_switch_toplogy virtual_switch_links/*" },
	{ "sys/kernel/pci_switch_link/virtual_switch_links/*", "*" },
};

/* Lines that name one piece of hardware among its like: dropped, wherever they are. */
static const char *const private_lines[] = { "Serial", "GPU UUID", "unique_id" };

struct gather {
	const struct tti_sysfs *from;
	const char *to_dir;
	int to;
	char *text; /* MAX_BYTES + 1 */
	struct tti_gather_report report;
};

static tutti_status failed(const struct gather *gather, const char *path)
{
	return tti_fail(TUTTI_ESYS, "%s/%s cannot be written: %m; choose another place",
			gather->to_dir, path);
}

/* -- Writing: paths are real ones, without links ------------------------------------ */

static tutti_status take_names(struct gather *gather, const char *dir, const char *names);

static bool is_file(const struct gather *gather, const char *path)
{
	struct stat info;

	return fstatat(gather->from->fd, path, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
	       S_ISREG(info.st_mode);
}

static bool is_dir(const struct gather *gather, const char *path)
{
	struct stat info;

	return fstatat(gather->from->fd, path, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
	       S_ISDIR(info.st_mode);
}

/* Take the files that are kept of a device because another device is below it: a bridge may be known
 * only that way, and other buses tell their NUMA node. */
static tutti_status take_above(struct gather *gather, const char *dir)
{
	const char *const slash = strrchr(dir, '/');
	uint64_t busid;

	if (strncmp(dir, "sys/devices/", 12) != 0)
		return TUTTI_OK;
	return take_names(gather, dir,
			  tti_busid_parse(slash + 1, &busid) ? PCI_NAMES : "numa_node");
}

/* A directory and those above it. */
static tutti_status make_dirs(struct gather *gather, const char *path)
{
	char part[PATH_MAX];

	for (size_t len = 1; len <= strlen(path); len++) {
		if (path[len] != '/' && path[len] != '\0')
			continue;
		snprintf(part, sizeof(part), "%.*s", (int)len, path);
		if (mkdirat(gather->to, part, 0777) == 0)
			TTI_TRY(take_above(gather, part));
		else if (errno != EEXIST)
			return failed(gather, part);
	}
	return TUTTI_OK;
}

static tutti_status make_parents(struct gather *gather, const char *path)
{
	char parent[PATH_MAX];
	const char *const slash = strrchr(path, '/');

	if (!slash)
		return TUTTI_OK;
	snprintf(parent, sizeof(parent), "%.*s", (int)(slash - path), path);
	return make_dirs(gather, parent);
}

static bool is_private(const char *line, size_t len)
{
	for (size_t i = 0; i < sizeof(private_lines) / sizeof(private_lines[0]); i++) {
		const size_t want = strlen(private_lines[i]);

		if (len >= want && !memcmp(line, private_lines[i], want))
			return true;
	}
	return false;
}

/* In place; the bytes that stay. */
static size_t drop_private_lines(char *text, size_t nbytes)
{
	size_t kept = 0, begin = 0;

	while (begin < nbytes) {
		const char *const newline = memchr(text + begin, '\n', nbytes - begin);
		const size_t end = newline ? (size_t)(newline - text) + 1 : nbytes;

		if (!is_private(text + begin, end - begin)) {
			memmove(text + kept, text + begin, end - begin);
			kept += end - begin;
		}
		begin = end;
	}
	return kept;
}

static bool write_all(int fd, const char *text, size_t nbytes)
{
	while (nbytes > 0) {
		const ssize_t n = write(fd, text, nbytes);

		if (n < 0 && errno != EINTR)
			return false;
		text += n > 0 ? n : 0;
		nbytes -= n > 0 ? (size_t)n : 0;
	}
	return true;
}

static bool ends_with(const char *text, const char *end)
{
	const size_t len = strlen(text), want = strlen(end);

	return len >= want && !strcmp(text + len - want, end);
}

/* A file that cannot be read here is left out, as if it were absent. */
static tutti_status copy_file(struct gather *gather, const char *path)
{
	const bool config = ends_with(path, "/config");
	const ssize_t nread = tti_sysfs_bytes(gather->from, gather->text,
					      config ? CONFIG_BYTES : MAX_BYTES, "%s", path);
	size_t nbytes;
	bool good;
	int fd;

	if (nread < 0)
		return TUTTI_OK;
	nbytes = config ? (size_t)nread : drop_private_lines(gather->text, (size_t)nread);
	TTI_TRY(make_parents(gather, path));
	fd = openat(gather->to, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
	if (fd < 0 && errno == EEXIST)
		return TUTTI_OK;
	if (fd < 0)
		return failed(gather, path);
	good = write_all(fd, gather->text, nbytes);
	tti_fd_close(&fd);
	if (!good)
		return failed(gather, path);
	gather->report.nfiles++;
	gather->report.nbytes += nbytes;
	return TUTTI_OK;
}

/* From a directory to a path, both from the root: "../../devices/pci0000:00/...". */
static bool relative(const char *from_dir, const char *to, char *buf, size_t size)
{
	size_t same = 0, len = 0;

	for (size_t i = 0;; i++) {
		const bool from_ends = from_dir[i] == '\0' || from_dir[i] == '/';
		const bool to_ends = to[i] == '\0' || to[i] == '/';

		if (from_ends && to_ends)
			same = i;
		if (from_dir[i] != to[i] || from_dir[i] == '\0')
			break;
	}
	buf[0] = '\0';
	for (const char *at = from_dir + same; *at; at++)
		if (*at == '/' ? at[1] != '\0' : at == from_dir)
			len += (size_t)snprintf(len < size ? buf + len : NULL,
						len < size ? size - len : 0, "../");
	to += same;
	len += (size_t)snprintf(len < size ? buf + len : NULL, len < size ? size - len : 0, "%s",
				*to == '/' ? to + 1 : to);
	return len > 0 && len < size;
}

/* A link at `path` to what it really leads to. */
static tutti_status make_link(struct gather *gather, const char *path, const char *real)
{
	char parent[PATH_MAX], target[2 * PATH_MAX];
	const char *const slash = strrchr(path, '/');

	snprintf(parent, sizeof(parent), "%.*s", slash ? (int)(slash - path) : 0, path);
	if (!relative(parent, real, target, sizeof(target)))
		return TUTTI_OK; /* to a directory it is in: nothing that is followed */
	TTI_TRY(make_parents(gather, path));
	if (symlinkat(target, gather->to, path) == 0)
		gather->report.nlinks++;
	else if (errno != EEXIST)
		return failed(gather, path);
	return TUTTI_OK;
}

/* -- What is wanted ------------------------------------------------------------------ */

static tutti_status take(struct gather *gather, const char *dir, const char *pattern,
			 const char *names);

/* Each of the names, which blanks separate, in a directory. */
static tutti_status take_names(struct gather *gather, const char *dir, const char *names)
{
	char pattern[256];

	while (*names) {
		const size_t len = strcspn(names, " ");

		snprintf(pattern, sizeof(pattern), "%.*s", (int)len, names);
		TTI_TRY(take(gather, dir, pattern, ""));
		names += len;
		names += strspn(names, " ");
	}
	return TUTTI_OK;
}

/* One entry of a directory that fits; `rest` and in it `names` are wanted below it. */
static tutti_status take_entry(struct gather *gather, const char *dir, const char *name,
			       const char *rest, const char *names)
{
	char path[PATH_MAX], real[PATH_MAX];

	if ((size_t)snprintf(path, sizeof(path), "%s%s%s", dir, dir[0] ? "/" : "", name) >=
		    sizeof(path) ||
	    !tti_sysfs_real(gather->from, real, sizeof(real), "%s", path))
		return TUTTI_OK;
	if (strcmp(path, real) != 0)
		TTI_TRY(make_link(gather, path, real));
	if (is_file(gather, real))
		return rest[0] ? TUTTI_OK : copy_file(gather, real);
	if (!is_dir(gather, real))
		return TUTTI_OK;
	TTI_TRY(make_dirs(gather, real));
	return rest[0] ? take(gather, real, rest, names) : take_names(gather, real, names);
}

/* All entries below `dir`, a real path, that fit a pattern of several parts; of the
 * directories among them, what `names` says. */
static tutti_status take(struct gather *gather, const char *dir, const char *pattern,
			 const char *names)
{
	char first[NAME_MAX + 1];
	const size_t len = strcspn(pattern, "/");
	const char *const rest = pattern + len + (pattern[len] == '/');
	tutti_status status = TUTTI_OK;
	char **entries;
	size_t n;

	snprintf(first, sizeof(first), "%.*s", (int)len, pattern);
	if (!strpbrk(first, "*["))
		return take_entry(gather, dir, first, rest, names);
	TTI_TRY(tti_sysfs_list(gather->from, &entries, &n, "%s", dir[0] ? dir : "."));
	for (size_t i = 0; i < n && !status; i++)
		if (fnmatch(first, entries[i], 0) == 0)
			status = take_entry(gather, dir, entries[i], rest, names);
	tti_free(entries);
	return status;
}

/* -- Where to ------------------------------------------------------------------------ */

static bool is_empty(int fd)
{
	const int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *const dir = copy < 0 ? NULL : fdopendir(copy);
	const struct dirent *entry;
	bool empty = dir != NULL;

	while (empty && (entry = readdir(dir)))
		empty = !strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..");
	if (dir)
		closedir(dir);
	return empty;
}

static tutti_status open_target(struct gather *gather)
{
	if (mkdir(gather->to_dir, 0777) < 0 && errno != EEXIST)
		return tti_fail(TUTTI_ESYS, "%s cannot be made: %m; choose another place",
				gather->to_dir);
	gather->to = open(gather->to_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (gather->to < 0)
		return tti_fail(TUTTI_ESYS, "%s cannot be opened as a directory: %m",
				gather->to_dir);
	if (!is_empty(gather->to))
		return tti_fail(TUTTI_EINVAL, "%s is not empty: name a directory that is, or none",
				gather->to_dir);
	return TUTTI_OK;
}

tutti_status tti_gather(const struct tti_sysfs *from, const char *to_dir,
			struct tti_gather_report *out)
{
	struct gather gather = { .from = from, .to_dir = to_dir, .to = -1 };
	tutti_status status = open_target(&gather);

	if (!status) {
		gather.text = tti_alloc(MAX_BYTES);
		if (!gather.text)
			status =
				tti_fail(TUTTI_ENOMEM, "no memory to copy files of %s", from->path);
	}
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]) && !status; i++)
		status = take(&gather, "", wanted[i].where, wanted[i].names);
	tti_free(gather.text);
	tti_fd_close(&gather.to);
	*out = gather.report;
	return status;
}

tutti_status tutti_topo_gather(const char *directory)
{
	struct tti_gather_report report;
	struct tti_sysfs from;
	tutti_status status;

	if (!directory || !directory[0])
		return tti_fail(TUTTI_EINVAL, "tutti_topo_gather: no directory was named");
	TTI_TRY(tti_sysfs_open(tti_params()->sysfs_root, &from));
	status = tti_gather(&from, directory, &report);
	tti_sysfs_close(&from);
	if (!status)
		tti_log(TTI_LOG_INFO, TTI_TOPO, "%s: %zu files and %zu links, %zu bytes", directory,
			report.nfiles, report.nlinks, report.nbytes);
	return status;
}
