/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/device.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "engine/calls.h"
#include "engine/internal.h"

#define TEXT 512

#define SMS      8
#define SMS_MOST 256

#define BYTES_LEAST ((size_t)1 << 20)
#define BYTES_MOST  ((size_t)1 << 50)

/* Read once. */
static struct {
	int count;
	size_t nbytes;
	bool logs;
	struct tti_cuda_pci places[TTI_CUDA_DEVICES_MOST];
	struct tti_cuda_pairs refused, lying;
	bool has_vmm, waits;
	int nmultiprocessors; /* of each device */
	char wrong[TEXT];     /* why there is no device; "": there are as many as were asked for */
} settings;

/* What a job failed with first; the text is there once the error is. */
static struct failure {
	pthread_mutex_t lock;
	_Atomic int error;
	char text[TEXT];
} failures[TTI_CUDA_DEVICES_MOST];

static _Thread_local int current;
static _Thread_local bool runs_jobs;
static _Thread_local char last_text[TEXT];

/* -- Settings ------------------------------------------------------------------------------- */

const char *tti_cuda_setting(const char *name)
{
	const char *text = getenv(name);

	return text && *text ? text : NULL;
}

/* Read Slurm's "4(x2),3", which is 4 on each of two nodes and 3 on the next; 0: it does not say. */
static long ranks_of_node(const char *list, const char *node_text)
{
	char *end;
	long node = node_text ? strtol(node_text, &end, 10) : -1;

	while (list && node >= 0) {
		const long nranks = strtol(list, &end, 10);
		long nnodes = 1;

		if (end == list)
			return 0;
		if (strncmp(end, "(x", 2) == 0)
			nnodes = strtol(end + 2, &end, 10);
		if (node < nnodes)
			return nranks;
		node -= nnodes;
		list = strchr(end, ',');
		list = list ? list + 1 : NULL;
	}
	return 0;
}

/* How many ranks the launcher has started on this host, so that each finds a device by its number there; 1
 * where it does not say. */
static int ranks_here(void)
{
	/* torchrun; Open MPI; MPICH and Intel MPI. */
	static const char *const names[] = { "LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE",
					     "MPI_LOCALNRANKS" };
	long n = 0;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && n < 1; i++) {
		const char *text = tti_cuda_setting(names[i]);

		n = text ? strtol(text, NULL, 10) : 0;
	}
	if (n < 1)
		n = ranks_of_node(tti_cuda_setting("SLURM_STEP_TASKS_PER_NODE"),
				  tti_cuda_setting("SLURM_NODEID"));
	return n < 1 ? 1 : n > TTI_CUDA_DEVICES_MOST ? TTI_CUDA_DEVICES_MOST : (int)n;
}

static int read_count(void)
{
	const char *text = tti_cuda_setting("TUTTI_CUDAHOST_GPUS");
	char *end;
	long count;

	if (!text)
		return ranks_here();
	errno = 0;
	count = strtol(text, &end, 10);
	if (errno == 0 && end != text && !*end && count >= 0 && count <= TTI_CUDA_DEVICES_MOST)
		return (int)count;
	snprintf(settings.wrong, sizeof(settings.wrong),
		 "TUTTI_CUDAHOST_GPUS=%s is not a number from 0 to %d, so there is no device: set "
		 "it "
		 "to how many devices the program shall see, or unset it for one for each rank of "
		 "the "
		 "host",
		 text, TTI_CUDA_DEVICES_MOST);
	return 0;
}

/* How far the digits are shifted; -1: not a unit. */
static int unit_shift(const char *unit)
{
	static const char units[] = "kmgt";
	const char *at;

	if (!*unit)
		return 0;
	at = strchr(units, *unit | 0x20);
	return at && !unit[1] ? 10 * (int)(at - units + 1) : -1;
}

/* All memory of the host, in equal shares. */
static size_t host_share(int count)
{
	const long npages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
	size_t share = BYTES_LEAST;

	if (npages > 0 && page > 0)
		share = (size_t)npages * (size_t)page / (size_t)(count ? count : 1);
	share &= ~(BYTES_LEAST - 1);
	return share < BYTES_LEAST ? BYTES_LEAST : share;
}

static size_t read_bytes(int count)
{
	const char *text = tti_cuda_setting("TUTTI_CUDAHOST_MEMORY");
	unsigned long long value;
	char *end;
	int shift;

	if (!text)
		return host_share(count);
	errno = 0;
	value = strtoull(text, &end, 10);
	shift = unit_shift(end);
	if (errno == 0 && *text >= '0' && *text <= '9' && shift >= 0 &&
	    value <= BYTES_MOST >> shift && value << shift >= BYTES_LEAST)
		return (size_t)(value << shift);
	snprintf(
		settings.wrong, sizeof(settings.wrong),
		"TUTTI_CUDAHOST_MEMORY=%s is not a size from 1M to 1024T, so there is no device: "
		"set it to the bytes that each device has, such as 512M or 8G, or unset it for all "
		"memory of this host in equal shares",
		text);
	return 0;
}

