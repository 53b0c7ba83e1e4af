/* SPDX-License-Identifier: BSD-3-Clause */
/* GB/s, read and written together, of the reduction kernels: by instruction set,
 * type, number of sources and size of a slice, the fastest of a few rounds, with
 * memcpy() and tti_copy() beside them.
 *
 *     bench_reduce [type [op]]      e.g. bench_reduce int8 max */

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reduce/reduce.h"
#include "util/clock.h"

#define MOST_SOURCES 8
#define ROUNDS       3
#define ROUND_NS     INT64_C(12000000)

static const size_t slices[] = { 64 << 10, 16 << 20 };
static const int counts_of_sources[] = { 2, 4, 8 };

struct arena {
	unsigned char *dst;
	const void *src[MOST_SOURCES];
};

struct job {
	tti_reduce_fn fn; /* NULL: a copy */
	int copy_hint;    /* < 0: memcpy() */
	int nsrc;
	size_t nbytes, size;
};

static void run_once(const struct job *job, const struct arena *mem)
{
	if (job->fn)
		job->fn(mem->dst, NULL, mem->src, job->nsrc, job->nbytes / job->size, 0);
	else if (job->copy_hint >= 0)
		tti_copy(mem->dst, mem->src[0], job->nbytes, job->copy_hint);
	else
		memcpy(mem->dst, mem->src[0], job->nbytes);
	/* What was written counts as read: no call may be left out. */
	__asm__ __volatile__("" ::"r"(mem->dst) : "memory");
}

static double measure(const struct job *job, const struct arena *mem)
{
	const double moved = (double)job->nbytes * (job->nsrc + 1);
	double best = 0;

	run_once(job, mem);
	for (int round = 0; round < ROUNDS; round++) {
		const int64_t start = tti_now_ns();
		int64_t took;
		int times = 0;

		do {
			run_once(job, mem);
			times++;
			took = tti_now_ns() - start;
		} while (took < ROUND_NS);
		if (moved * times / (double)took > best)
			best = moved * times / (double)took;
	}
	return best;
}

static void print_head(void)
{
	printf("%-20s", "GB/s");
	for (size_t i = 0; i < sizeof(slices) / sizeof(slices[0]); i++)
		for (size_t k = 0; k < sizeof(counts_of_sources) / sizeof(int); k++)
			printf("  %4zuK x%d", slices[i] >> 10, counts_of_sources[k]);
	printf("\n");
}

static void print_kernel(tutti_type type, tutti_op op, enum tti_isa isa, const struct arena *mem)
{
	const tti_reduce_fn fn = tti_reduce_get_isa(type, op, isa);

	if (!fn)
		return;
	printf("%-12s%-8s", tutti_type_name(type), tti_isa_name(isa));
	for (size_t i = 0; i < sizeof(slices) / sizeof(slices[0]); i++)
		for (size_t k = 0; k < sizeof(counts_of_sources) / sizeof(int); k++) {
			const struct job job = { fn, 0, counts_of_sources[k], slices[i],
						 tutti_type_size(type) };

			printf("  %8.1f", measure(&job, mem));
			fflush(stdout);
		}
	printf("\n");
}

static void print_copies(const struct arena *mem)
{
	static const char *const names[] = { "memcpy", "copy", "copy, large" };

	for (int hint = -1; hint <= 1; hint++) {
		printf("%-20s", names[hint + 1]);
		for (size_t i = 0; i < sizeof(slices) / sizeof(slices[0]); i++) {
			const struct job job = { NULL, hint, 1, slices[i], 1 };

			printf("  %8.1f%20s", measure(&job, mem), "");
		}
		printf("\n");
	}
}

static bool arena_init(struct arena *mem, size_t nbytes)
{
	for (int i = -1; i < MOST_SOURCES; i++) {
		unsigned char *part = aligned_alloc(4096, nbytes);

		if (!part)
			return false;
		/* Ones in every format: no NaN, no denormal, no overflow. */
		memset(part, 0x3c, nbytes);
		if (i < 0)
			mem->dst = part;
		else
			mem->src[i] = part;
	}
	return true;
}

static int find(const char *text, int count, const char *(*name)(int))
{
	for (int i = 0; i < count; i++)
		if (strcmp(text, name(i)) == 0)
			return i;
	return -1;
}

static const char *type_name(int type)
{
	return tutti_type_name((tutti_type)type);
}

static const char *op_name(int op)
{
	return tutti_op_name((tutti_op)op);
}

int main(int argc, char **argv)
{
	static const tutti_type usual[] = { TUTTI_FLOAT32, TUTTI_FLOAT64, TUTTI_BFLOAT16,
					    TUTTI_FLOAT16, TUTTI_INT8 };
	const int type = argc > 1 ? find(argv[1], TUTTI_TYPE_COUNT, type_name) : 0;
	const int op = argc > 2 ? find(argv[2], TUTTI_OP_COUNT, op_name) : TUTTI_SUM;
	static struct arena mem;

	if (type < 0 || op < 0 || argc > 3) {
		fprintf(stderr, "usage: bench_reduce [type [op]]\n");
		return 2;
	}
	if (!arena_init(&mem, slices[sizeof(slices) / sizeof(slices[0]) - 1])) {
		fprintf(stderr, "bench_reduce: out of memory\n");
		return 1;
	}
	print_head();
	print_copies(&mem);
	for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++) {
		if (argc > 1 && i > 0)
			break;
		for (int isa = 0; isa < TTI_ISA_COUNT; isa++)
			print_kernel(argc > 1 ? (tutti_type)type : usual[i], (tutti_op)op,
				     (enum tti_isa)isa, &mem);
	}
	free(mem.dst);
	for (int i = 0; i < MOST_SOURCES; i++)
		free((void *)(uintptr_t)mem.src[i]);
	return 0;
}
