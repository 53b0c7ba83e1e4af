/* SPDX-License-Identifier: BSD-3-Clause */
/* The secret of the user: made once, by whoever is first, and refused where others could read it. */
#include "ranks.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "boot/init/own_secret.h"

#define MAKERS 8

static char folder[] = "/tmp/tutti-own-secret-XXXXXX";
static char path[PATH_MAX];

static int set_up(void **state)
{
	(void)state;
	if (!mkdtemp(folder))
		return 1;
	(void)snprintf(path, sizeof(path), "%s/config/tutti/secret", folder);
	return setenv("HOME", "/nonexistent", 1) | unsetenv("XDG_CONFIG_HOME");
}

static int tear_down(void **state)
{
	(void)state;
	for (char *end = path + strlen(path); end && strlen(path) > strlen(folder);
	     end = strrchr(path, '/')) {
		*end = '\0';
		(void)remove(path);
	}
	return access(folder, F_OK) == 0;
}

static void use_folder(void)
{
	char config[PATH_MAX];

	(void)snprintf(config, sizeof(config), "%s/config", folder);
	assert_int_equal(setenv("XDG_CONFIG_HOME", config, 1), 0);
}

static tutti_status make_own(struct rank *rank)
{
	return tti_own_secret_read((struct tti_own_secret *)rank->arg + rank->rank);
}

static void all_who_make_it_at_once_have_the_same(void **state)
{
	static struct tti_own_secret own[MAKERS];
	struct stat file;

	(void)state;
	use_folder();
	ranks_run(MAKERS, make_own, own);
	for (int i = 0; i < MAKERS; i++) {
		assert_int_equal(strlen(own[i].text), 64);
		assert_string_equal(own[i].text, own[0].text);
		assert_string_equal(own[i].path, path);
	}
	assert_int_equal(stat(path, &file), 0);
	assert_int_equal(file.st_mode & 0777, 0600);
	assert_int_equal(file.st_nlink, 1);
	/* Another one is another one. */
	unlink(path);
	CHECK_OK(tti_own_secret_read(&own[1]));
	assert_string_not_equal(own[1].text, own[0].text);
}

static void write_secret(const char *text, mode_t mode)
{
	const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

static void what_others_may_read_or_is_short_is_refused(void **state)
{
	struct tti_own_secret own;

	(void)state;
	use_folder();
	CHECK_OK(tti_own_secret_read(&own));
	write_secret("of somebody's own making\r\nmore\n", 0600);
	CHECK_OK(tti_own_secret_read(&own));
	assert_string_equal(own.text, "of somebody's own making");
	write_secret("of somebody's own making\n", 0640);
	assert_int_equal(tti_own_secret_read(&own), TUTTI_EUSAGE);
	assert_non_null(strstr(tti_error_text(), "mode 640"));
	write_secret("fifteen letters\n", 0600);
	assert_int_equal(tti_own_secret_read(&own), TUTTI_EUSAGE);
	assert_non_null(strstr(tti_error_text(), "15 bytes"));
	write_secret("", 0600);
	assert_int_equal(tti_own_secret_read(&own), TUTTI_EUSAGE);
	unlink(path);
}

static void where_there_is_no_folder_it_is_said(void **state)
{
	struct tti_own_secret own;

	(void)state;
	setenv("XDG_CONFIG_HOME", "relative", 1);
	assert_int_equal(tti_own_secret_read(&own), TUTTI_EUSAGE);
	assert_non_null(strstr(tti_error_text(), "/nonexistent/.config/tutti/secret"));
	unsetenv("HOME");
	assert_int_equal(tti_own_secret_read(&own), TUTTI_EUSAGE);
	assert_non_null(strstr(tti_error_text(), "TUTTI_COMM_SECRET"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_who_make_it_at_once_have_the_same),
		cmocka_unit_test(what_others_may_read_or_is_short_is_refused),
		cmocka_unit_test(where_there_is_no_folder_it_is_said),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
