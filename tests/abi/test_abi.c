/* SPDX-License-Identifier: BSD-3-Clause */
/* What compiled programs rely on and so may not change within one soname: sizes,
 * offsets and values of the public headers. And sizes inside the library that are
 * paid once per pair of ranks, so that growth is a decision. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "transport/transport.h"
#include "tutti/inspect.h"
#include "tutti/tutti.h"

/* A field may be added at the end of tutti_config, never moved. */
_Static_assert(sizeof(tutti_unique_id) == 128, "ABI");
_Static_assert(offsetof(tutti_config, size) == 0, "ABI");
_Static_assert(offsetof(tutti_config, blocking) == 8, "ABI");
_Static_assert(offsetof(tutti_config, name) == 16, "ABI");
_Static_assert(offsetof(tutti_config, transport) == 24, "ABI");
_Static_assert(offsetof(tutti_config, algo) == 32, "ABI");
_Static_assert(offsetof(tutti_config, timeout_ms) == 40, "ABI");
_Static_assert(offsetof(tutti_config, reproducible) == 44, "ABI");
_Static_assert(offsetof(tutti_config, encrypt) == 48, "ABI");
_Static_assert(offsetof(tutti_config, traffic_class) == 52, "ABI");
_Static_assert(offsetof(tutti_config, boot_timeout_ms) == 56, "ABI");
_Static_assert(offsetof(tutti_config, device) == 64, "ABI");
_Static_assert(sizeof(tutti_config) >= 72, "ABI");
_Static_assert(offsetof(tutti_stream_ops, push) == 8, "ABI");
_Static_assert(offsetof(tutti_stream_ops, release) == 16, "ABI");
_Static_assert(offsetof(tutti_stream_ops, cuda) == 24, "ABI");
_Static_assert(offsetof(tutti_memory_use, device_bytes) == 8, "ABI");
_Static_assert(offsetof(tutti_memory_use, pinned_bytes) == 16, "ABI");
_Static_assert(sizeof(tutti_memory_use) >= 24, "ABI");
_Static_assert(offsetof(struct tutti_param_info, is_set) == 48, "ABI");
_Static_assert(sizeof(struct tutti_call_report) >= 24, "ABI");

_Static_assert(TUTTI_OK == 0 && TUTTI_AGAIN == 1, "ABI");
_Static_assert(TUTTI_EPEER == -20 && TUTTI_EPEER <= TUTTI_STATUS_LOST, "ABI");
_Static_assert(TUTTI_EPLAN == -25, "ABI");
_Static_assert(TUTTI_INT8 == 0 && TUTTI_FLOAT32 == 7 && TUTTI_FLOAT8_E5M2 == 11, "ABI");
_Static_assert(TUTTI_INT16 == 12 && TUTTI_BOOL == 14 && TUTTI_COMPLEX128 == 16, "ABI");
_Static_assert(TUTTI_SUM == 0 && TUTTI_AVG == 4, "ABI");
_Static_assert(TUTTI_BAND == 5 && TUTTI_BXOR == 7 && TUTTI_LXOR == 10, "ABI");
_Static_assert(sizeof(tutti_op) == sizeof(int) && TUTTI_OP_REPRODUCIBLE == 1024, "ABI");
_Static_assert(TUTTI_HANDOFF == 7 && TUTTI_ALL_TO_ALL == 8 && TUTTI_REDUCE_SCATTER_V == 15, "ABI");
_Static_assert(TUTTI_SCALAR_NOW == 0 && TUTTI_SCALAR_AT_CALL == 1, "ABI");

/* Per pair of ranks. */
_Static_assert(sizeof(struct tti_link) <= 24, "a link's common part grew");

/* The maps of the headers have no gaps and no doubles: arrays are made from them. */
static void maps_are_dense(void **state)
{
	int n = 0;

	(void)state;
#define X(name, value, bytes, text)                               \
	assert_int_equal(value, n);                               \
	assert_int_equal(tutti_type_size(TUTTI_##name), bytes);   \
	assert_string_equal(tutti_type_name(TUTTI_##name), text); \
	n++;
	TUTTI_TYPE_MAP(X)
#undef X
	assert_int_equal(n, TUTTI_TYPE_COUNT);
	n = 0;
#define X(name, value, text)                                    \
	assert_int_equal(value, n);                             \
	assert_string_equal(tutti_op_name(TUTTI_##name), text); \
	n++;
	TUTTI_OP_MAP(X)
#undef X
	assert_int_equal(n, TUTTI_OP_COUNT);
	n = 0;
#define X(name, value, text)                                            \
	assert_int_equal(value, n);                                     \
	assert_string_equal(tutti_collective_name(TUTTI_##name), text); \
	n++;
	TUTTI_COLLECTIVE_MAP(X)
#undef X
	assert_int_equal(n, TUTTI_COLLECTIVE_COUNT);
}

static void every_status_has_its_text(void **state)
{
	(void)state;
#define X(name, value, text)                                                  \
	assert_string_equal(tutti_status_name(TUTTI_##name), "TUTTI_" #name); \
	assert_string_equal(tutti_status_string(TUTTI_##name), text);
	TUTTI_STATUS_MAP(X)
#undef X
	/* Never NULL, whatever comes. */
	assert_non_null(tutti_status_name((tutti_status)1234));
	assert_non_null(tutti_status_string((tutti_status)-1234));
}

static void values_out_of_range_are_answered(void **state)
{
	(void)state;
	assert_int_equal(tutti_type_size((tutti_type)99), 0);
	assert_int_equal(tutti_type_size(TUTTI_TYPE_COUNT), 0);
	assert_string_equal(tutti_type_name(TUTTI_TYPE_COUNT), "?");
	assert_string_equal(tutti_op_name(TUTTI_OP_COUNT), "?");
}

static void the_library_is_the_one_of_the_headers(void **state)
{
	(void)state;
	assert_int_equal(tutti_version(), TUTTI_VERSION);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(maps_are_dense),
		cmocka_unit_test(every_status_has_its_text),
		cmocka_unit_test(values_out_of_range_are_answered),
		cmocka_unit_test(the_library_is_the_one_of_the_headers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
