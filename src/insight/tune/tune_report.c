/* SPDX-License-Identifier: BSD-3-Clause */
/* The tune file of a machine: what was measured, as constants, and what was found. */
#include <string.h>

#include "insight/print/print_words.h"
#include "insight/tune/tune_fit.h"
#include "insight/tune/tune_write.h"
#include "plan/tune/tune_path.h"
#include "tutti/insight.h"
#include "util/error.h"
#include "util/json.h"
#include "util/mem.h"
#include "util/params.h"
#include "util/strbuf.h"

static tutti_status convert(const struct tutti_tune_sample *given, struct tti_tune_sample *out)
{
	struct tti_tune_sample sample = { .coll = given->collective,
					  .nbytes = given->nbytes,
					  .loopback = given->loopback != 0,
					  .us = given->us };

	if (given->size < sizeof(*given))
		return tti_fail(TUTTI_EINVAL,
				"sample.size is %zu: begin with TUTTI_TUNE_SAMPLE_INIT",
				given->size);
	if (!given->algorithm || !tti_tune_algo_find(given->algorithm, &sample.algo))
		return tti_fail(TUTTI_EINVAL, "sample.algorithm: there is none \"%s\"",
				given->algorithm ? given->algorithm : "NULL");
	if (given->nhosts < 1 || given->nranks < given->nhosts || given->least < 1 ||
	    given->most < given->least || given->most > given->nranks)
		return tti_fail(TUTTI_EINVAL, "sample: %d ranks on %d hosts, %d to %d on each",
				given->nranks, given->nhosts, given->least, given->most);
	sample.machine =
		tti_tune_machine_of_groups((uint32_t)given->nranks, (uint32_t)given->nhosts,
					   (uint32_t)given->most, (uint32_t)given->least);
	sample.machine.cores = given->cores;
	*out = sample;
	return TUTTI_OK;
}

/* -- What was found ------------------------------------------------------------------ */

struct found {
	const struct tti_tune_sample *samples;
	uint32_t nsamples;
	struct tti_tune_constants before, after;
	struct tti_tune_fit fit;
};

static void print_report(const struct found *found, struct tti_strbuf *out)
{
	const struct tti_tune_fit *fit = &found->fit;

	tti_strbuf_addf(out, "%-18s %10s %10s\n", "constant", "built-in", "measured");
	for (int i = 0; i < TTI_TUNE_FIT_COUNT; i++) {
		tti_strbuf_addf(out, "%-18s %10.4g", tti_tune_fit_name(i),
				tti_tune_fit_value(&found->before, i));
		if (fit->fitted[i])
			tti_strbuf_addf(out, " %10.4g  within a factor of %.2f\n",
					tti_tune_fit_value(&found->after, i), fit->spread[i]);
		else
			tti_strbuf_add(out, "          -\n");
	}
	tti_strbuf_addf(out,
			"half of %u times are within a factor of %.2f of what is predicted; by "
			"the built-in constants %.2f\n",
			found->nsamples, fit->after < fit->before ? fit->after : fit->before,
			fit->before);
}

static void print_json(const struct found *found, struct tti_strbuf *out)
{
	const struct tti_tune_fit *fit = &found->fit;
	struct tti_json json = { .out = out };

	tti_json_open(&json, NULL, "{");
	tti_json_addf(&json, "error_before", "%.6g", fit->before);
	tti_json_addf(&json, "error_after", "%.6g",
		      fit->after < fit->before ? fit->after : fit->before);
	tti_json_open(&json, "constants", "{");
	for (int i = 0; i < TTI_TUNE_FIT_COUNT; i++) {
		tti_json_open(&json, tti_tune_fit_name(i), "{");
		tti_json_addf(&json, "built_in", "%.6g", tti_tune_fit_value(&found->before, i));
		tti_json_addf(&json, "value", "%.6g", tti_tune_fit_value(&found->after, i));
		tti_json_bool(&json, "measured", fit->fitted[i]);
		tti_json_addf(&json, "within", "%.4g", fit->spread[i]);
		tti_json_close(&json);
	}
	tti_json_close(&json);
	tti_json_open(&json, "samples", "[");
	for (uint32_t i = 0; i < found->nsamples; i++) {
		const struct tti_tune_sample *sample = &found->samples[i];

		tti_json_open(&json, NULL, "{");
		tti_json_text(&json, "collective", tutti_collective_name(sample->coll));
		tti_json_text(&json, "algorithm", tti_tune_algo_name(sample->algo));
		tti_json_addf(&json, "bytes", "%zu", sample->nbytes);
		tti_json_addf(&json, "ranks", "%u", sample->machine.n);
		tti_json_addf(&json, "hosts", "%u", sample->machine.nnodes);
		tti_json_addf(&json, "us", "%.6g", sample->us);
		tti_json_addf(&json, "built_in_us", "%.6g",
			      tti_tune_sample_us(&found->before, sample));
		tti_json_addf(&json, "predicted_us", "%.6g",
			      tti_tune_sample_us(&found->after, sample));
		tti_json_close(&json);
	}
	tti_json_close(&json);
	tti_json_close(&json);
	tti_strbuf_add(out, "\n");
}

