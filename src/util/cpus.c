/* SPDX-License-Identifier: BSD-3-Clause */
#include "util/thread.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* How many CPUs there are to use: the affinity mask, and what the control
 * groups (v2: cpu.max, v1: cpu.cfs_quota_us) of this process and those above
 * it allow. */

#define PATH_BYTES 1024

int tti_cpu_online(void)
{
	const long n = sysconf(_SC_NPROCESSORS_ONLN);

	return n > 0 ? (int)n : 1;
}

static int affinity_count(void)
{
	/* The kernel refuses a mask smaller than its own. */
	for (size_t ncpus = 1024; ncpus <= 1 << 20; ncpus *= 2) {
		const size_t nbytes = CPU_ALLOC_SIZE(ncpus);
		cpu_set_t *set = CPU_ALLOC(ncpus);
		int count = 0;

		if (!set)
			break;
		if (sched_getaffinity(0, nbytes, set) == 0)
			count = CPU_COUNT_S(nbytes, set);
		CPU_FREE(set);
		if (count > 0)
			return count;
		if (errno != EINVAL)
			break;
	}
	return tti_cpu_online();
}

/* The numbers of a one-line file: how many were read (of 2); "max" is none. */
static int read_numbers(const char *path, long long out[2])
{
	FILE *file = fopen(path, "re");
	int n;

	if (!file)
		return 0;
	n = fscanf(file, "%lld %lld", &out[0], &out[1]);
	fclose(file);
	return n < 0 ? 0 : n;
}

int tti_cpu_core(int cpu)
{
	char path[96];
	long long found[2];

	(void)snprintf(path, sizeof(path),
		       "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
	return read_numbers(path, found) > 0 ? (int)found[0] : cpu;
}

/* CPUs that one group may use, rounded up; 0: no limit is written there. */
static int group_quota(const char *dir, bool v2)
{
	char path[PATH_BYTES + 32];
	long long value[2] = { 0, 0 };
	long long unused[2];

	if (v2) {
		snprintf(path, sizeof(path), "%s/cpu.max", dir);
		if (read_numbers(path, value) != 2)
			return 0;
	} else {
		snprintf(path, sizeof(path), "%s/cpu.cfs_quota_us", dir);
		if (read_numbers(path, value) < 1)
			return 0;
		snprintf(path, sizeof(path), "%s/cpu.cfs_period_us", dir);
		if (read_numbers(path, unused) < 1)
			return 0;
		value[1] = unused[0];
	}
	if (value[0] <= 0 || value[1] <= 0)
		return 0;
	value[0] = value[0] / value[1] + (value[0] % value[1] != 0);
	return value[0] < INT_MAX ? (int)value[0] : 0;
}

/* The least quota of `group` below `mount` and of all above it. A group that
 * is not seen here (a container sees its own as the root) has no files. */
static int least_quota(const char *mount, const char *group, bool v2)
{
	char dir[PATH_BYTES];
	const size_t root_len = strlen(mount);
	int least = 0;

	if ((size_t)snprintf(dir, sizeof(dir), "%s%s", mount, group) >= sizeof(dir))
		return 0;
	for (;;) {
		const int quota = group_quota(dir, v2);
		char *slash;

		if (quota > 0 && (least == 0 || quota < least))
			least = quota;
		if (strlen(dir) <= root_len)
			return least;
		slash = strrchr(dir, '/');
		*slash = '\0';
	}
}

/* Whether the comma list has `cpu` in it. */
static bool has_cpu_controller(const char *list)
{
	for (; *list; list += strcspn(list, ","), list += *list == ',')
		if (strcspn(list, ",") == 3 && !strncmp(list, "cpu", 3))
			return true;
	return false;
}

/* One line of /proc/self/cgroup, "4:cpu,cpuacct:/group" or "0::/group". */
static int line_quota(const char *root, char *line)
{
	char mount[PATH_BYTES / 2];
	char *controllers = strchr(line, ':');
	char *group = controllers ? strchr(controllers + 1, ':') : NULL;
	int quota;

	if (!group)
		return 0;
	*group++ = '\0';
	controllers++;
	group[strcspn(group, "\n")] = '\0';
	if (controllers[0] == '\0') {
		snprintf(mount, sizeof(mount), "%s/sys/fs/cgroup", root);
		quota = least_quota(mount, group, true);
		if (quota > 0)
			return quota;
		snprintf(mount, sizeof(mount), "%s/sys/fs/cgroup/unified", root);
		return least_quota(mount, group, true);
	}
	if (!has_cpu_controller(controllers))
		return 0;
	snprintf(mount, sizeof(mount), "%s/sys/fs/cgroup/cpu", root);
	quota = least_quota(mount, group, false);
	if (quota > 0)
		return quota;
	snprintf(mount, sizeof(mount), "%s/sys/fs/cgroup/%s", root, controllers);
	return least_quota(mount, group, false);
}

int tti_cpu_quota(const char *root)
{
	char path[PATH_BYTES / 2];
	char line[PATH_BYTES];
	int least = 0;
	FILE *file;

	snprintf(path, sizeof(path), "%s/proc/self/cgroup", root);
	file = fopen(path, "re");
	if (!file)
		return 0;
	while (fgets(line, sizeof(line), file)) {
		const int quota = line_quota(root, line);

		if (quota > 0 && (least == 0 || quota < least))
			least = quota;
	}
	fclose(file);
	return least;
}

static int own_quota;

static void read_own_quota(void)
{
	own_quota = tti_cpu_quota("");
}

int tti_cpu_count(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	const int count = affinity_count();

	pthread_once(&once, read_own_quota);
	return own_quota > 0 && own_quota < count ? own_quota : count;
}
