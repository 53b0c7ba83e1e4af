/* SPDX-License-Identifier: BSD-3-Clause */
/* From what ranks tell of themselves and the topologies of their hosts to a job, and to a
 * plan of it, on every machine that there is a file of. */
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/init/comm_job.h"
#include "topo/tree/schema.h"
#include "topo/tree/strip.h"
#include "util/error.h"
#include "util/mem.h"

#define N 12

struct given {
	struct tti_peers peers;
	struct tti_host_classes hosts;
	int host_of[N];
};

static void add_class(struct given *given, const char *path)
{
	struct tti_host_class host_class = { .owner = (int)given->hosts.classes.n };
	struct tti_strbuf text = { 0 };
	struct tti_xml_doc *doc, *plain;

	assert_int_equal(tti_xml_read_file(path, &doc), TUTTI_OK);
	assert_int_equal(tti_schema_check(doc), TUTTI_OK);
	assert_int_equal(tti_strip(doc, &plain), TUTTI_OK);
	tti_xml_write(plain, &text);
	host_class.nbytes = (uint32_t)text.len;
	host_class.text = tti_strbuf_take(&text);
	assert_true(tti_vec_push(&given->hosts.classes, host_class));
	tti_xml_free(plain);
	tti_xml_free(doc);
}

/* Rank r is on host r % nhosts, whose topology is of class host % nclasses; all may run on all
 * cores. */
static void set_up(struct given *given, const char *const *paths, int nclasses, int nhosts)
{
	*given = (struct given){ .peers = { .n = N } };
	given->peers.info = tti_calloc(N, sizeof(*given->peers.info));
	given->hosts.info = tti_calloc(N, sizeof(*given->hosts.info));
	given->hosts.leader = tti_calloc(N, sizeof(*given->hosts.leader));
	given->hosts.class_of = tti_calloc(N, sizeof(*given->hosts.class_of));
	for (int k = 0; k < nclasses; k++)
		add_class(given, paths[k]);
	for (int rank = 0; rank < N; rank++) {
		memset(given->peers.info[rank].cpus, 0xff, sizeof(given->peers.info[rank].cpus));
		given->host_of[rank] = rank % nhosts;
		given->hosts.leader[rank] = rank % nhosts;
		given->hosts.class_of[rank] = (uint32_t)(rank % nhosts % nclasses);
		given->hosts.info[rank].nnets = TTI_HOST_ANY_NET;
	}
}

static void tear_down(struct given *given)
{
	tti_host_classes_release(&given->hosts);
	tti_peers_release(&given->peers);
}

static struct tti_plan *plan_of(const struct tti_comm_job *job)
{
	const struct tti_plan_config config = { .patterns = 1u << TTI_PATTERN_RING |
							    1u << TTI_PATTERN_TREE,
						.cross_nic = TTI_CROSS_AUTO,
						.both_ways = true };
	struct tti_plan *plan = NULL;

	if (tti_plan_make(&job->job, &config, &plan) != TUTTI_OK ||
	    tti_plan_check(plan) != TUTTI_OK)
		fail_msg("%s", tti_error_text());
	return plan;
}

static void every_machine(const char *path)
{
	struct tti_comm_job job;
	struct tti_plan *plan;
	struct given given;

	for (int nhosts = 1; nhosts <= 3; nhosts += 2) {
		set_up(&given, &path, 1, nhosts);
		if (tti_comm_job_build(&given.peers, &given.hosts, given.host_of, &job) !=
		    TUTTI_OK) {
			/* Some files say nothing of cores. */
			assert_non_null(strstr(tti_error_text(), "no NUMA node with cores"));
			tear_down(&given);
			continue;
		}
		assert_int_equal(job.job.nnodes, nhosts);
		assert_int_equal(job.job.nranks, N);
		for (int node = 0; node < nhosts; node++) {
			assert_int_equal(job.job.nodes[node].nranks, N / nhosts);
			assert_int_equal(job.job.nodes[node].ranks[1], node + nhosts);
		}
		if (nhosts == 1 || job.job.nodes[0].nnets > 0) {
			plan = plan_of(&job);
			assert_non_null(tti_plan_pattern(plan, TTI_PATTERN_RING));
			tti_plan_free(plan);
		}
		tti_comm_job_release(&job);
		tear_down(&given);
	}
}

static void every_file(void **state)
{
	glob_t files;

	(void)state;
	assert_int_equal(glob(TEST_DATA "/topologies/*.xml", 0, NULL, &files), 0);
	assert_true(files.gl_pathc > 20);
	for (size_t i = 0; i < files.gl_pathc; i++)
		every_machine(files.gl_pathv[i]);
	globfree(&files);
}

