/* SPDX-License-Identifier: BSD-3-Clause */
#include "insight/plan/program_print.h"

#include "coll/files/text.h"
#include "util/error.h"
#include "util/json.h"

void tti_program_print_head(const struct tti_program *prog, struct tti_strbuf *buf)
{
	tti_strbuf_addf(buf, "program %s algorithm %s n %d root %d chunks %d\n",
			tutti_collective_name(prog->coll), prog->algorithm, prog->n, prog->root,
			prog->nchunks);
}

/* The words for the ends that a program states for its chunks. */
static const struct {
	const char *word;
	uint8_t end;
} ends[] = { { "input", TTI_END_INPUT }, { "output", TTI_END_OUTPUT } };

void tti_program_print_rank(const struct tti_program *prog, struct tti_strbuf *buf)
{
	tti_strbuf_addf(buf, "rank %d%s\n", prog->rank, prog->in_place ? " in_place" : "");
	for (size_t i = 0; i < 2 * prog->ends.n; i++)
		if (prog->ends.at[i / 2] & ends[i % 2].end)
			tti_strbuf_addf(buf, "    %s chunk %zu\n", ends[i % 2].word, i / 2);
	for (size_t i = 0; i < prog->steps.n; i++) {
		const struct tti_step *step = &prog->steps.at[i];

		tti_strbuf_addf(buf, "%3zu %s", i, tti_step_name(step->kind));
		if (!tti_step_is_sync(step->kind))
			tti_strbuf_addf(buf, " chunk %d", step->chunk);
		if (step->kind != TTI_COPY)
			tti_strbuf_addf(buf, " %s %d", tti_text_before_peer(step->kind),
					step->peer);
		if (step->stage > 0)
			tti_strbuf_addf(buf, " stage %d", step->stage);
		tti_strbuf_add(buf, step->final ? " final\n" : "\n");
	}
}

static void print_ends_json(const struct tti_program *prog, struct tti_json *json)
{
	for (int k = 0; prog->ends.n && k < 2; k++) {
		tti_json_open(json, k ? "outputs" : "inputs", "[");
		for (size_t i = 0; i < prog->ends.n; i++)
			if (prog->ends.at[i] & ends[k].end)
				tti_json_addf(json, NULL, "%zu", i);
		tti_json_close(json);
	}
}

static void print_step_json(const struct tti_step *step, struct tti_json *json)
{
	tti_json_open(json, NULL, "{");
	tti_json_text(json, "kind", tti_step_name(step->kind));
	if (!tti_step_is_sync(step->kind))
		tti_json_addf(json, "chunk", "%d", step->chunk);
	if (step->kind != TTI_COPY)
		tti_json_addf(json, "peer", "%d", step->peer);
	if (step->stage > 0)
		tti_json_addf(json, "stage", "%d", step->stage);
	if (step->final)
		tti_json_bool(json, "final", true);
	tti_json_close(json);
}

tutti_status tti_program_print_json(const struct tti_program *prog, int n, struct tti_strbuf *buf)
{
	struct tti_json json = { .out = buf, .spaced = true };

	tti_json_open(&json, NULL, "{");
	tti_json_text(&json, "collective", tutti_collective_name(prog->coll));
	tti_json_text(&json, "algorithm", prog->algorithm);
	tti_json_addf(&json, "n", "%d", prog->n);
	tti_json_addf(&json, "root", "%d", prog->root);
	tti_json_addf(&json, "chunks", "%d", prog->nchunks);
	tti_json_open(&json, "ranks", "[");
	for (int i = 0; i < n; i++) {
		tti_json_open(&json, NULL, "{");
		tti_json_addf(&json, "rank", "%d", prog[i].rank);
		if (prog[i].in_place)
			tti_json_bool(&json, "in_place", true);
		print_ends_json(&prog[i], &json);
		tti_json_open(&json, "steps", "[");
		for (size_t k = 0; k < prog[i].steps.n; k++)
			print_step_json(&prog[i].steps.at[k], &json);
		tti_json_close(&json);
		tti_json_close(&json);
	}
	tti_json_close(&json);
	tti_json_close(&json);
	tti_strbuf_add(buf, "\n");
	if (buf->failed)
		return tti_fail(TUTTI_ENOMEM, "printing programs of %d ranks", n);
	return TUTTI_OK;
}
