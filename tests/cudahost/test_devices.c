/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cudahost/jobs.h"
#include "engine/facts.h"
#include "engine/internal.h"

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TSAN 1
#endif
#endif
#ifdef __SANITIZE_THREAD__
#define TSAN 1
#endif
#ifndef TSAN
#define TSAN 0
#endif

static void a_device_that_is_not_there_is_an_error(void **state)
{
	(void)state;
	assert_int_equal(tti_cuda_device_count(), 2);
	assert_error(TTI_CUDA_EDEVICE, tti_cuda_device_set(2));
	assert_text("no device 2");
	assert_error(TTI_CUDA_EDEVICE, tti_cuda_device_set(-1));
	assert_error(TTI_CUDA_EDEVICE, tti_cuda_device_synchronize(2));
	assert_int_equal(tti_cuda_device_current(), 0);
}

static void a_child_of_fork_gets_an_error_and_does_not_hang(void **state)
{
	struct tti_cuda_stream *stream = make_stream(0), *made = NULL;
	struct tti_cuda_event *event = make_event(0);
	struct gate gate = GATE;
	struct tti_cuda_point point;
	int status = 0, error = 0;
	pid_t pid;

	(void)state;
	if (TSAN)
		skip(); /* it ends children of processes with threads */
	push_gate(stream, &gate);
	point = tti_cuda_stream_point(stream);
	pid = fork();
	if (pid == 0) {
		bool good = tti_cuda_stream_synchronize(stream) == TTI_CUDA_EINIT;

		good = good && strstr(tti_cuda_error_text(), "fork()");
		good = good && tti_cuda_stream_query(stream) == TTI_CUDA_EINIT;
		good = good && tti_cuda_device_synchronize(0) == TTI_CUDA_EINIT;
		good = good && tti_cuda_device_set(0) == TTI_CUDA_EINIT;
		good = good && tti_cuda_stream_create(0, 0, &made) == TTI_CUDA_EINIT;
		good = good && !tti_cuda_stream_get(NULL, false, &error);
		good = good && error == TTI_CUDA_EINIT;
		good = good && tti_cuda_event_synchronize(event) == TTI_CUDA_EINIT;
		good = good && tti_cuda_event_record(event, stream) == TTI_CUDA_EINIT;
		good = good && tti_cuda_stream_destroy(stream) == TTI_CUDA_EINIT;
		tti_cuda_point_wait(&point);
		_exit(good ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	gate_open(&gate);
	assert_ok(tti_cuda_stream_synchronize(stream));
	tti_cuda_point_release(&point);
	assert_ok(tti_cuda_stream_destroy(stream));
	assert_ok(tti_cuda_event_destroy(event));
}

/* What this program says in an environment: devices, bytes and text. */
static void ask(const char *environment, char *out, size_t nbytes)
{
	char self[512] = "", command[1024];
	FILE *child;
	size_t got;

	assert_true(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
	snprintf(command, sizeof(command), "%s '%s' ask 2>&1", environment, self);
	child = popen(command, "r");
	assert_non_null(child);
	got = fread(out, 1, nbytes - 1, child);
	out[got] = '\0';
	assert_int_equal(pclose(child), 0);
}

static int answer(void)
{
	const int count = tti_cuda_device_count();

	printf("%d devices of %zu bytes, set %d\n", count, tti_cuda_device_bytes(),
	       tti_cuda_device_set(0));
	for (int device = 0; device < count && tti_cuda_setting("TUTTI_CUDAHOST_PCI"); device++) {
		char text[TTI_CUDA_PCI_BYTES];
		int numbers[3], back = -1;

		tti_cuda_facts_pci(device, text);
		tti_cuda_facts_by_pci(text, &back);
		tti_cuda_facts_attribute(50, device, &numbers[0]);
		tti_cuda_facts_attribute(33, device, &numbers[1]);
		tti_cuda_facts_attribute(34, device, &numbers[2]);
		printf("%d: %s, %d %d %d\n", back, text, numbers[0], numbers[1], numbers[2]);
	}
	return tti_cuda_device_count() == count ? 0 : 1;
}

static void the_environment_says_how_many_devices_and_bytes_there_are(void **state)
{
	char text[2048];

	(void)state;
	ask("TUTTI_CUDAHOST_GPUS= TUTTI_CUDAHOST_MEMORY=3M", text, sizeof(text));
	assert_string_equal(text, "1 devices of 3145728 bytes, set 0\n");
	ask("TUTTI_CUDAHOST_GPUS=64 TUTTI_CUDAHOST_MEMORY=2g", text, sizeof(text));
	assert_string_equal(text, "64 devices of 2147483648 bytes, set 0\n");
	ask("TUTTI_CUDAHOST_GPUS=0 TUTTI_CUDAHOST_MEMORY=1048576", text, sizeof(text));
	assert_string_equal(text, "0 devices of 1048576 bytes, set 100\n");
}

static void the_environment_says_where_devices_are(void **state)
{
	char text[2048];

	(void)state;
	ask("TUTTI_CUDAHOST_GPUS=3 TUTTI_CUDAHOST_MEMORY=1M TUTTI_CUDAHOST_PCI=0a:1f.7,1234:C0:00,"
	    "00000002:01:03.0",
	    text, sizeof(text));
	assert_string_equal(text, "3 devices of 1048576 bytes, set 0\n"
				  "0: 0000:0a:1f.7, 0 10 31\n"
				  "1: 1234:c0:00.0, 4660 192 0\n"
				  "2: 0002:01:03.0, 2 1 3\n");
}

static void as_many_devices_as_ranks_that_a_launcher_started_here(void **state)
{
	static const struct {
		const char *environment;
		int ndevices;
	} cases[] = {
		{ "LOCAL_WORLD_SIZE=4", 4 },
		{ "OMPI_COMM_WORLD_LOCAL_SIZE=3", 3 },
		{ "MPI_LOCALNRANKS=2", 2 },
		{ "MPI_LOCALNRANKS=1000", TTI_CUDA_DEVICES_MOST },
		{ "LOCAL_WORLD_SIZE=none", 1 },
		{ "LOCAL_WORLD_SIZE=0", 1 },
		{ "SLURM_STEP_TASKS_PER_NODE='4(x2),3' SLURM_NODEID=0", 4 },
		{ "SLURM_STEP_TASKS_PER_NODE='4(x2),3' SLURM_NODEID=1", 4 },
		{ "SLURM_STEP_TASKS_PER_NODE='4(x2),3' SLURM_NODEID=2", 3 },
		{ "SLURM_STEP_TASKS_PER_NODE='4(x2),3' SLURM_NODEID=3", 1 },
		{ "SLURM_STEP_TASKS_PER_NODE='4(x,,' SLURM_NODEID=1", 1 },
		{ "SLURM_STEP_TASKS_PER_NODE=5 SLURM_NODEID=0", 5 },
		{ "SLURM_STEP_TASKS_PER_NODE=5", 1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char with[256], text[2048], want[32];

		/* What is asked for goes first. */
		snprintf(with, sizeof(with), "TUTTI_CUDAHOST_GPUS= %s", cases[i].environment);
		snprintf(want, sizeof(want), "%d devices ", cases[i].ndevices);
		ask(with, text, sizeof(text));
		if (!strstr(text, want))
			fail_msg("%s: %s", with, text);
		snprintf(with, sizeof(with), "TUTTI_CUDAHOST_GPUS=6 %s", cases[i].environment);
		ask(with, text, sizeof(text));
		assert_non_null(strstr(text, "6 devices "));
	}
}

static void a_bad_variable_is_said_once_and_there_is_no_device(void **state)
{
	static const char *const bad[] = {
		"TUTTI_CUDAHOST_GPUS=65", "TUTTI_CUDAHOST_GPUS=-1", "TUTTI_CUDAHOST_GPUS=two",
		"TUTTI_CUDAHOST_GPUS=2x", "TUTTI_CUDAHOST_MEMORY=1K", "TUTTI_CUDAHOST_MEMORY=-5M",
		"TUTTI_CUDAHOST_MEMORY=3MB", "TUTTI_CUDAHOST_MEMORY=2000T",
		/* Of one device, and of two. */
		"TUTTI_CUDAHOST_PCI=here", "TUTTI_CUDAHOST_PCI=10000:01:00.0",
		"TUTTI_CUDAHOST_PCI=01:00.0,02:00.0", "TUTTI_CUDAHOST_PCI=,",
		"TUTTI_CUDAHOST_GPUS=2 TUTTI_CUDAHOST_PCI=01:00.0",
		"TUTTI_CUDAHOST_GPUS=2 TUTTI_CUDAHOST_PCI=01:00.0,0:1:0"
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		char with[256], text[2048];
		const char *at;
		const char *variable = strrchr(bad[i], ' ') ? strrchr(bad[i], ' ') + 1 : bad[i];

		snprintf(with, sizeof(with), "TUTTI_CUDAHOST_GPUS= %s", bad[i]);
		ask(with, text, sizeof(text));
		at = strstr(text, variable);
		assert_non_null(at);
		assert_null(strstr(at + 1, variable));
		assert_non_null(strstr(text, "unset it"));
		assert_non_null(strstr(text, "0 devices"));
		assert_non_null(strstr(text, "set 100"));
	}
}

static void errors_are_logged_where_that_is_asked_for(void **state)
{
	char text[2048];

	(void)state;
	ask("TUTTI_DEBUG=INFO TUTTI_CUDAHOST_GPUS=0", text, sizeof(text));
	assert_non_null(strstr(text, "cuda error 100: TUTTI_CUDAHOST_GPUS=0"));
	ask("TUTTI_DEBUG=WARN TUTTI_CUDAHOST_GPUS=0", text, sizeof(text));
	assert_null(strstr(text, "cuda error"));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_teardown(name, all_is_done)
		TEST(a_device_that_is_not_there_is_an_error),
		TEST(a_child_of_fork_gets_an_error_and_does_not_hang),
		TEST(the_environment_says_how_many_devices_and_bytes_there_are),
		TEST(the_environment_says_where_devices_are),
		TEST(as_many_devices_as_ranks_that_a_launcher_started_here),
		TEST(a_bad_variable_is_said_once_and_there_is_no_device),
		TEST(errors_are_logged_where_that_is_asked_for),
#undef TEST
	};

	if (argc > 1 && !strcmp(argv[1], "ask"))
		return answer();
	setenv("TUTTI_CUDAHOST_GPUS", "2", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
