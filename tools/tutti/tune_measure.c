/* SPDX-License-Identifier: BSD-3-Clause */
/* tutti tune: the phases, and a tune file of what they found. */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tune.h"

#define PHASES       6
/* How many times more, in processes of its own, a choice must be better. */
#define CONFIRMED    3
#define MOST_BYTES   ((size_t)16 << 20)
#define MOST_TCP     ((size_t)2 << 20)
#define MOST_CROWDED ((size_t)256 << 10)
/* More ranks than that tell nothing new. */
#define MOST_RANKS   64
#define MOST_SHARING 16

/* -- Phases ------------------------------------------------------------------------- */

static int count_cores(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
}

/* Both buffers of all ranks, ordinary and mapped ones, in a quarter of what is free. */
static size_t fitting(size_t most, int nranks)
{
	const long pages = sysconf(_SC_AVPHYS_PAGES), page = sysconf(_SC_PAGESIZE);
	const double free_bytes = pages > 0 && page > 0 ? (double)pages * (double)page : 0;

	while (most > tune_size(0) && 16.0 * (double)most * nranks > free_bytes)
		most /= 8;
	return most;
}

static struct tune_phase phase_of(int nranks, int cores, bool tcp, size_t most)
{
	const double sharing = nranks > cores ? cores : 0;

	return (struct tune_phase){ .nranks = nranks,
				    .cores = tcp ? sharing / nranks : sharing,
				    .tcp = tcp,
				    .most = fitting(most, nranks),
				    .choices = !tcp && nranks > 1 };
}

/* Each shows constants that others do not: copying, lines between cores, memory that many
 * use, changes of process; sockets, and being woken. */
static int make_phases(const struct tune_measure *m, struct tune_phase *out)
{
	const int cores = count_cores(), many = cores < MOST_RANKS ? cores : MOST_RANKS;
	int n = 0;

	if (!m->check)
		out[n++] = phase_of(1, cores, false, MOST_BYTES);
	if (m->nranks) {
		out[n++] = phase_of(m->nranks, cores, false, MOST_BYTES);
		out[n++] = phase_of(m->nranks, cores, true, MOST_TCP);
		return n;
	}
	out[n++] = phase_of(2, cores, false, MOST_BYTES);
	if (many > 2)
		out[n++] = phase_of(many, cores, false, MOST_BYTES);
	if (2 * cores > 2 && 2 * cores <= MOST_SHARING)
		out[n++] = phase_of(2 * cores, cores, false, MOST_BYTES);
	out[n++] = phase_of(2, cores, true, MOST_TCP);
	if (2 * cores > 2 && 2 * cores <= MOST_SHARING)
		out[n++] = phase_of(2 * cores, cores, true, MOST_CROWDED);
	return n;
}

/* How memory is reached is found out by the first phase with several ranks. The others go by that, as
 * jobs will that have the file. It is one without a name, which ranks inherit. */
static bool set_tune_file(struct tune_job *job)
{
	const size_t len = strlen(job->results->reach);
	char path[64] = "none";

	if (len && job->reach_fd < 0) {
		job->reach_fd = memfd_create("tutti tune", 0);
		if (job->reach_fd < 0 ||
		    write(job->reach_fd, job->results->reach, len) != (ssize_t)len)
			return false;
	}
	if (job->reach_fd >= 0)
		snprintf(path, sizeof(path), "/proc/self/fd/%d", job->reach_fd);
	return setenv("TUTTI_TUNE_FILE", path, 1) == 0;
}

/* Before the library looks at it: what is measured is what is built in, or what is in force. */
static bool set_environment(struct tune_job *job)
{
	static const char *const decide[] = { "TUTTI_ALGO", "TUTTI_ALGO_FILE", "TUTTI_SLICE",
					      "TUTTI_REPRODUCIBLE", "TUTTI_REACH" };
	const struct tune_phase *phase = &job->phases[job->phase];

	for (size_t i = 0; i < sizeof(decide) / sizeof(decide[0]) && !job->check; i++)
		if (unsetenv(decide[i]))
			return false;
	if (!job->check && !set_tune_file(job))
		return false;
	return phase->tcp ? setenv("TUTTI_TRANSPORT", "tcp", 1) == 0
			  : unsetenv("TUTTI_TRANSPORT") == 0;
}

/* *is_rank: this is a process that was started for a rank, which is to end. */
static int run_phase(struct tune_job *job, bool *is_rank)
{
	const struct ranks ranks = {
		.nranks = job->phases[job->phase].nranks,
		.page_bytes = sizeof(struct ranks_page),
		.self = job,
		.main = tune_rank_main,
	};
	const pid_t self = getpid();
	int code;

	if (!set_environment(job))
		return tool_fail("setting the environment of ranks: %s", strerror(errno));
	code = ranks_run(&ranks);
	*is_rank = getpid() != self;
	return code;
}

static bool has_better(const struct tune_job *job, int nranks)
{
	for (int i = 0; i < job->results->nbetters; i++)
		if (job->results->betters[i].nranks == nranks && !job->results->betters[i].dropped)
			return true;
	return false;
}

static int run_phases(struct tune_job *job, bool *is_rank)
{
	int code = TOOL_GOOD;

	for (int round = 0; round <= CONFIRMED; round++) {
		job->confirm = round > 0;
		for (job->phase = 0; job->phase < job->nphases; job->phase++) {
			const struct tune_phase *phase = &job->phases[job->phase];

			if (round && (!phase->choices || !has_better(job, phase->nranks)))
				continue;
			code = run_phase(job, is_rank);
			if (code != TOOL_GOOD || *is_rank)
				return code;
		}
	}
	if (isatty(STDERR_FILENO))
		fputs("\r\033[K", stderr);
	if (job->results->overflow)
		code = tool_fail("more was measured than there is room for");
	return code;
}

