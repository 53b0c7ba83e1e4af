/* SPDX-License-Identifier: BSD-3-Clause */
/* Inputs that are wrong or damaged: each is refused with its place and reason. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/xml_edit.h"
#include "topo/tree/xml.h"
#include "util/error.h"

/* -- Texts ------------------------------------------------------------------------ */

#define BOMB                                                                       \
	"<!DOCTYPE s [<!ENTITY a 'aaaaaaaaaa'><!ENTITY b '&a;&a;&a;&a;&a;&a;&a;'>" \
	"<!ENTITY c '&b;&b;&b;&b;&b;&b;&b;&b;'>]>\n<system version='1'>&c;</system>"
#define TEXT(text, reason)                     \
	{                                      \
		text, sizeof(text) - 1, reason \
	}

static const struct {
	const char *text;
	size_t nbytes;
	const char *reason; /* from the start */
} texts[] = {
	TEXT("", "t.xml:1:1: empty"),
	TEXT(" \n ", "t.xml:2:2: no element found"),
	TEXT("hello", "t.xml:1:1: syntax error"),
	TEXT("\n\n  { \"a\": 1 }", "t.xml:3:3: not well-formed (invalid token)"),
	TEXT("<system>", "t.xml:1:9: no element found; <system> of line 1 is open"),
	TEXT("<system>\n<cpu>\n</system>", "t.xml:3:3: mismatched tag; <cpu> of line 2 is open"),
	TEXT("<system/>\n<system/>", "t.xml:2:1: junk after document element"),
	TEXT("<system/>x", "t.xml:1:10: junk after document element"),
	TEXT("<system a='1' b='2' a='3'/>", "t.xml:1:21: duplicate attribute"),
	TEXT("<system a=1/>", "t.xml:1:11: not well-formed"),
	TEXT("<system a/>", "t.xml:1:10: not well-formed"),
	TEXT("<system a='<'/>", "t.xml:1:12: not well-formed"),
	TEXT("<system a='&b;'/>", "t.xml:1:1: undefined entity"),
	TEXT("<system a='&#0;'/>", "t.xml:1:12: reference to invalid character number"),
	TEXT("<system a='&#x1f;'/>", "t.xml:1:12: reference to invalid character number"),
	TEXT("<system>\n  \t&amp;</system>", "t.xml:2:4: text inside <system>"),
	TEXT("<system>\n  word</system>", "t.xml:2:3: text inside <system>"),
	TEXT("<system><![CDATA[ x]]></system>", "t.xml:1:"),
	TEXT("<system><!-- </system>", "t.xml:1:"),
	TEXT("<a><?php echo 1 ?></a>", "t.xml:1:4: <?php?>: processing instructions are not read: "
				       "remove it"),
	TEXT("<!DOCTYPE system>\n<system/>",
	     "t.xml:1:17: <!DOCTYPE system> is not read: remove it"),
	TEXT("<!DOCTYPE s SYSTEM 'file:///etc/passwd'><s/>", "t.xml:1:40: <!DOCTYPE s>"),
	TEXT(BOMB, "t.xml:1:13: <!DOCTYPE s> is not read: remove it"),
	TEXT("<?xml version='1.0' encoding='ISO-8859-1'?><a/>",
	     "t.xml:1:1: encoding \"ISO-8859-1\": save it as UTF-8"),
	TEXT("<?xml version='1.0' encoding='UTF-16'?><a/>", "t.xml:1:1: encoding \"UTF-16\""),
	TEXT("\xff\xfe<\0a\0/\0>\0", "t.xml:1:1: encoded as UTF-16: save it as UTF-8"),
	TEXT("\xfe\xff\0<\0a\0/\0>", "t.xml:1:1: encoded as UTF-16"),
	TEXT("<\0a\0/\0>\0", "t.xml:1:2: a NUL byte"),
	TEXT("<a>\n<b\0/></a>", "t.xml:2:3: a NUL byte"),
	TEXT("<a b='\xe4'/>", "t.xml:1:7: not well-formed"),
	TEXT("<a b='\xed\xa0\x80'/>", "t.xml:1:7: not well-formed"),
	TEXT("<a b='\xc0\x80'/>", "t.xml:1:7: not well-formed"),
	TEXT("<a b='\x01'/>", "t.xml:1:7: not well-formed"),
	TEXT("<a b='\xe2\x82", "t.xml:1:"),
};