static void read_places(int count)
{
	const char *list = tti_cuda_setting("TUTTI_CUDAHOST_PCI");
	char wrong[128];

	if (tti_cuda_pci_place(list, count, settings.places, wrong, sizeof(wrong)) < 0)
		snprintf(settings.wrong, sizeof(settings.wrong),
			 "TUTTI_CUDAHOST_PCI=%.200s: %s, so there is no device: set it to as many "
			 "as TUTTI_CUDAHOST_GPUS says, with commas between, or unset it",
			 list, wrong);
}

static void read_pairs(const char *name, int count, struct tti_cuda_pairs *out)
{
	const char *list = tti_cuda_setting(name);
	char wrong[128];

	if (tti_cuda_pairs_read(list, count, out, wrong, sizeof(wrong)) < 0)
		snprintf(settings.wrong, sizeof(settings.wrong),
			 "%s=%.200s: %s; so there is no device", name, list, wrong);
}

/* From `least` to `most`. */
static int read_number(const char *name, int unset, int least, int most)
{
	const char *text = tti_cuda_setting(name);
	char *end;
	long value;

	if (!text)
		return unset;
	errno = 0;
	value = strtol(text, &end, 10);
	if (errno == 0 && end != text && !*end && value >= least && value <= most)
		return (int)value;
	snprintf(settings.wrong, sizeof(settings.wrong),
		 "%s=%.200s is not a number from %d to %d, so there is no device", name, text,
		 least, most);
	return unset;
}

static void read_failing(void)
{
	const char *value = tti_cuda_setting("TUTTI_CUDAHOST_FAIL");
	char wrong[192];

	if (tti_cuda_calls_read(value, wrong, sizeof(wrong)) < 0)
		snprintf(settings.wrong, sizeof(settings.wrong),
			 "TUTTI_CUDAHOST_FAIL=%.200s: %s; so there is no device", value, wrong);
}

static void read_settings(void)
{
	const char *level = tti_cuda_setting("TUTTI_DEBUG");

	settings.logs = level && (!strcasecmp(level, "INFO") || !strcasecmp(level, "TRACE"));
	settings.count = read_count();
	settings.nbytes = read_bytes(settings.count);
	if (settings.count > 0)
		read_places(settings.count);
	read_pairs("TUTTI_CUDAHOST_NO_PEER", settings.count, &settings.refused);
	read_pairs("TUTTI_CUDAHOST_LIE", settings.count, &settings.lying);
	settings.has_vmm = read_number("TUTTI_CUDAHOST_VMM", 1, 0, 1);
	settings.waits = read_number("TUTTI_CUDAHOST_WAIT", 0, 0, 1);
	settings.nmultiprocessors = read_number("TUTTI_CUDAHOST_SMS", SMS, 1, SMS_MOST);
	read_failing();
	for (int device = 0; device < TTI_CUDA_DEVICES_MOST; device++)
		pthread_mutex_init(&failures[device].lock, NULL);
	if (!settings.wrong[0])
		return;
	settings.count = 0;
	fprintf(stderr, "tutti: %s\n", settings.wrong);
}

static void read_once(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, read_settings);
}

void tti_cuda_settings_read(void)
{
	read_once();
}

/* -- Processes ------------------------------------------------------------------------------ */

enum process { FRESH, BEGUN, FORKED };

static _Atomic int process;

static void after_fork(void)
{
	if (atomic_load(&process) == BEGUN)
		atomic_store(&process, FORKED);
}

static void begin_once(void)
{
	pthread_atfork(NULL, NULL, after_fork);
	atomic_store(&process, BEGUN);
}

int tti_cuda_begin(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	switch ((enum process)atomic_load_explicit(&process, memory_order_acquire)) {
	case BEGUN:
		return 0;
	case FORKED:
		return tti_cuda_fail(TTI_CUDA_EINIT,
				     "process %d is a child of fork(), and its parent used CUDA "
				     "before: use CUDA in the child alone, or start it by exec() "
				     "(\"spawn\" in Python)",
				     (int)getpid());
	case FRESH:
		break;
	}
	read_once();
	pthread_once(&once, begin_once);
	return 0;
}

/* -- Devices -------------------------------------------------------------------------------- */

int tti_cuda_device_count(void)
{
	read_once();
	if (settings.wrong[0])
		tti_cuda_fail(TTI_CUDA_ENODEVICE, "%s", settings.wrong);
	return settings.count;
}

int tti_cuda_device_current(void)
{
	return current;
}

