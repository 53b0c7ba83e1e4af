/* SPDX-License-Identifier: BSD-3-Clause */
/* Libraries of launchers that hang (../../pmi). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <string.h>

#include "boot/pmi/pmi.h"
#include "util/clock.h"
#include "util/error.h"

/* It is found by the name that it has in itself from then on. */
static void *load(const char *path)
{
	void *const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	if (!library)
		fail_msg("%s", dlerror());
	return library;
}

static void a_late_launcher_is_not_asked_again(void **state)
{
	void *const library = load(TEST_LIBRARIES "/libfake_pmi.so");
	int (*ninits)(void);
	tutti_unique_id id;

	(void)state;
	*(void **)&ninits = dlsym(library, "fake_ninits");
	assert_non_null(ninits);
	assert_int_equal(tti_pmi_share_id(tti_pmi_slurm, 0, 2, 100, &id), TUTTI_ETIMEOUT);
	assert_non_null(strstr(tti_error_text(), "has not said in time"));
	assert_int_equal(ninits(), 1);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(tti_pmi_share_id(tti_pmi_slurm, 0, 2, 100, &id), TUTTI_EUSAGE);
		assert_non_null(strstr(tti_error_text(), "start the job again"));
	}
	assert_int_equal(ninits(), 1);
}

static void a_goodbye_has_a_deadline(void **state)
{
	const struct tti_pmi_call call = {
		.key = "k", .value = "v", .nranks = 2, .deadline_ns = tti_deadline(60000)
	};

	(void)state;
	(void)load(TEST_LIBRARIES "/libfake_pmix.so");
	assert_int_equal(tti_pmi_x_slurm(&call), TUTTI_ETIMEOUT);
	assert_non_null(strstr(tti_error_text(), "PMIx_Finalize() has not ended"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_late_launcher_is_not_asked_again),
		cmocka_unit_test(a_goodbye_has_a_deadline),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
