/* SPDX-License-Identifier: BSD-3-Clause */
/* More than 2^31 elements in one call: buffers are a few MiB of a file, mapped again and again,
 * so what is moved is much and what is held is little. The period is no divisor of 2^32: a
 * count or place that lost its upper bits would leave other bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/sanitizer.h"
#include "support/world.h"

#define PERIOD ((size_t)4095 * 4096)
#define COUNT  (((size_t)1 << 31) + 12345)

/* `nbytes` of memory that repeat every PERIOD; NULL: the system has none. */
static unsigned char *repeating(size_t nbytes)
{
	const size_t rounds = (nbytes + PERIOD - 1) / PERIOD;
	const int fd = memfd_create("repeating", 0);
	char *base = mmap(NULL, rounds * PERIOD, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (fd < 0 || base == MAP_FAILED || ftruncate(fd, (off_t)PERIOD) != 0)
		return NULL;
	for (size_t i = 0; i < rounds; i++)
		if (mmap(base + i * PERIOD, PERIOD, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
			 fd, 0) == MAP_FAILED)
			return NULL;
	close(fd);
	return (unsigned char *)base;
}

static void forget(unsigned char *memory, size_t nbytes)
{
	munmap(memory, (nbytes + PERIOD - 1) / PERIOD * PERIOD);
}

static unsigned char byte_at(size_t i)
{
	return (unsigned char)(i % PERIOD * 7 / 5 + i % PERIOD / 251);
}

/* Rank 0 has it all and sends it to rank 1, both ways of a call looked at by themselves. */
static void many_elements(tutti_comm_t comm, int rank, int n, void *arg)
{
	const size_t sends[2] = { 0, rank == 0 ? COUNT : 0 }, displs[2] = { 0, 0 };
	const size_t recvs[2] = { rank == 1 ? COUNT : 0, 0 };
	unsigned char *data = repeating(COUNT);

	(void)n;
	(void)arg;
	if (!CHECK(data != NULL))
		return;
	for (size_t i = 0; i < PERIOD && rank == 0; i++)
		data[i] = byte_at(i);
	CHECK_OK(tutti_all_to_all_v(data, sends, displs, data, recvs, displs, TUTTI_UINT8, comm,
				    NULL));
	for (size_t i = 0; i < PERIOD; i++)
		if (!CHECK(data[i] == byte_at(i)))
			break;
	if (rank == 1)
		memset(data, 0, PERIOD);
	CHECK_OK(tutti_barrier(comm, NULL));
	CHECK_OK(tutti_broadcast(data, data, COUNT, TUTTI_UINT8, 0, comm, NULL));
	for (size_t i = 0; i < PERIOD; i++)
		if (!CHECK(data[i] == byte_at(i)))
			break;
	forget(data, COUNT);
}

static void more_than_32_bits_count(void **state)
{
	const struct world world = { .n = 2, .transport = "shm" };

	(void)state;
	if (TTI_SANITIZED)
		skip();
	assert_int_equal(world_run(&world, many_elements, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(more_than_32_bits_count) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
