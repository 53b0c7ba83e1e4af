/* SPDX-License-Identifier: BSD-3-Clause */
/* What order the programs of a file keep is found out when it is read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "coll/files/algo_files.h"
#include "util/error.h"

static enum tti_order order_of(const char *text)
{
	struct tti_algo_file *file = NULL;
	enum tti_order order;

	if (tti_algo_file_read(text, strlen(text), "test", &file) != TUTTI_OK)
		fail_msg("%s", tti_error_text());
	order = file->algo.order;
	tti_algo_file_free(file);
	return order;
}

static void orders_are_found(void **state)
{
	(void)state;
	assert_int_equal(order_of("program reduce algorithm star n 3 root 0 chunks 1\n"
				  "rank 0\n recv_reduce chunk 0 from 1\n"
				  " recv_reduce chunk 0 from 2 final\n"
				  "rank 1\n send chunk 0 to 0\n"
				  "rank 2\n send chunk 0 to 0\n"),
			 TTI_ORDER_ONE_PASS);
	assert_int_equal(order_of("program reduce algorithm line n 3 root 2 chunks 1\n"
				  "rank 0\n send chunk 0 to 1\n"
				  "rank 1\n recv_reduce chunk 0 from 0\n send chunk 0 to 2\n"
				  "rank 2\n recv_reduce chunk 0 from 1 final\n"),
			 TTI_ORDER_RANKS);
	assert_int_equal(order_of("program reduce algorithm back n 3 root 0 chunks 1\n"
				  "rank 0\n recv_reduce chunk 0 from 1 final\n"
				  "rank 1\n recv_reduce chunk 0 from 2\n send chunk 0 to 0\n"
				  "rank 2\n send chunk 0 to 1\n"),
			 TTI_ORDER_ANY);
}

static void wrong_ones_are_refused(void **state)
{
	const char *const text = "program reduce algorithm less n 2 root 0 chunks 1\n"
				 "rank 0\n send chunk 0 to 1\n"
				 "rank 1\n recv_reduce chunk 0 from 0 final\n";
	struct tti_algo_file *file = NULL;

	(void)state;
	assert_int_equal(tti_algo_file_read(text, strlen(text), "test", &file), TUTTI_EINVAL);
	assert_non_null(strstr(tti_error_text(), "test: as programs: "));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(orders_are_found),
		cmocka_unit_test(wrong_ones_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