int tti_cuda_device_check(int device)
{
	const int count = tti_cuda_device_count();

	if (count == 0)
		return tti_cuda_fail(TTI_CUDA_ENODEVICE, "%s",
				     settings.wrong[0]
					     ? settings.wrong
					     : "TUTTI_CUDAHOST_GPUS=0: there is no device");
	if (device < 0 || device >= count)
		return tti_cuda_fail(TTI_CUDA_EDEVICE,
				     "there is no device %d: there are %d, from 0 on "
				     "(TUTTI_CUDAHOST_GPUS says how many)",
				     device, count);
	return 0;
}

int tti_cuda_device_set(int device)
{
	int error = tti_cuda_begin();

	if (!error)
		error = tti_cuda_device_check(device);
	if (!error)
		current = device;
	return error;
}

struct tti_cuda_pci tti_cuda_device_pci(int device)
{
	read_once();
	return settings.places[device];
}

const struct tti_cuda_pairs *tti_cuda_device_refused(void)
{
	read_once();
	return &settings.refused;
}

const struct tti_cuda_pairs *tti_cuda_device_lying(void)
{
	read_once();
	return &settings.lying;
}

bool tti_cuda_device_has_vmm(void)
{
	read_once();
	return settings.has_vmm;
}

bool tti_cuda_device_waits(void)
{
	read_once();
	return settings.waits;
}

int tti_cuda_device_multiprocessors(void)
{
	read_once();
	return settings.nmultiprocessors;
}

size_t tti_cuda_device_bytes(void)
{
	read_once();
	return settings.nbytes;
}

void tti_cuda_device_enter(int device)
{
	current = device;
	runs_jobs = true;
}

static _Thread_local int nhost; /* functions of the program that this thread is in */

void tti_cuda_host_begin(void)
{
	nhost++;
}

void tti_cuda_host_end(void)
{
	nhost--;
}

int tti_cuda_host_may_call(const char *name)
{
	if (!nhost)
		return 0;
	return tti_cuda_fail(TTI_CUDA_EPOOL,
			     "%s() was called by a host function that a stream runs: CUDA does not "
			     "allow that, let the program's own thread call it",
			     name);
}

int tti_cuda_device_may_wait(const char *what)
{
	if (!runs_jobs)
		return 0;
	return tti_cuda_fail(
		TTI_CUDA_EPOOL,
		"%s in a host function, which a stream runs: it could wait for itself; "
		"wait in the thread that queued it",
		what);
}

/* -- Failures ------------------------------------------------------------------------------- */

int tti_cuda_fail(int error, const char *fmt, ...)
{
	const int errno_before = errno; /* for %m */
	char text[TEXT];                /* the arguments may be the last text */
	va_list args;

	read_once();
	errno = errno_before;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	memcpy(last_text, text, sizeof(text));
	if (settings.logs)
		fprintf(stderr, "tutti: cuda error %d: %s\n", error, text);
	return error;
}

const char *tti_cuda_error_text(void)
{
	return last_text;
}

int tti_cuda_job_run(int device, const struct tti_cuda_job *job)
{
	struct failure *failure = &failures[device];
	int error;

	last_text[0] = '\0';
	current = device; /* the job before may have set another */
	error = job->run ? job->run(job->arg) : 0;
	if (!error)
		return 0;
	pthread_mutex_lock(&failure->lock);
	if (!atomic_load(&failure->error)) {
		snprintf(failure->text, sizeof(failure->text), "%s", last_text);
		atomic_store(&failure->error, error);
	}
	pthread_mutex_unlock(&failure->lock);
	return error;
}

void tti_cuda_job_drop(const struct tti_cuda_job *job)
{
	if (job->drop)
		job->drop(job->arg);
}

int tti_cuda_device_failure(int device)
{
	struct failure *failure;
	char text[TEXT];
	int error = tti_cuda_device_check(device);

	if (error)
		return error;
	failure = &failures[device];
	if (!atomic_load_explicit(&failure->error, memory_order_acquire))
		return 0;
	pthread_mutex_lock(&failure->lock);
	error = atomic_load(&failure->error);
	memcpy(text, failure->text, sizeof(text));
	pthread_mutex_unlock(&failure->lock);
	if (!error)
		return 0;
	return tti_cuda_fail(
		error,
		"something that device %d was to run failed with %d, and the device is "
		"lost until cudaDeviceReset()%s%.400s",
		device, error, text[0] ? ": " : "", text);
}

void tti_cuda_device_forget(int device)
{
	struct failure *failure;

	if (tti_cuda_device_check(device))
		return;
	failure = &failures[device];
	pthread_mutex_lock(&failure->lock);
	atomic_store(&failure->error, 0);
	pthread_mutex_unlock(&failure->lock);
}
