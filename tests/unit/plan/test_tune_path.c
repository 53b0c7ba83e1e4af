/* SPDX-License-Identifier: BSD-3-Clause */
/* What was measured is used on the machine and by the version that it is of, and nowhere
 * else, and that is said. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "insight/tune/tune_write.h"
#include "plan/tune/tune.h"
#include "plan/tune/tune_path.h"
#include "util/error.h"
#include "util/file.h"
#include "util/mem.h"
#include "util/strbuf.h"

static char folder[] = "/tmp/tutti_tune_XXXXXX";
static char log_path[64];

/* With these head lines: NULL: none such. */
static void keep(const char *version, const char *machine)
{
	struct tti_strbuf text = { 0 };

	if (version)
		tti_strbuf_addf(&text, "version %s\n", version);
	if (machine)
		tti_strbuf_addf(&text, "machine %s\n", machine);
	tti_strbuf_add(&text, "constant line_us 0.375\n");
	assert_int_equal(tti_tune_keep(NULL, text.text, text.len), TUTTI_OK);
	tti_strbuf_release(&text);
}

static void is_used(void)
{
	struct tti_tune_used used;

	assert_int_equal(tti_tune_read_used(&used), TUTTI_OK);
	assert_null(used.named);
	assert_non_null(used.measured);
	assert_true(used.measured->constants.line_us == 0.375);
	tti_tune_table_free(used.measured);
}

/* And the log says so. */
static void is_ignored(const char *says)
{
	struct tti_tune_used used;
	char *log;
	size_t nbytes;

	if (truncate(log_path, 0) != 0)
		assert_int_equal(access(log_path, F_OK), -1);
	assert_int_equal(tti_tune_read_used(&used), TUTTI_OK);
	assert_null(used.named);
	assert_null(used.measured);
	assert_string_equal(tti_error_text(), "");
	if (!says)
		return;
	assert_int_equal(tti_file_read(log_path, "log", 1 << 20, &log, &nbytes), TUTTI_OK);
	if (!strstr(log, says))
		fail_msg("\"%s\" does not say \"%s\"", log, says);
	tti_free(log);
}

static void only_here_and_by_this(void **state)
{
	char machine[TTI_TUNE_MACHINE_BYTES], version[32], other[200];

	(void)state;
	tti_tune_this_machine(machine, sizeof(machine));
	tti_tune_this_version(version, sizeof(version));
	is_ignored(NULL);
	keep(version, machine);
	is_used();
	keep("0.0.1", machine);
	is_ignored("its version is \"0.0.1\", not \"");
	(void)snprintf(other, sizeof(other), "%s-rt", machine);
	keep(version, other);
	is_ignored("its machine is \"");
	/* What says nothing is of nothing. */
	keep(NULL, machine);
	is_ignored("its version is \"\"");
	keep(version, NULL);
	is_ignored("its machine is \"\"");
	keep(version, machine);
	is_used();
}

static void what_is_no_file_is_ignored(void **state)
{
	(void)state;
	assert_int_equal(tti_tune_keep(NULL, "konstant", 8), TUTTI_OK);
	is_ignored("is ignored: delete it");
}

static void one_may_be_kept_elsewhere(void **state)
{
	char path[64];
	struct tti_tune_table *table = NULL;

	(void)state;
	(void)snprintf(path, sizeof(path), "%s/mine", folder);
	assert_int_equal(tti_tune_keep(path, "constant line_us 3\n", 19), TUTTI_OK);
	assert_int_equal(tti_tune_read_file(path, &table), TUTTI_OK);
	assert_true(table->constants.line_us == 3);
	tti_tune_table_free(table);
	(void)snprintf(path, sizeof(path), "%s/no/such/mine", folder);
	assert_int_equal(tti_tune_keep(path, "", 0), TUTTI_ESYS);
}

static void without_a_folder(void **state)
{
	struct tti_strbuf place = { 0 };

	(void)state;
	assert_int_equal(setenv("XDG_CACHE_HOME", "relative", 1), 0);
	assert_int_equal(setenv("HOME", "/somewhere", 1), 0);
	assert_int_equal(tti_tune_path(&place), TUTTI_OK);
	assert_memory_equal(place.text, "/somewhere/.cache/tutti/tune-", 29);
	tti_strbuf_release(&place);
	assert_int_equal(unsetenv("HOME"), 0);
	assert_int_equal(tti_tune_path(&place), TUTTI_EINVAL);
	assert_non_null(strstr(tti_error_text(), "XDG_CACHE_HOME"));
	tti_strbuf_release(&place);
	tti_error_set(NULL);
	is_ignored(NULL);
}

/* What is cut, be it by a NUL, is written as it is read, so that it can be compared. */
static void a_long_head_is_cut_once(void **state)
{
	char line[300] = "machine a ";

	(void)state;
	for (int i = 0; i < 4; i++) {
		struct tti_strbuf text = { 0 }, again = { 0 };
		struct tti_tune_table *table = NULL, *copy = NULL;

		memset(line + 10, 'b', 140);
		memset(line + 150, ' ', 50);
		memset(line + 200, 'c', 50);
		if (i)
			line[7 + 50 * i] = '\0';
		assert_int_equal(tti_tune_read(line, 250, "long", &table), TUTTI_OK);
		assert_true(strlen(table->machine) > 40);
		tti_tune_write(table, &text);
		assert_int_equal(tti_tune_read(text.text, text.len, "copy", &copy), TUTTI_OK);
		tti_tune_write(copy, &again);
		assert_string_equal(copy->machine, table->machine);
		assert_string_equal(again.text, text.text);
		tti_tune_table_free(table);
		tti_tune_table_free(copy);
		tti_strbuf_release(&text);
		tti_strbuf_release(&again);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_here_and_by_this),
		cmocka_unit_test(what_is_no_file_is_ignored),
		cmocka_unit_test(one_may_be_kept_elsewhere),
		cmocka_unit_test(without_a_folder),
		cmocka_unit_test(a_long_head_is_cut_once),
	};
	char command[96];
	int code;

	if (!mkdtemp(folder))
		return 1;
	(void)snprintf(log_path, sizeof(log_path), "%s/log", folder);
	(void)snprintf(command, sizeof(command), "rm -rf %s", folder);
	setenv("XDG_CACHE_HOME", folder, 1);
	setenv("TUTTI_DEBUG", "INFO", 1);
	setenv("TUTTI_DEBUG_FILE", log_path, 1);
	unsetenv("TUTTI_TUNE_FILE");
	code = cmocka_run_group_tests(tests, NULL, NULL);
	return system(command) == 0 ? code : 1;
}
