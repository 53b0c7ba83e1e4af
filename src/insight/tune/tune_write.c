/* SPDX-License-Identifier: BSD-3-Clause */
#include "insight/tune/tune_write.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "plan/tune/tune_path.h"
#include "util/error.h"
#include "util/file.h"

static void write_size(size_t size, struct tti_strbuf *out)
{
	static const char *const units[] = { "", "K", "M", "G" };
	int unit = 0;

	if (size == SIZE_MAX) {
		tti_strbuf_add(out, "inf");
		return;
	}
	for (; unit < 3 && size && size % 1024 == 0; unit++)
		size /= 1024;
	tti_strbuf_addf(out, "%zu%s", size, units[unit]);
}

static void write_constant(const char *name, double value, const char *what, const char *source,
			   struct tti_strbuf *out)
{
	tti_strbuf_addf(out, "constant %-20s %-10.10g # %s; default from %s\n", name, value, what,
			source);
}

void tti_tune_write(const struct tti_tune_table *table, struct tti_strbuf *out)
{
	if (table->version[0])
		tti_strbuf_addf(out, "version %s\n", table->version);
	if (table->machine[0])
		tti_strbuf_addf(out, "machine %s\n", table->machine);
#define X(name, value, what, source) \
	write_constant(#name, table->constants.name, what, source, out);
	TTI_TUNE_CONSTANT_MAP(X)
#undef X
	tti_tune_write_reach(&table->figures, out);
	for (uint32_t i = 0; i < table->nrules; i++) {
		const struct tti_tune_rule *rule = &table->rules[i];

		tti_strbuf_addf(out, "choose %s ", tutti_collective_name(rule->coll));
		if (rule->from) {
			write_size(rule->from, out);
			tti_strbuf_add(out, "-");
		}
		write_size(rule->upto, out);
		tti_strbuf_addf(out, " %s", tti_tune_algo_name(rule->algo));
		if (rule->ranks)
			tti_strbuf_addf(out, " ranks %u", rule->ranks);
		if (rule->reach != TTI_REACH_SLOTS)
			tti_strbuf_addf(out, " reach %s", tti_tune_reach_name(rule->reach));
		tti_strbuf_add(out, "\n");
	}
}

static tutti_status make_folders(char *path)
{
	for (char *at = strchr(path + 1, '/'); at; at = strchr(at + 1, '/')) {
		*at = '\0';
		if (mkdir(path, 0777) < 0 && errno != EEXIST)
			return tti_fail(TUTTI_ESYS, "making the folder %s: %m", path);
		*at = '/';
	}
	return TUTTI_OK;
}

tutti_status tti_tune_keep(const char *path, const char *text, size_t nbytes)
{
	struct tti_strbuf place = { 0 };
	tutti_status st = TUTTI_OK;

	if (!path)
		st = tti_tune_path(&place);
	if (st == TUTTI_OK && !path)
		st = make_folders(place.text);
	if (st == TUTTI_OK)
		st = tti_file_replace(path ? path : place.text, text, nbytes);
	tti_strbuf_release(&place);
	return st;
}