static void texts_are_refused_with_place_and_reason(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		/* A copy of just that size, for the sanitizer. */
		char *text = malloc(texts[i].nbytes + 1);
		struct tti_xml_doc *doc = NULL;

		assert_non_null(text);
		memcpy(text, texts[i].text, texts[i].nbytes);
		if (tti_xml_read(text, texts[i].nbytes, "t.xml", &doc) != TUTTI_EINVAL ||
		    strncmp(tti_error_text(), texts[i].reason, strlen(texts[i].reason)) != 0)
			fail_msg("%s\nwanted %s\ngot %s", texts[i].text, texts[i].reason,
				 tti_error_text());
		assert_null(doc);
		free(text);
	}
}

static void what_is_only_unusual_is_read(void **state)
{
	static const char *const good[] = {
		"\xef\xbb\xbf<a/>",
		"<?xml version='1.0' encoding='us-ascii' standalone='yes'?><a/>",
		"<a><![CDATA[ \n]]></a>",
		"<a>&#32;&#10;</a>",
		"<a><!-- -- --></a>",
		"<a:b xmlns:a='x' a:c='\xc3\xa4'/>",
		"<a\r\n b='1'\r/>\r\n",
		"<\xc3\xa4 \xe4\xb8\xad='\xf0\x9f\x98\x80'/>",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		struct tti_xml_doc *doc = NULL;

		if (tti_xml_read(good[i], strlen(good[i]), "t.xml", &doc) != TUTTI_OK)
			fail_msg("%s", tti_error_text());
		tti_xml_free(doc);
	}
}

/* -- Files ------------------------------------------------------------------------ */

static char dir[] = "/tmp/tutti-xml-XXXXXX";

static int make_dir(void **state)
{
	(void)state;
	return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
	(void)state;
	return rmdir(dir);
}

static const char *in_dir(const char *name)
{
	static char path[200];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static void put(const char *path, const char *text, size_t nbytes)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_int_equal(fwrite(text, 1, nbytes, file), nbytes);
	assert_int_equal(fclose(file), 0);
}

static void expect_refused(const char *path, const char *reason)
{
	struct tti_xml_doc *doc = NULL;

	assert_int_equal(tti_xml_read_file(path, &doc), TUTTI_EINVAL);
	assert_null(doc);
	if (!strstr(tti_error_text(), path) || !strstr(tti_error_text(), reason))
		fail_msg("%s: %s: %s", path, reason, tti_error_text());
}

static void what_is_no_file_is_refused(void **state)
{
	const char *path = in_dir("x.xml");

	(void)state;
	expect_refused(path, "No such file or directory");
	expect_refused(dir, "is a directory, not a file");
	expect_refused("/dev/zero", "is a device, not a file");
	assert_int_equal(mkfifo(path, 0600), 0);
	expect_refused(path, "is a pipe, not a file");
	unlink(path);
	put(path, "", 0);
	expect_refused(path, ":1:1: empty");
	assert_int_equal(chmod(path, 0), 0);
	if (geteuid() == 0) {
		assert_int_equal(chmod(dir, 0711), 0);
		assert_int_equal(seteuid(65534), 0);
		expect_refused(path, "Permission denied");
		assert_int_equal(seteuid(0), 0);
	} else {
		expect_refused(path, "Permission denied");
	}
	unlink(path);
	/* A hole larger than is read. */
	put(path, "", 0);
	assert_int_equal(truncate(path, (off_t)TTI_XML_BYTES + 1), 0);
	expect_refused(path, ":1:1: larger than 64 MiB");
	unlink(path);
}

/* What people take for a topology: what it is, and what to do. */
static void what_is_another_file_is_named(void **state)
{
	static const struct {
		const char *text, *what, *remedy;
		size_t nbytes; /* 0: of the text */
	} others[] = {
		{ "<?xml version='1.0'?>\n<!DOCTYPE topology SYSTEM 'hwloc2.dtd'>\n<topology/>",
		  "an export of hwloc", "tutti topo gather", 0 },
		{ "<!-- x --><topology version='2.0'><indexes>0 1</indexes></topology>",
		  "an export of hwloc", "tutti topo gather", 0 },
		{ "\n<!DOCTYPE html>\n<html><p>404</html>", "an HTML page", "download", 0 },
		{ "<HTML lang='en'>", "an HTML page", "download", 0 },
		{ "\x1f\x8b\x08\0\0\0", "packed with gzip", "gunzip", 6 },
		{ "BZh91AY", "packed with bzip2", "bunzip2", 0 },
		{ "\xfd"
		  "7zXZ\0",
		  "packed with xz", "unxz", 6 },
		{ "\x28\xb5\x2f\xfd", "packed with zstd", "unzstd", 0 },
		{ "PK\x03\x04", "packed with zip", "unzip", 0 },
		{ " {\"system\": 1}", ":1:1: JSON", "begins with <system>", 0 },
		{ "\xef\xbb\xbf[1]", ":1:1: JSON", "begins with <system>", 0 },
		{ "---\nsystem:\n  cpu: 1\n", "text without markup", "begins with <system>", 0 },
	};
	const char *path = in_dir("other.xml");
	char tar[512] = "sys/devices";

	(void)state;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		put(path, others[i].text,
		    others[i].nbytes ? others[i].nbytes : strlen(others[i].text));
		expect_refused(path, others[i].what);
		expect_refused(path, others[i].remedy);
	}
	memcpy(tar + 257, "ustar", 5);
	put(path, tar, sizeof(tar));
	expect_refused(path, "a tar archive");
	put(path, tar, strlen(tar));
	expect_refused(path, "text without markup");
	unlink(path);
}

