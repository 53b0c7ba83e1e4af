/* SPDX-License-Identifier: BSD-3-Clause */
/* Data-parallel training: while the gradient of one part of the model is averaged over all
 * ranks, that of the next part is computed. The gradients lie in memory that all ranks of the
 * host address, so each byte is moved once. The calls are the same in every step, so they are
 * persistent calls. They run on a stream, beside the computation.
 *
 * The model is one linear layer. The labels of each rank are wrong by an amount that is zero on
 * average over the ranks: only together do they find the true weights.
 *
 * Run:    tutti run -n 4 ./08_overlap
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <tutti/tutti.h>

#define INPUTS   16
#define OUTPUTS  16384
#define PARTS    4
#define PER_PART (OUTPUTS / PARTS * INPUTS) /* weights: 256 KiB */
#define STEPS    15

static float weights[OUTPUTS * INPUTS], largest[OUTPUTS * INPUTS];
static float x[INPUTS][INPUTS], labels[OUTPUTS][INPUTS]; /* of INPUTS samples */

static void check(tutti_status status, const char *what)
{
	if (status != TUTTI_OK) {
		fprintf(stderr, "%s: %s\n", what, tutti_last_error(NULL));
		exit(1);
	}
}

static float true_weight(int i)
{
	return (float)(i * 7 % 11) / 11;
}

/* Samples are rows of a Hadamard matrix, so that all directions are learnt equally fast. */
static void make_data(float wrong_by)
{
	for (int s = 0; s < INPUTS; s++)
		for (int i = 0; i < INPUTS; i++)
			x[s][i] = s ? x[s & (s - 1)][i] * (i & s & -s ? -1 : 1) : 1;
	for (int i = 0; i < OUTPUTS * INPUTS; i++)
		for (int s = 0; s < INPUTS; s++)
			labels[i / INPUTS][s] += (true_weight(i) + wrong_by) * x[s][i % INPUTS];
}

/* The gradient of one part of the weights. */
static void backward(int part, float *gradient)
{
	const int first = part * (OUTPUTS / PARTS), end = first + OUTPUTS / PARTS;

	for (int o = first; o < end; o++, gradient += INPUTS) {
		for (int i = 0; i < INPUTS; i++)
			gradient[i] = 0;
		for (int s = 0; s < INPUTS; s++) {
			float error = -labels[o][s];

			for (int i = 0; i < INPUTS; i++)
				error += weights[o * INPUTS + i] * x[s][i];
			for (int i = 0; i < INPUTS; i++)
				gradient[i] += error * x[s][i] / INPUTS;
		}
	}
}

int main(void)
{
	tutti_call call = TUTTI_CALL_INIT;
	tutti_persistent_t average[PARTS];
	int rank, nranks, wrong = 0;
	tutti_stream_t stream;
	tutti_comm_t comm;
	float *gradient;
	void *memory;

	check(tutti_comm_init_env(&comm, NULL), "tutti_comm_init_env");
	check(tutti_comm_rank(comm, &rank), "tutti_comm_rank");
	check(tutti_comm_count(comm, &nranks), "tutti_comm_count");
	check(tutti_stream_create(&stream), "tutti_stream_create");
	check(tutti_mem_alloc(&memory, sizeof(weights), comm), "tutti_mem_alloc");
	gradient = memory;
	call.op = TUTTI_AVG;
	call.count = PER_PART;
	for (int part = 0; part < PARTS; part++) {
		call.send = call.recv = gradient + part * PER_PART;
		check(tutti_persistent_create(&call, comm, &average[part]),
		      "tutti_persistent_create");
	}
	make_data((float)rank - (float)(nranks - 1) / 2);
	for (int step = 0; step < STEPS; step++) {
		for (int part = 0; part < PARTS; part++) {
			backward(part, gradient + part * PER_PART);
			check(tutti_persistent_start(average[part], stream),
			      "tutti_persistent_start");
		}
		/* Most of the calls are done by now. */
		for (int part = 0; part < PARTS; part++) {
			check(tutti_persistent_wait(average[part]), "tutti_persistent_wait");
			for (int i = part * PER_PART; i < (part + 1) * PER_PART; i++)
				weights[i] -= 0.5f * gradient[i];
		}
	}

	/* All ranks must have the same model, bit by bit, and it must be the true one. */
	check(tutti_all_reduce(weights, largest, OUTPUTS * INPUTS, TUTTI_FLOAT32, TUTTI_MAX, comm,
			       NULL),
	      "tutti_all_reduce");
	for (int i = 0; i < OUTPUTS * INPUTS; i++)
		wrong += weights[i] != largest[i] || fabsf(weights[i] - true_weight(i)) > 1e-3f;
	printf("rank %d of %d: %d weights, %d wrong\n", rank, nranks, OUTPUTS * INPUTS, wrong);
	for (int part = 0; part < PARTS; part++)
		check(tutti_persistent_destroy(average[part]), "tutti_persistent_destroy");
	check(tutti_mem_free(memory, comm), "tutti_mem_free");
	check(tutti_stream_destroy(stream), "tutti_stream_destroy");
	check(tutti_comm_destroy(comm), "tutti_comm_destroy");
	return wrong != 0;
}
