/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/device_memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "util/vec.h"

/* Room that is used takes pages, and no other. */
#define GUARDED_BYTES ((size_t)1 << 30)
#define GAP           32
#define GAP_BYTE      0x5a
#define ALIGNED       16

struct area {
	char *at; /* where it can be read */
	size_t nbytes;
};

struct device_memory {
	TTI_VEC(struct area) areas;
	uint64_t guarded; /* 0: of the heap */
	char *alias;
	size_t nbytes, used;
};

/* The one that is guarded. */
static struct device_memory *guarded;
/* What guarded memory is made of, and made of again: pages that are new each time cost more than most
 * programs do. 0 bytes: not known yet. */
static struct device_memory source;

static void fail(const char *what)
{
	perror(what);
	abort();
}

static size_t aligned(size_t nbytes)
{
	return (nbytes + ALIGNED - 1) / ALIGNED * ALIGNED;
}

void device_memory_lend(uint64_t at, void *alias, size_t nbytes)
{
	source = (struct device_memory){ .guarded = at, .alias = alias, .nbytes = nbytes };
}

static void map_twice(void)
{
	const int fd = memfd_create("tutti-test-device", MFD_CLOEXEC);
	void *at, *alias;

	if (fd < 0 || ftruncate(fd, (off_t)GUARDED_BYTES) != 0)
		fail("memfd");
	at = mmap(NULL, GUARDED_BYTES, PROT_NONE, MAP_SHARED, fd, 0);
	alias = mmap(NULL, GUARDED_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED || alias == MAP_FAILED)
		fail("mmap");
	close(fd);
	device_memory_lend((uintptr_t)at, alias, GUARDED_BYTES);
}

size_t device_memory_used(const struct device_memory *memory)
{
	return memory->used;
}

struct device_memory *device_memory_create(bool is_guarded)
{
	struct device_memory *memory = calloc(1, sizeof(*memory));

	if (!memory || (is_guarded && guarded))
		abort();
	if (!is_guarded)
		return memory;
	if (source.nbytes == 0)
		map_twice();
	*memory = source;
	memset(memory->alias, GAP_BYTE, GAP);
	memory->used = GAP;
	guarded = memory;
	return memory;
}

void device_memory_free(struct device_memory *memory)
{
	if (!memory)
		return;
	for (size_t i = 0; i < memory->areas.n && !memory->guarded; i++)
		free(memory->areas.at[i].at);
	if (memory->guarded)
		guarded = NULL;
	tti_vec_release(&memory->areas);
	free(memory);
}

uint64_t device_memory_alloc(struct device_memory *memory, size_t nbytes)
{
	struct area area = { .nbytes = nbytes };
	const size_t at = memory->used;

	if (!memory->guarded) {
		area.at = calloc(1, nbytes ? nbytes : 1);
		if (!area.at || !tti_vec_push(&memory->areas, area))
			abort();
		return (uintptr_t)area.at;
	}
	area.at = memory->alias + at;
	memory->used += aligned(nbytes) + GAP;
	if (memory->used > memory->nbytes || !tti_vec_push(&memory->areas, area))
		abort();
	memset(area.at, 0, nbytes);
	/* From the last byte on. */
	memset(area.at + nbytes, GAP_BYTE, memory->used - at - nbytes);
	return memory->guarded + at;
}

bool device_memory_is_clean(const struct device_memory *memory)
{
	const char *end = memory->alias;

	for (size_t i = 0; i <= memory->areas.n && memory->guarded; i++) {
		const struct area last = { memory->alias + memory->used, 0 };
		const struct area *area = i < memory->areas.n ? &memory->areas.at[i] : &last;

		for (; end < area->at; end++)
			if (*end != GAP_BYTE)
				return false;
		end = area->at + area->nbytes;
	}
	return true;
}

void *device_memory_view(uint64_t address)
{
	const uint64_t offset = address - guarded->guarded;

	if (offset >= guarded->used) {
		fprintf(stderr, "%#llx is no address of a GPU\n", (unsigned long long)address);
		abort();
	}
	return guarded->alias + offset;
}