static char *slurp(const char *path, size_t *nbytes)
{
	FILE *file = fopen(path, "r");
	char *text = malloc(1 << 20);

	assert_non_null(file);
	assert_non_null(text);
	*nbytes = fread(text, 1, 1 << 20, file);
	fclose(file);
	return text;
}

static void a_truncated_file_is_refused_wherever_it_ends(void **state)
{
	size_t nbytes, end;
	char *text = slurp(TEST_DATA "/topologies/raw/azhpc-images__ndv4-topo.xml", &nbytes);
	struct tti_xml_doc *doc = NULL;

	(void)state;
	for (end = nbytes; end > 0 && text[end - 1] != '>'; end--)
		;
	for (size_t n = 0; n < end; n++) {
		char *head = malloc(n + 1);

		assert_non_null(head);
		memcpy(head, text, n);
		assert_int_equal(tti_xml_read(head, n, "t.xml", &doc), TUTTI_EINVAL);
		assert_int_equal(strncmp(tti_error_text(), "t.xml:", 6), 0);
		free(head);
	}
	assert_int_equal(tti_xml_read(text, end, "t.xml", &doc), TUTTI_OK);
	tti_xml_free(doc);
	free(text);
}

static void a_file_is_replaced_as_a_whole(void **state)
{
	struct tti_xml_doc *doc, *again;
	const char *path = in_dir("out.xml");
	char link[256], text[100];
	struct stat info;
	size_t n;
	char *have;

	(void)state;
	assert_int_equal(tti_xml_create("t", &doc), TUTTI_OK);
	put(path, "old", 3);
	snprintf(link, sizeof(link), "%s.link", path);
	assert_int_equal(symlink(path, link), 0);
	assert_int_equal(tti_xml_write_file(doc, link), TUTTI_OK);
	assert_int_equal(lstat(link, &info), 0);
	assert_true(S_ISLNK(info.st_mode));
	have = slurp(path, &n);
	snprintf(text, sizeof(text), "%.*s", (int)n, have);
	assert_string_equal(text, "<system version=\"1\"/>\n");
	free(have);
	assert_int_equal(tti_xml_read_file(path, &again), TUTTI_OK);
	assert_true(xml_same(doc->root, again->root));
	tti_xml_free(again);
	unlink(link);
	unlink(path); /* and nothing else is left in the directory: remove_dir() */

	assert_int_equal(tti_xml_write_file(doc, dir), TUTTI_EINVAL);
	assert_non_null(strstr(tti_error_text(), "is not a regular file"));
	assert_int_equal(tti_xml_write_file(doc, "/dev/null"), TUTTI_EINVAL);
	assert_int_equal(tti_xml_write_file(doc, in_dir("no/such/place.xml")), TUTTI_ESYS);
	assert_non_null(strstr(tti_error_text(), "no/such/place.xml"));
	assert_non_null(strstr(tti_error_text(), "No such file or directory"));
	tti_xml_free(doc);
}

static void a_full_disk_leaves_the_old_file(void **state)
{
	const char *path = in_dir("out.xml");
	struct rlimit old, small = { 4, 4 };
	struct tti_xml_doc *doc;
	tutti_status st;
	size_t n;
	char *have;

	(void)state;
	assert_int_equal(tti_xml_create("t", &doc), TUTTI_OK);
	put(path, "old", 3);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	small.rlim_max = old.rlim_max;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	st = tti_xml_write_file(doc, path);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_int_equal(st, TUTTI_ESYS);
	assert_non_null(strstr(tti_error_text(), "File too large"));
	have = slurp(path, &n);
	assert_int_equal(n, 3);
	free(have);
	unlink(path);
	tti_xml_free(doc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts_are_refused_with_place_and_reason),
		cmocka_unit_test(what_is_only_unusual_is_read),
		cmocka_unit_test(what_is_no_file_is_refused),
		cmocka_unit_test(what_is_another_file_is_named),
		cmocka_unit_test(a_truncated_file_is_refused_wherever_it_ends),
		cmocka_unit_test(a_file_is_replaced_as_a_whole),
		cmocka_unit_test(a_full_disk_leaves_the_old_file),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
