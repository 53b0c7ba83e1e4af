/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks.h for Tutti's own interface. */
#include "ranks.h"

#include <stdlib.h>

#include "tutti/inspect.h"
#include "tutti/tutti.h"

#define CHECK(call) check((call), #call, __LINE__)

static void check(tutti_status status, const char *call, int line)
{
	if (status != TUTTI_OK)
		give_up("%s:%d: %s: %s: %s\n", __FILE__, line, call, tutti_status_string(status),
			tutti_last_error(NULL));
}

/* What the ranks share. */
struct family {
	tutti_unique_id id;
	tutti_comm_t comms[RANKS_MOST];
};

struct member {
	tutti_comm_t comm;
	tutti_stream_t stream; /* over the rank's */
	tutti_reg_t regs[2];
};

static void open_job(struct ranks *job)
{
	static struct family family;

	CHECK(tutti_get_unique_id(&family.id));
	job->library = &family;
}

/* All at once where they have one device, else each by itself. */
static tutti_comm_t init_comm(struct rank *rank)
{
	struct family *family = rank->job->library;
	tutti_config config = TUTTI_CONFIG_INIT;

	config.device = rank->device;
	if (rank->job->ndevices > 1) {
		CHECK(tutti_comm_init_rank_config(&family->comms[rank->number], rank->job->n,
						  family->id, rank->number, &config));
		return family->comms[rank->number];
	}
	if (rank->number == 0)
		CHECK(tutti_comm_init_all(family->comms, rank->job->n, &config));
	(void)pthread_barrier_wait(&rank->job->all);
	return family->comms[rank->number];
}

static void init(struct rank *rank)
{
	struct member *member = calloc(1, sizeof(*member));
	tutti_stream_ops ops = TUTTI_STREAM_OPS_INIT;

	if (!member)
		give_up("out of memory\n");
	member->comm = init_comm(rank);
	ops.cuda = 1;
	CHECK(tutti_stream_wrap(&member->stream, &ops, rank->stream));
	rank->library = member;
}

static void all_reduce(struct rank *rank, size_t nbytes)
{
	const struct member *member = rank->library;

	CHECK(tutti_all_reduce(rank->input, rank->output, nbytes / sizeof(float), TUTTI_FLOAT32,
			       TUTTI_SUM, member->comm, member->stream));
}

static void allocate(struct rank *rank, void **out, size_t nbytes)
{
	(void)rank;
	CUDA(Malloc(out, nbytes));
}

static void release(struct rank *rank, void *memory, size_t nbytes)
{
	(void)rank;
	(void)nbytes;
	CUDA(Free(memory));
}

static void enroll(struct rank *rank)
{
	struct member *member = rank->library;
	void *const memory[] = { rank->input, rank->output };

	for (int i = 0; i < 2; i++)
		CHECK(tutti_register(member->comm, memory[i], rank->job->most, &member->regs[i]));
}

static void expel(struct rank *rank)
{
	struct member *member = rank->library;

	for (int i = 0; i < 2; i++)
		CHECK(tutti_deregister(member->comm, member->regs[i]));
}

static size_t memory(struct rank *rank)
{
	const struct member *member = rank->library;
	tutti_memory_use use = TUTTI_MEMORY_USE_INIT;

	CHECK(tutti_comm_memory(member->comm, &use));
	return use.device_bytes;
}

static void destroy(struct rank *rank)
{
	struct member *member = rank->library;

	CHECK(tutti_stream_destroy(member->stream));
	CHECK(tutti_comm_destroy(member->comm));
	free(member);
}

const struct library library = { .name = "tutti",
				 .open = open_job,
				 .init = init,
				 .all_reduce = all_reduce,
				 .allocate = allocate,
				 .release = release,
				 .enroll = enroll,
				 .expel = expel,
				 .memory = memory,
				 .destroy = destroy };
