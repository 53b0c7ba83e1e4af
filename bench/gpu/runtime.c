/* SPDX-License-Identifier: BSD-3-Clause */
#include "runtime.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

struct cuda cuda;

void give_up(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	(void)vfprintf(stderr, fmt, args);
	va_end(args);
	(void)fflush(NULL);
	_exit(1);
}

void cuda_check(int error, const char *call, const char *file, int line)
{
	if (error)
		give_up("%s:%d: cuda%s: %s\n", file, line, call, cuda.GetErrorString(error));
}

static void *find(void *library, const char *name)
{
	void *symbol = dlsym(library, name);

	if (!symbol)
		give_up("libcudart.so.13 has no %s()\n", name);
	return symbol;
}

void cuda_open(void)
{
	void *library = dlopen("libcudart.so.13", RTLD_NOW | RTLD_GLOBAL);

	if (!library)
		give_up("%s\n", dlerror());
#define F(name, arguments) cuda.name = (int(*) arguments)find(library, "cuda" #name);
	CUDA_FUNCTION_MAP(F)
#undef F
	cuda.GetErrorString = (const char *(*)(int))find(library, "cudaGetErrorString");
}

void report(const char *section, const char *what, double figure, const char *unit)
{
	printf("%s | %s | %.6g | %s\n", section, what, figure, unit);
	(void)fflush(stdout);
}

double now_us(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static int compare(const void *a, const void *b)
{
	const double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

double median(double *values, int n)
{
	qsort(values, (size_t)n, sizeof(*values), compare);
	return values[n / 2];
}

struct size_name size_name(size_t nbytes)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB" };
	struct size_name name;
	int unit = 0;

	for (; nbytes >= 1024 && nbytes % 1024 == 0 && unit < 3; unit++)
		nbytes /= 1024;
	(void)snprintf(name.text, sizeof(name.text), "%zu %s", nbytes, units[unit]);
	return name;
}

double device_us(cudaStream_t stream, int rounds, int calls,
		 void (*work)(void *arg, cudaStream_t stream), void *arg)
{
	double times[32];
	cudaEvent_t from, to;

	CUDA(EventCreate(&from));
	CUDA(EventCreate(&to));
	for (int round = -1; round < rounds; round++) {
		float ms;

		CUDA(EventRecord(from, stream));
		for (int call = 0; call < calls; call++)
			work(arg, stream);
		CUDA(EventRecord(to, stream));
		CUDA(EventSynchronize(to));
		CUDA(EventElapsedTime(&ms, from, to));
		if (round >= 0)
			times[round] = (double)ms * 1e3 / calls;
	}
	CUDA(EventDestroy(from));
	CUDA(EventDestroy(to));
	return median(times, rounds);
}

double host_us(int rounds, void (*work)(void *arg), void *arg)
{
	double times[512];

	for (int round = -3; round < rounds; round++) {
		const double from = now_us();

		work(arg);
		if (round >= 0)
			times[round] = now_us() - from;
	}
	return median(times, rounds);
}