/* -- The file ------------------------------------------------------------------------ */

static tutti_status make_file(const struct found *found, const char *choices, char **out)
{
	struct tti_tune_table *table = NULL;
	struct tti_strbuf text = { 0 };

	if (!choices)
		choices = "";
	TTI_TRY(tti_tune_read(choices, strlen(choices), "choices", &table));
	table->constants = found->after;
	tti_tune_this_machine(table->machine, sizeof(table->machine));
	tti_tune_this_version(table->version, sizeof(table->version));
	tti_tune_write(table, &text);
	tti_tune_table_free(table);
	return tti_print_take(TUTTI_OK, &text, "tune file", out);
}

static tutti_status make_report(const struct found *found, bool json, char **out)
{
	struct tti_strbuf text = { 0 };

	if (json)
		print_json(found, &text);
	else
		print_report(found, &text);
	return tti_print_take(TUTTI_OK, &text, "report of a fit", out);
}

static tutti_status fit(const struct tutti_tune_sample *samples, uint32_t nsamples,
			struct tti_tune_sample *into, struct found *out)
{
	for (uint32_t i = 0; i < nsamples; i++)
		TTI_TRY(convert(&samples[i], &into[i]));
	*out = (struct found){ .samples = into, .nsamples = nsamples };
	out->before = out->after = tti_tune_defaults().constants;
	return tti_tune_fit(into, nsamples, &out->after, &out->fit);
}

tutti_status tutti_tune_fit(const struct tutti_tune_sample *samples, int nsamples,
			    const char *choices, int json, char **file_out, char **report_out)
{
	struct tti_tune_sample *own;
	struct found found;
	tutti_status st;

	if (!samples || nsamples < 1 || !file_out)
		return tti_fail(TUTTI_EINVAL, "tutti_tune_fit: no samples, or file_out is NULL");
	*file_out = NULL;
	if (report_out)
		*report_out = NULL;
	own = tti_calloc((size_t)nsamples, sizeof(*own));
	if (!own)
		return tti_fail(TUTTI_ENOMEM, "%d samples: out of memory", nsamples);
	st = fit(samples, (uint32_t)nsamples, own, &found);
	if (st == TUTTI_OK)
		st = make_file(&found, choices, file_out);
	if (st == TUTTI_OK && report_out) {
		st = make_report(&found, json != 0, report_out);
		if (st != TUTTI_OK) {
			tti_free(*file_out);
			*file_out = NULL;
		}
	}
	tti_free(own);
	return st;
}

tutti_status tutti_tune_keep(const char *path, const char *text, char **path_out)
{
	struct tti_tune_table *table = NULL;
	struct tti_strbuf place = { 0 };
	tutti_status st;

	if (!text || !path_out)
		return tti_fail(TUTTI_EINVAL, "tutti_tune_keep: text or path_out is NULL");
	*path_out = NULL;
	TTI_TRY(tti_tune_read(text, strlen(text), "tune file to keep", &table));
	tti_tune_table_free(table);
	if (path)
		tti_strbuf_add(&place, path);
	else
		TTI_TRY(tti_tune_path(&place));
	st = tti_tune_keep(path, text, strlen(text));
	*path_out = st == TUTTI_OK ? tti_strbuf_take(&place) : NULL;
	tti_strbuf_release(&place);
	if (st == TUTTI_OK && !*path_out)
		st = tti_fail(TUTTI_ENOMEM, "path of a tune file: out of memory");
	return st;
}

tutti_status tutti_tune_find(char **path_out)
{
	struct tti_strbuf place = { 0 };
	struct tti_tune_used used;
	tutti_status st;

	if (!path_out)
		return tti_fail(TUTTI_EINVAL, "tutti_tune_find: path_out is NULL");
	*path_out = NULL;
	TTI_TRY(tti_tune_read_used(&used));
	if (used.named)
		tti_strbuf_add(&place, tti_params()->tune_file);
	st = used.measured ? tti_tune_path(&place) : TUTTI_OK;
	if (st == TUTTI_OK && place.text && !(*path_out = tti_strbuf_take(&place)))
		st = tti_fail(TUTTI_ENOMEM, "path of a tune file: out of memory");
	tti_strbuf_release(&place);
	tti_tune_table_free(used.named);
	tti_tune_table_free(used.measured);
	return st;
}
