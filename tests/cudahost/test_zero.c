/* SPDX-License-Identifier: BSD-3-Clause */
/* Zeros in memory of devices, which takes no memory of the machine for what was never written. */
#include "engine/view.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NBYTES = 6 << 20, ROUNDS = 300, LONGEST = 2 << 20 };

static unsigned char model[NBYTES], found[NBYTES];

struct memory {
	int fd;
	char *at;
};

static struct memory make(void)
{
	struct memory memory = { .fd = memfd_create("zero", MFD_CLOEXEC) };

	assert_true(memory.fd >= 0);
	assert_int_equal(ftruncate(memory.fd, NBYTES), 0);
	memory.at = mmap(NULL, NBYTES, PROT_READ | PROT_WRITE, MAP_SHARED, memory.fd, 0);
	assert_ptr_not_equal(memory.at, MAP_FAILED);
	/* A byte is to take one page, of the least size. */
	(void)madvise(memory.at, NBYTES, MADV_NOHUGEPAGE);
	return memory;
}

static void drop(struct memory *memory)
{
	munmap(memory->at, NBYTES);
	close(memory->fd);
}

/* Bytes of the machine. */
static size_t taken(const struct memory *memory)
{
	struct stat is;

	assert_int_equal(fstat(memory->fd, &is), 0);
	return (size_t)is.st_blocks * 512;
}

static void what_was_never_written_takes_no_memory(void **state)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct memory memory = make();

	(void)state;
	tti_cuda_view_zero(memory.at, NBYTES);
	assert_int_equal(taken(&memory), 0);
	/* Of one that is not at a page, the ends are written. */
	tti_cuda_view_zero(memory.at + 1, NBYTES - 2);
	assert_int_equal(taken(&memory), 2 * page);
	/* Pages that are there stay there. */
	memory.at[NBYTES / 2] = 1;
	tti_cuda_view_zero(memory.at, NBYTES);
	assert_in_range(taken(&memory), 0, 3 * page);
	assert_int_equal(memory.at[NBYTES / 2], 0);
	drop(&memory);
}

static size_t draw(size_t most)
{
	return (size_t)random() % most;
}

/* Writes and zeros at random places, some of which begin or end at pages. */
static void each_byte_is_what_was_written_last(void **state)
{
	struct memory memory = make();

	(void)state;
	srandom(20);
	memset(model, 0, NBYTES);
	for (int round = 0; round < ROUNDS; round++) {
		const size_t unit = round % 3 ? 1 : 4096;
		const size_t at = draw(NBYTES / unit) * unit;
		const size_t left = NBYTES - at, most = left < LONGEST ? left : LONGEST;
		const size_t nbytes = draw(round % 2 ? most : 20000) / unit * unit;

		if (round % 2) {
			memset(model + at, 0, nbytes);
			tti_cuda_view_zero(memory.at + at, nbytes);
		} else if (nbytes <= left) {
			memset(model + at, round | 1, nbytes);
			memset(memory.at + at, round | 1, nbytes);
		}
		/* Reading it there would take memory. */
		assert_int_equal(pread(memory.fd, found, NBYTES, 0), NBYTES);
		assert_int_equal(memcmp(found, model, NBYTES), 0);
	}
	drop(&memory);
}

/* No hole can be made in it. */
static void memory_of_no_file_is_written(void **state)
{
	char *const at =
		mmap(NULL, NBYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	assert_ptr_not_equal(at, MAP_FAILED);
	memset(at, 7, NBYTES / 2);
	memset(model, 0, NBYTES);
	tti_cuda_view_zero(at, NBYTES);
	assert_int_equal(memcmp(at, model, NBYTES), 0);
	munmap(at, NBYTES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_never_written_takes_no_memory),
		cmocka_unit_test(each_byte_is_what_was_written_last),
		cmocka_unit_test(memory_of_no_file_is_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