/* -- The file ------------------------------------------------------------------------ */

/* Roots that go round make calls of one root overlap, which is no time of a call. */
static bool is_sample(const struct tune_job *job, const struct tune_time *time)
{
	if (coll_is(time->coll, COLL_ROOTED))
		return false;
	return job->phases[time->phase].nranks > 1 ||
	       strcmp(time->algorithm, tutti_algorithm_name(time->coll, 0)) == 0;
}

static int make_samples(const struct tune_job *job, struct tutti_tune_sample *out)
{
	int n = 0;

	for (int i = 0; i < job->results->ntimes; i++) {
		const struct tune_time *time = &job->results->times[i];
		const struct tune_phase *phase = &job->phases[time->phase];
		struct tutti_tune_sample *sample = &out[n];

		if (!is_sample(job, time))
			continue;
		*sample = (struct tutti_tune_sample)TUTTI_TUNE_SAMPLE_INIT;
		sample->collective = time->coll;
		sample->algorithm = time->algorithm;
		sample->nbytes = time->nbytes;
		sample->nranks = phase->nranks;
		sample->nhosts = phase->tcp ? phase->nranks : 1;
		sample->most = sample->least = phase->tcp ? 1 : phase->nranks;
		sample->cores = phase->cores;
		sample->loopback = phase->tcp;
		sample->us = time->quiet_us;
		n++;
	}
	return n;
}

/* Lines "reach" and "choose"; NULL: out of memory, and the error was printed. */
static char *make_choices(const struct tune_job *job)
{
	char *text = NULL;
	size_t size;
	FILE *file = open_memstream(&text, &size);

	if (file)
		fputs(job->results->reach, file);
	for (int i = 0; file && i < job->results->nbetters; i++) {
		const struct tune_better *better = &job->results->betters[i];

		if (better->dropped)
			continue;
		fprintf(file, "choose %s %zu-%zu %s ranks %d%s%s # %.4g us, %s %.4g us\n",
			tutti_collective_name(better->coll), better->range.from, better->range.upto,
			better->better, better->nranks, better->reach ? " reach " : "",
			better->reach ? better->reach : "", better->better_us, better->taken,
			better->taken_us);
	}
	if (!file || fclose(file)) {
		tool_fail("out of memory");
		free(text);
		return NULL;
	}
	return text;
}

static bool print_report(const struct tune_measure *m, const struct tune_results *results,
			 const char *report, const char *choices, const char *path)
{
	json_t *object;

	if (!m->json) {
		printf("%s%s", report, choices);
		if (path)
			printf("written to %s\n", path);
		return true;
	}
	object = json_loads(report, 0, NULL);
	json_object_set_new(object, "choices", json_string(choices));
	json_object_set_new(object, "times", json_integer(results->ntimes));
	json_object_set_new(object, "unsteady", json_integer(results->nunsteady));
	json_object_set_new(object, "path", path ? json_string(path) : json_null());
	return tool_print_json(object);
}

static int write_file(const struct tune_measure *m, const struct tune_results *results,
		      const char *file, const char *report, const char *choices)
{
	/* More is not noise: something else ran. */
	const bool keeps = m->busy || results->nunsteady <= results->ntimes / 10;
	char *path = NULL;
	tutti_status status = TUTTI_OK;
	bool good;

	if (m->path && !strcmp(m->path, "-")) {
		printf("%s", file);
		return TOOL_GOOD;
	}
	if (keeps)
		status = tutti_tune_keep(m->path, file, &path);
	if (status)
		return tool_fail("%s", tool_why(NULL, status));
	good = print_report(m, results, report, choices, path);
	free(path);
	if (keeps)
		return good ? TOOL_GOOD : TOOL_FINDING;
	return tool_fail("%d of %d times changed from round to round, so nothing is kept: measure "
			 "again while nothing else runs, or keep it all the same by --busy",
			 results->nunsteady, results->ntimes);
}

static int make_file(const struct tune_measure *m, const struct tune_job *job)
{
	struct tutti_tune_sample *samples = calloc(TUNE_TIMES, sizeof(*samples));
	char *choices = make_choices(job), *file = NULL, *report = NULL;
	int code = TOOL_FINDING;
	tutti_status status;

	if (samples && choices) {
		status = tutti_tune_fit(samples, make_samples(job, samples), choices, m->json,
					&file, &report);
		code = status ? tool_fail("%s", tool_why(NULL, status))
			      : write_file(m, job->results, file, report, choices);
	} else if (!samples) {
		tool_fail("out of memory");
	}
	free(samples);
	free(choices);
	free(file);
	free(report);
	return code;
}

int tune_measure_run(const struct tune_measure *m)
{
	struct tune_phase phases[PHASES];
	struct tune_job job = { .phases = phases, .check = m->check, .reach_fd = -1 };
	bool is_rank = false;
	int code;

	job.results = mmap(NULL, sizeof(*job.results), PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (job.results == MAP_FAILED)
		return tool_fail("mmap of %zu bytes: %s", sizeof(*job.results), strerror(errno));
	job.nphases = make_phases(m, phases);
	for (int i = 0; i < job.nphases; i++)
		if (m->most && m->most < phases[i].most)
			phases[i].most = m->most;
	code = run_phases(&job, &is_rank);
	if (code == TOOL_GOOD && !is_rank)
		code = m->check ? tune_check_print(&job, m->json) : make_file(m, &job);
	if (job.reach_fd >= 0)
		close(job.reach_fd);
	munmap(job.results, sizeof(*job.results));
	return code;
}
