/* SPDX-License-Identifier: BSD-3-Clause */
/* Plans from files, ours and NCCL's: what is read has passed the checker and comes back
 * the same from writing; what is not is refused with a place. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "expect.h"
#include "insight/plan/job.h"
#include "insight/plan/plan_report.h"
#include "topo/tree/schema.h"
#include "util/error.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Two GPUs and a NIC below each of two switches. */
#define PCI(bus, class, inner)                                                                \
	"<pci busid=\"0000:" bus ":00.0\" class=\"" class "\" link_speed=\"16.0 GT/s PCIe\" " \
							  "link_width=\"16\">" inner "</pci>"
#define GPU(bus, dev) PCI(bus, "0x030200", "<gpu dev=\"" dev "\" sm=\"80\" gdr=\"1\"/>")
#define NIC(bus, dev)                                                           \
	PCI(bus, "0x020700",                                                    \
	    "<nic><net name=\"mlx5_" dev "\" dev=\"" dev "\" speed=\"200000\" " \
	    "port=\"1\" guid=\"0x" dev "\" gdr=\"1\"/></nic>")
static const char machine[] =
	"<system version=\"1\"><cpu numaid=\"0\" affinity=\"ff\" arch=\"x86_64\" "
	"vendor=\"AuthenticAMD\" familyid=\"175\" modelid=\"1\">" PCI(
		"10", "0x060400", GPU("11", "0") GPU("12", "1") NIC("13", "0"))
		PCI("20", "0x060400",
		    GPU("21", "2") GPU("22", "3") NIC("23", "1")) "</cpu></system>";

static struct tti_plan_job *jobs[2]; /* of one node, of two */
static const struct tti_plan_config config = { .cross_nic = TTI_CROSS_AUTO };

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	struct tti_xml_doc *doc = NULL;
	struct tti_graph *graph = NULL;
	struct tti_paths *paths = NULL;
	struct tti_routes *made = NULL;
	const struct tti_routes *routes;

	(void)argc;
	(void)argv;
	expect(tti_xml_read(machine, sizeof(machine) - 1, "machine", &doc) == TUTTI_OK);
	expect(tti_schema_check(doc) == TUTTI_OK);
	expect(tti_graph_build(doc, TTI_MODEL_TUTTI, &graph) == TUTTI_OK);
	tti_xml_free(doc);
	expect(tti_paths_build(graph, &paths) == TUTTI_OK);
	expect(tti_routes_build(paths, NULL, &made) == TUTTI_OK);
	routes = made;
	expect(tti_plan_job_of(&routes, 1, 1, 0, &jobs[0]) == TUTTI_OK);
	expect(tti_plan_job_of(&routes, 1, 2, 0, &jobs[1]) == TUTTI_OK);
	return 0;
}

/* What was read is a plan, and reads as the same again. */
static void look(const struct tti_plan *plan)
{
	struct tti_strbuf out = { 0 }, again_out = { 0 };
	struct tti_plan *again = NULL;
	size_t ndiffs;

	expect(tti_plan_check(plan) == TUTTI_OK);
	expect(tti_plan_json(plan, &out) == TUTTI_OK);
	expect(tti_plan_read(out.text, out.len, "again", &again) == TUTTI_OK);
	tti_plan_diff(plan, again, &again_out, &ndiffs);
	expect(ndiffs == 0);
	tti_strbuf_release(&out);
	tti_strbuf_release(&again_out);
	tti_plan_free(again);
}

static void read_nccl(const char *text, size_t size, const struct tti_plan_job *job)
{
	struct tti_plan *plan = NULL;
	struct tti_report report = { .job = job, .config = &config };
	struct tti_strbuf out = { 0 };
	size_t nfindings;

	if (tti_plan_read_nccl(text, size, "file", job, &config, &out, &plan) != TUTTI_OK) {
		expect(!plan && strstr(tti_error_text(), ": "));
		tti_strbuf_release(&out);
		return;
	}
	look(plan);
	report.plan = plan;
	expect(tti_plan_verify(&report, &out, &nfindings) == TUTTI_OK);
	tti_plan_table(&report, &out);
	expect(!out.failed);
	tti_strbuf_release(&out);
	tti_plan_free(plan);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	struct tti_plan *plan = NULL;

	if (size > 0 && text[0] == '<') {
		read_nccl(text, size, jobs[0]);
		read_nccl(text, size, jobs[1]);
		return 0;
	}
	if (tti_plan_read(text, size, "file", &plan) == TUTTI_OK)
		look(plan);
	else
		expect(strstr(tti_error_text(), "file"));
	tti_plan_free(plan);
	return 0;
}