/* Two sockets of two NUMA nodes each; where ranks are bound, and where not. */
static const char four_nodes[] =
	"<system version=\"1\">"
	"<cpu numaid=\"0\" affinity=\"0000000f\" arch=\"x86_64\" vendor=\"AuthenticAMD\" "
	"tutti_package=\"0\"/>"
	"<cpu numaid=\"1\" affinity=\"000000f0\" arch=\"x86_64\" vendor=\"AuthenticAMD\" "
	"tutti_package=\"0\"/>"
	"<cpu numaid=\"2\" affinity=\"00000f00\" arch=\"x86_64\" vendor=\"AuthenticAMD\" "
	"tutti_package=\"1\"/>"
	"<cpu numaid=\"3\" affinity=\"0000f000\" arch=\"x86_64\" vendor=\"AuthenticAMD\" "
	"tutti_package=\"1\"/>"
	"</system>";

static void by_rank(void **state)
{
	/* Of each rank the cores, and the NUMA node and socket that are to be found. */
	static const struct {
		uint64_t cores;
		uint32_t numa, socket;
	} ranks[N] = {
		{ 0xffff, 0, 0 }, { 0xffff, 0, 0 }, { 0x0030, 1, 0 }, { 0x0008, 0, 0 },
		{ 0xff00, 2, 1 }, { 0xff00, 2, 1 }, { 0xffff, 1, 0 }, { 0xffff, 1, 0 },
		{ 0x1000, 3, 1 }, { 0xff00, 2, 1 }, { 0xff00, 3, 1 }, { 0, 3, 1 },
	};
	char path[] = "/tmp/tutti-job-XXXXXX";
	const int fd = mkstemp(path);
	FILE *file = fdopen(fd, "w");
	const char *paths[] = { path };
	struct tti_comm_job job;
	struct given given;

	(void)state;
	assert_non_null(file);
	fputs(four_nodes, file);
	assert_int_equal(fclose(file), 0);
	set_up(&given, paths, 1, 1);
	remove(path);
	for (int rank = 0; rank < N; rank++) {
		memset(given.peers.info[rank].cpus, 0, sizeof(given.peers.info[rank].cpus));
		given.peers.info[rank].cpus[0] = ranks[rank].cores;
	}
	assert_int_equal(tti_comm_job_build(&given.peers, &given.hosts, given.host_of, &job),
			 TUTTI_OK);
	for (int rank = 0; rank < N; rank++) {
		const struct tti_graph *graph = job.machines[0].graph;
		const uint32_t member = job.job.nodes[0].members[rank];
		const uint32_t cpu = tti_graph_cpu_of(graph, member);

		if (graph->nodes[cpu].cpu.numaid != ranks[rank].numa)
			fail_msg("rank %d is on NUMA node %d, not %u", rank,
				 (int)graph->nodes[cpu].cpu.numaid, ranks[rank].numa);
		assert_int_equal(job.part[rank], ranks[rank].socket);
	}
	tti_comm_job_release(&job);
	tear_down(&given);
}

/* Nodes on one leaf switch are a group, whatever lies between them. */
static void leaf_switches(void **state)
{
	const char *paths[] = { TEST_DATA "/topologies/azhpc-images__ndv4-topo.xml",
				TEST_DATA "/topologies/aws-ofi-nccl__p4d-24xl-topo.xml" };
	struct tti_comm_job job;
	struct given given;

	(void)state;
	set_up(&given, paths, 2, 4);
	given.hosts.info[0].leaf = given.hosts.info[2].leaf = 77;
	given.hosts.info[3].leaf = 78;
	assert_int_equal(tti_comm_job_build(&given.peers, &given.hosts, given.host_of, &job),
			 TUTTI_OK);
	assert_int_equal(job.nmachines, 2);
	assert_ptr_equal(job.job.nodes[0].routes, job.job.nodes[2].routes);
	assert_ptr_not_equal(job.job.nodes[0].routes, job.job.nodes[1].routes);
	assert_int_equal(job.job.nodes[0].group, 0);
	assert_int_equal(job.job.nodes[1].group, -1);
	assert_int_equal(job.job.nodes[2].group, 0);
	assert_int_equal(job.job.nodes[3].group, 3);
	tti_comm_job_release(&job);
	tear_down(&given);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_file),
		cmocka_unit_test(by_rank),
		cmocka_unit_test(leaf_switches),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
