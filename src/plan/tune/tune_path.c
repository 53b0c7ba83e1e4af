/* SPDX-License-Identifier: BSD-3-Clause */
#include "plan/tune/tune_path.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "plan/tune/tune.h"
#include "topo/detect/detect_cpu.h"
#include "util/error.h"
#include "util/hash.h"
#include "util/log.h"
#include "util/mem.h"
#include "util/params.h"
#include "util/strbuf.h"

#define NONE "none"

/* -- What it is for ---------------------------------------------------------------- */

void tti_tune_this_machine(char *buf, size_t size)
{
	struct tti_cpu_kind kind = { .family = -1, .model = -1 };
	struct utsname system = { .sysname = "", .release = "", .machine = "" };
	struct tti_sysfs root;

	if (tti_sysfs_open("/", &root) == TUTTI_OK) {
		tti_detect_cpu_kind(&root, &kind);
		tti_sysfs_close(&root);
	}
	(void)uname(&system);
	(void)snprintf(buf, size, "%s %" PRId64 ".%" PRId64 ", %ld CPUs, %.20s, %.20s %.60s",
		       kind.vendor[0] ? kind.vendor : "CPU", kind.family, kind.model,
		       sysconf(_SC_NPROCESSORS_ONLN), system.machine, system.sysname,
		       system.release);
}

void tti_tune_this_version(char *buf, size_t size)
{
	(void)snprintf(buf, size, "%d.%d.%d", TUTTI_VERSION / 10000, TUTTI_VERSION / 100 % 100,
		       TUTTI_VERSION % 100);
}

/* -- Where ------------------------------------------------------------------------- */

/* The folder, which need not be there. false: the environment names none. */
static bool find_folder(struct tti_strbuf *out)
{
	const char *cache = tti_env_foreign("XDG_CACHE_HOME"), *home = tti_env_foreign("HOME");

	/* A path that is not absolute is none, says the XDG base directory specification. */
	if (cache && cache[0] == '/')
		tti_strbuf_addf(out, "%s/tutti", cache);
	else if (home && home[0] == '/')
		tti_strbuf_addf(out, "%s/.cache/tutti", home);
	return out->text != NULL;
}

tutti_status tti_tune_path(struct tti_strbuf *out)
{
	char machine[TTI_TUNE_MACHINE_BYTES];

	if (!find_folder(out))
		return tti_fail(TUTTI_EINVAL,
				"neither XDG_CACHE_HOME nor HOME names a folder for what was "
				"measured: set one, or name a file");
	tti_tune_this_machine(machine, sizeof(machine));
	tti_strbuf_addf(out, "/tune-%016" PRIx64, tti_hash_bytes(machine, strlen(machine)));
	return out->failed ? tti_fail(TUTTI_ENOMEM, "place of a tune file: out of memory")
			   : TUTTI_OK;
}

/* -- Which ------------------------------------------------------------------------- */

/* "version" or "machine", in which the file differs from the library; NULL: neither. */
static const char *differing(const struct tti_tune_table *table, const char **is, char *here,
			     size_t size)
{
	*is = table->version;
	tti_tune_this_version(here, size);
	if (strcmp(*is, here) != 0)
		return "version";
	*is = table->machine;
	tti_tune_this_machine(here, size);
	return strcmp(*is, here) != 0 ? "machine" : NULL;
}

/* Ignoring is never silent, and never an error: nobody asked for the file. */
static void read_measured(const char *path, struct tti_tune_table **out)
{
	struct tti_tune_table *table = NULL;
	char here[TTI_TUNE_MACHINE_BYTES];
	const char *is, *what;

	if (tti_tune_read_file(path, &table) != TUTTI_OK) {
		tti_log(TTI_LOG_WARN, TTI_PLAN, "%s is ignored: delete it, or run `tutti tune`",
			path);
		tti_error_set(NULL);
		return;
	}
	what = differing(table, &is, here, sizeof(here));
	if (what) {
		tti_log(TTI_LOG_INFO, TTI_PLAN,
			"tune file %s is ignored: its %s is \"%s\", not \"%s\": `tutti tune` "
			"measures anew",
			path, what, is, here);
		tti_tune_table_free(table);
		return;
	}
	tti_log(TTI_LOG_INFO, TTI_PLAN, "what was measured on this machine: tune file %s", path);
	*out = table;
}

/* Without a folder, and that is how most begin, the machine is not even asked what it is. */
static tutti_status find_measured(struct tti_tune_table **out)
{
	struct tti_strbuf place = { 0 };
	tutti_status st = TUTTI_OK;

	if (!find_folder(&place) || place.failed || access(place.text, F_OK) != 0) {
		tti_strbuf_release(&place);
		return TUTTI_OK;
	}
	tti_strbuf_release(&place);
	st = tti_tune_path(&place);
	if (st == TUTTI_OK && access(place.text, F_OK) == 0)
		read_measured(place.text, out);
	tti_strbuf_release(&place);
	return st;
}

tutti_status tti_tune_read_used(struct tti_tune_used *out)
{
	const char *path = tti_params()->tune_file;

	*out = (struct tti_tune_used){ NULL, NULL };
	if (!path)
		return find_measured(&out->measured);
	return strcmp(path, NONE) == 0 ? TUTTI_OK : tti_tune_read_file(path, &out->named);
}
