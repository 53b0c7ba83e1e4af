/* SPDX-License-Identifier: BSD-3-Clause */
#include "insight/doctor/doctor.h"

#include <stdio.h>

#include "insight/write/table.h"
#include "util/json.h"

#define NAME_WIDTH 14

const char *tti_health_name(enum tti_health health)
{
	static const char *const names[] = {
		[TTI_HEALTH_GOOD] = "good",
		[TTI_HEALTH_NOTE] = "note",
		[TTI_HEALTH_WARNING] = "warning",
		[TTI_HEALTH_ERROR] = "error",
	};

	return names[health];
}

static const char *color_of(enum tti_health health)
{
	switch (health) {
	case TTI_HEALTH_ERROR:
		return "\033[1;31m";
	case TTI_HEALTH_WARNING:
		return "\033[1;33m";
	case TTI_HEALTH_NOTE:
		return "\033[1;34m";
	case TTI_HEALTH_GOOD:
	default:
		return "\033[1;32m";
	}
}

static void print_check(struct tti_table *table, const struct tti_doctor_check *check)
{
	tti_table_cell(table, NULL, check->name);
	tti_table_cell(table, color_of(check->health), tti_health_name(check->health));
	tti_table_cell(table, NULL, check->what);
	tti_table_end_row(table);
	if (*check->follows) {
		tti_table_cell(table, NULL, "");
		tti_table_cell(table, NULL, "so");
		tti_table_cell(table, NULL, check->follows);
		tti_table_end_row(table);
	}
	if (*check->todo) {
		tti_table_cell(table, NULL, "");
		tti_table_cell(table, NULL, "do");
		tti_table_cell(table, NULL, check->todo);
		tti_table_end_row(table);
	}
}

/* Which GPU (row) reaches memory of which (column), where not all do. */
static void print_access(const struct tti_doctor *doctor, struct tti_strbuf *out)
{
	const int n = doctor->n;
	bool all = true;

	for (int i = 0; i < n * n; i++)
		all &= doctor->access[i].is_possible;
	if (all || n > TTI_TABLE_COLUMNS - 1)
		return;

	struct tti_table table = { .align = ">" };

	tti_strbuf_add(out, "\nwho (row) reaches whose memory (column):\n");
	tti_table_cell(&table, NULL, "");
	for (int i = 0; i < n; i++)
		tti_table_cellf(&table, "%d", i);
	tti_table_end_row(&table);
	for (int i = 0; i < n; i++) {
		tti_table_cellf(&table, "%d", i);
		for (int j = 0; j < n; j++) {
			const struct tti_gpu_access *access = &doctor->access[i * n + j];

			tti_table_cell(&table, NULL,
				       i == j                 ? "-"
				       : !access->is_possible ? "no"
							      : "yes");
		}
		tti_table_end_row(&table);
	}
	tti_table_write(&table, out);
}

static void print_sum(const struct tti_doctor *doctor, struct tti_strbuf *out)
{
	int n[TTI_HEALTH_ERROR + 1] = { 0 };

	for (size_t i = 0; i < doctor->checks.n; i++)
		n[doctor->checks.at[i].health]++;
	tti_strbuf_add(out, "\n");
	if (n[TTI_HEALTH_ERROR])
		tti_strbuf_addf(out, "%d error%s%s", n[TTI_HEALTH_ERROR],
				n[TTI_HEALTH_ERROR] > 1 ? "s" : "",
				n[TTI_HEALTH_WARNING] ? ", " : "\n");
	if (n[TTI_HEALTH_WARNING])
		tti_strbuf_addf(out, "%d warning%s\n", n[TTI_HEALTH_WARNING],
				n[TTI_HEALTH_WARNING] > 1 ? "s" : "");
	if (!n[TTI_HEALTH_ERROR] && !n[TTI_HEALTH_WARNING])
		tti_strbuf_add(out, "nothing is wrong\n");
}

void tti_doctor_print(const struct tti_doctor *doctor, bool color, struct tti_strbuf *out)
{
	struct tti_table table = { .align = "<", .color = color, .widths = { NAME_WIDTH } };

	for (size_t i = 0; i < doctor->checks.n; i++)
		print_check(&table, &doctor->checks.at[i]);
	tti_table_write(&table, out);
	print_access(doctor, out);
	print_sum(doctor, out);
}

/* -- JSON ----------------------------------------------------------------------------- */

static void json_device(struct tti_json *json, const struct tti_gpu_facts *gpu)
{
	char uuid[2 * sizeof(gpu->uuid) + 1];

	for (size_t i = 0; i < sizeof(gpu->uuid); i++)
		snprintf(uuid + 2 * i, 3, "%02x", gpu->uuid[i]);
	tti_json_open(json, NULL, "{");
	tti_json_addf(json, "ordinal", "%d", gpu->ordinal);
	tti_json_text(json, "name", gpu->name);
	tti_json_text(json, "busid", gpu->busid);
	tti_json_text(json, "uuid", uuid);
	tti_json_addf(json, "capability", "%d", gpu->capability);
	tti_json_addf(json, "multiprocessors", "%d", gpu->multiprocessors);
	tti_json_addf(json, "memory_bytes", "%llu", (unsigned long long)gpu->memory_bytes);
	tti_json_bool(json, "shares_fd", gpu->has_fd);
	tti_json_bool(json, "shares_fabric", gpu->has_fabric);
	tti_json_bool(json, "host_atomic", gpu->has_host_atomic);
	tti_json_bool(json, "rdma", gpu->has_rdma);
	tti_json_bool(json, "dma_buf", gpu->has_dma_buf);
	tti_json_bool(json, "multicast", gpu->has_multicast);
	tti_json_close(json);
}

void tti_doctor_print_json(const struct tti_doctor *doctor, struct tti_strbuf *out)
{
	struct tti_json json = { .out = out };

	tti_json_open(&json, NULL, "{");
	tti_json_addf(&json, "format", "1");
	tti_json_open(&json, "checks", "[");
	for (size_t i = 0; i < doctor->checks.n; i++) {
		const struct tti_doctor_check *check = &doctor->checks.at[i];

		tti_json_open(&json, NULL, "{");
		tti_json_text(&json, "check", check->name);
		tti_json_text(&json, "health", tti_health_name(check->health));
		tti_json_text(&json, "what", check->what);
		tti_json_text(&json, "so", check->follows);
		tti_json_text(&json, "do", check->todo);
		tti_json_close(&json);
	}
	tti_json_close(&json);
	tti_json_open(&json, "devices", "[");
	for (int i = 0; i < doctor->n; i++)
		json_device(&json, &doctor->gpus[i]);
	tti_json_close(&json);
	tti_json_open(&json, "access", "[");
	for (int i = 0; i < doctor->n; i++) {
		tti_json_open(&json, NULL, "[");
		for (int j = 0; j < doctor->n; j++)
			tti_json_bool(&json, NULL, doctor->access[i * doctor->n + j].is_possible);
		tti_json_close(&json);
	}
	tti_json_close(&json);
	tti_json_close(&json);
}
