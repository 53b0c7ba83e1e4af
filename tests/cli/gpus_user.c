/* SPDX-License-Identifier: BSD-3-Clause */
/* A program that uses CUDA and NCCL if something has loaded them: prints how many devices there are, and
 * what an all-reduce of one rank on each of them gives on the first (gpus.sh). */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#define MOST 8

typedef int (*count_fn)(int *);
typedef int (*set_fn)(int);
typedef int (*alloc_fn)(void **, size_t);
typedef int (*copy_fn)(void *, const void *, size_t, int);
typedef int (*init_fn)(void **, int, const int *);
typedef int (*group_fn)(void);
typedef int (*all_reduce_fn)(const void *, void *, size_t, int, int, void *, void *);
typedef int (*void_fn)(void);
typedef int (*pointer_fn)(void *);

static void *find(const char *name)
{
	void *symbol = dlsym(RTLD_DEFAULT, name);

	if (!symbol) {
		printf("no %s\n", name);
		exit(3);
	}
	return symbol;
}

static void call(const char *name, int result)
{
	if (result == 0)
		return;
	printf("%s gave %d\n", name, result);
	exit(4);
}

#define CALL(type, name, ...) call(#name, ((type)find(#name))(__VA_ARGS__))

int main(void)
{
	void *comms[MOST], *memory[MOST];
	int n = 0, value;

	CALL(count_fn, cudaGetDeviceCount, &n);
	if (n < 1 || n > MOST)
		return 5;
	CALL(init_fn, ncclCommInitAll, comms, n, NULL);
	for (int i = 0; i < n; i++) {
		value = i + 1;
		CALL(set_fn, cudaSetDevice, i);
		CALL(alloc_fn, cudaMalloc, &memory[i], sizeof(value));
		CALL(copy_fn, cudaMemcpy, memory[i], &value, sizeof(value), 4);
	}
	CALL(group_fn, ncclGroupStart);
	for (int i = 0; i < n; i++)
		CALL(all_reduce_fn, ncclAllReduce, memory[i], memory[i], 1, 2, 0, comms[i], NULL);
	CALL(group_fn, ncclGroupEnd);
	for (int i = 0; i < n; i++) {
		CALL(set_fn, cudaSetDevice, i);
		CALL(void_fn, cudaDeviceSynchronize);
	}
	CALL(copy_fn, cudaMemcpy, &value, memory[0], sizeof(value), 4);
	for (int i = 0; i < n; i++) {
		CALL(pointer_fn, ncclCommDestroy, comms[i]);
		CALL(pointer_fn, cudaFree, memory[i]);
	}
	printf("%d devices, sum %d\n", n, value);
	return 0;
}
