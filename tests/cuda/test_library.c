/* SPDX-License-Identifier: BSD-3-Clause */
/* What the driver is handed of a file of kernels, with a driver that only takes it down. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/cuda_impl.h"
#include "gpu/cuda_kernel.h"
#include "util/error.h"
#include "util/mem.h"

enum { PARTS = 3, MAGIC = 4, HEADER = 16, BODY = 40, BYTES = PARTS * (HEADER + BODY) };

/* The first byte of a body is the name of the one kernel that is in it. */
static char taken[16];
static int ntaken, nloaded, refuses_at;

static int load(void **out, const void *image, void *jit, void **jit_values, unsigned njit,
		void *options, void **values, unsigned noptions)
{
	const char *const bytes = image;

	(void)jit, (void)jit_values, (void)njit, (void)options, (void)values, (void)noptions;
	if (ntaken == refuses_at)
		return TTI_CUDA_NO_BINARY_FOR_GPU;
	taken[ntaken] = bytes[0] == 'T' ? 'T' : bytes[HEADER];
	*out = &taken[ntaken++];
	nloaded++;
	return TTI_CUDA_SUCCESS;
}

static int unload(void *library)
{
	(void)library;
	nloaded--;
	return TTI_CUDA_SUCCESS;
}

static int kernel(void **out, void *library, const char *name)
{
	if (*(const char *)library != name[0])
		return TTI_CUDA_NOT_FOUND;
	*out = library;
	return TTI_CUDA_SUCCESS;
}

static int name_of_error(int rc, const char **out)
{
	(void)rc;
	*out = "CUDA_ERROR";
	return TTI_CUDA_SUCCESS;
}

static struct tti_gpu_driver driver = {
	.call = {
		.library_load = load,
		.library_unload = unload,
		.library_kernel = kernel,
		.error_name = name_of_error,
		.error_text = name_of_error,
	},
};

/* Fatbins with the kernels a, b and c; of its own memory, so that a read behind it is found. */
static char *fatbins(size_t nbytes)
{
	char *const image = tti_zalloc(nbytes);

	assert_non_null(image);
	for (size_t i = 0; i < nbytes; i++) {
		static const unsigned char header[HEADER] = { 0x50, 0xed, 0x55, 0xba, 1,
							      0,    16,   0,    BODY };
		const size_t at = i % (HEADER + BODY);

		if (at < HEADER)
			image[i] = (char)header[at];
		else if (at == HEADER)
			image[i] = (char)('a' + i / (HEADER + BODY));
	}
	return image;
}

static int begin(void **state)
{
	(void)state;
	memset(taken, 0, sizeof(taken));
	ntaken = 0;
	refuses_at = -1;
	return 0;
}

static void each_fatbin_is_loaded_and_searched(void **state)
{
	char *const image = fatbins(BYTES);
	struct tti_gpu_library *library;
	void *found;

	(void)state;
	assert_int_equal(tti_gpu_library_load(&driver, image, BYTES, "here", &library), TUTTI_OK);
	tti_free(image);
	assert_string_equal(taken, "abc");
	for (int i = 0; i < PARTS; i++) {
		assert_int_equal(tti_gpu_kernel(library, (char[]){ (char)('a' + i), 0 }, &found),
				 TUTTI_OK);
		assert_ptr_equal(found, &taken[i]);
	}
	assert_int_equal(tti_gpu_kernel(library, "d", &found), TUTTI_EUNSUPPORTED);
	assert_non_null(strstr(tti_error_text(), "here has no kernel d"));
	tti_gpu_library_unload(library);
	assert_int_equal(nloaded, 0);
}

static void other_images_are_loaded_whole(void **state)
{
	struct tti_gpu_library *library;
	void *found;

	(void)state;
	assert_int_equal(tti_gpu_library_load(&driver, "TEXT", 5, "here", &library), TUTTI_OK);
	assert_string_equal(taken, "T");
	assert_int_equal(tti_gpu_kernel(library, "T", &found), TUTTI_OK);
	tti_gpu_library_unload(library);
	assert_int_equal(nloaded, 0);
}

static void refused(char *image, size_t nbytes, const char *text)
{
	struct tti_gpu_library *library = (void *)&driver;

	ntaken = 0;
	assert_int_equal(tti_gpu_library_load(&driver, image, nbytes, "here", &library),
			 TUTTI_EUNSUPPORTED);
	assert_null(library);
	assert_non_null(strstr(tti_error_text(), text));
	assert_int_equal(nloaded, 0);
	tti_free(image);
}

/* At each of its bytes but between two fatbins. */
static void a_file_that_is_cut_short_is_refused(void **state)
{
	(void)state;
	for (size_t nbytes = MAGIC; nbytes < BYTES; nbytes++) {
		const size_t rest = nbytes % (HEADER + BODY);

		if (rest)
			refused(fatbins(nbytes), nbytes,
				rest < MAGIC ? "behind its kernels" : "here is cut short");
	}
}

static void lengths_that_cannot_be_are_refused(void **state)
{
	char *image;

	(void)state;
	for (size_t at = 6; at < HEADER; at++) {
		image = fatbins(BYTES);
		image[at] = (char)0xff;
		refused(image, BYTES, "here is cut short");
	}
	image = fatbins(BYTES);
	image[6] = HEADER - 1;
	refused(image, BYTES, "here is cut short");
}

static void what_was_loaded_before_a_refusal_is_unloaded(void **state)
{
	(void)state;
	for (refuses_at = 0; refuses_at < PARTS; refuses_at++) {
		refused(fatbins(BYTES), BYTES, "loading kernels of here: cuLibraryLoadData");
		assert_int_equal(ntaken, refuses_at);
	}
}

static void too_many_fatbins_are_refused(void **state)
{
	const size_t nbytes = (size_t)9 * (HEADER + BODY);

	(void)state;
	refused(fatbins(nbytes), nbytes, "more than 8 fatbins");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(each_fatbin_is_loaded_and_searched, begin),
		cmocka_unit_test_setup(other_images_are_loaded_whole, begin),
		cmocka_unit_test_setup(a_file_that_is_cut_short_is_refused, begin),
		cmocka_unit_test_setup(lengths_that_cannot_be_are_refused, begin),
		cmocka_unit_test_setup(what_was_loaded_before_a_refusal_is_unloaded, begin),
		cmocka_unit_test_setup(too_many_fatbins_are_refused, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
