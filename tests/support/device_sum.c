/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/device_sum.h"

#include <stdlib.h>

#include "coll/program.h"
#include "util/error.h"

static void must(tutti_status st)
{
	if (st == TUTTI_OK)
		return;
	fprintf(stderr, "%s\n", tti_error_text());
	abort();
}

static void compile(const struct device_sum *sum, int rank, struct tti_compiled *out)
{
	const struct tti_algorithm *algo = tti_algorithm_find(TUTTI_ALL_REDUCE, sum->algorithm);
	const struct tti_program_spec spec = { .rank = rank, .n = sum->bed.config.n };
	struct tti_program prog;

	if (!algo)
		abort();
	must(tti_program_build(algo, &spec, &prog));
	must(tti_compile(&prog, out));
	tti_program_release(&prog);
}

/* What rank 0 has at an element; the next one has 1000 more. */
static float first(size_t i)
{
	return (float)(i % 1021);
}

static void fill(struct device_sum *sum, int rank)
{
	float *input, *output;

	sum->input[rank] = device_alloc(&sum->bed, sum->count * sizeof(float));
	sum->output[rank] = device_alloc(&sum->bed, sum->count * sizeof(float));
	input = device_view(&sum->bed, sum->input[rank]);
	output = device_view(&sum->bed, sum->output[rank]);
	for (size_t i = 0; i < sum->count; i++) {
		input[i] = first(i) + 1000 * (float)rank;
		output[i] = -1;
	}
}

static void make_call(struct device_sum *sum, int rank)
{
	struct device_work work = {
		.prog = &sum->prog[rank],
		.type = TUTTI_FLOAT32,
		.op = TUTTI_SUM,
		.slice_bytes = sum->slice * sizeof(float),
		.tag = 0x1234,
	};
	const size_t nchunks = (size_t)sum->prog[rank].nchunks;

	work.layout = (struct tti_layout){
		.input = (const void *)(uintptr_t)sum->input[rank],
		.output = (void *)(uintptr_t)sum->output[rank],
		.type_size = sizeof(float),
		.parts = (int)nchunks,
		.chunk_count = (sum->count + nchunks - 1) / nchunks,
		.row_count = sum->count,
	};
	device_call_make(&sum->bed, rank, &work, &sum->call[rank]);
}

void device_sum_init(struct device_sum *sum, const struct device_config *config,
		     const char *algorithm, size_t count, size_t slice)
{
	struct device_config with = *config;

	*sum = (struct device_sum){ .algorithm = algorithm, .count = count, .slice = slice };
	with.slot_bytes = device_slot_bytes(slice * sizeof(float), sizeof(float), with.nblocks);
	device_bed_init(&sum->bed, &with);
	for (int rank = 0; rank < config->n; rank++) {
		compile(sum, rank, &sum->prog[rank]);
		fill(sum, rank);
		make_call(sum, rank);
	}
}

size_t device_sum_wrong(const struct device_sum *sum)
{
	const int n = sum->bed.config.n;
	size_t wrong = 0;

	for (int rank = 0; rank < n; rank++) {
		const float *output = device_view(&sum->bed, sum->output[rank]);

		for (size_t i = 0; i < sum->count; i++)
			wrong += output[i] != (float)n * first(i) + 1000 * (float)(n * (n - 1) / 2);
	}
	return wrong;
}

void device_sum_release(struct device_sum *sum)
{
	for (int rank = 0; rank < sum->bed.config.n; rank++)
		tti_compiled_release(&sum->prog[rank]);
	device_bed_release(&sum->bed);
}
