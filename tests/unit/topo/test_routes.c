/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "unit/topo/routed.h"
#include "util/fault.h"

/* -- GPU to GPU ----------------------------------------------------------------------------- */

static void near_gpus_access_each_other(void **state)
{
	struct machine machine = machine_of(TWO_SOCKETS(INTEL), usual);

	(void)state;
	expect(&machine, "GPU0", "GPU1", TTI_PATH_PIX, TTI_ROUTE_WIRED, NULL, 12);
	assert_true(route_of(&machine, "GPU0", "GPU1")->p2p);
	expect(&machine, "GPU0", "GPU0", TTI_PATH_LOC, TTI_ROUTE_WIRED, NULL, TTI_LOC_GBPS);
	assert_true(route_of(&machine, "GPU0", "GPU0")->p2p);
	machine_end(&machine);
}

/* The HOST is the receiver's. */
static void far_gpus_go_through_host_memory(void **state)
{
	struct machine machine = machine_of(TWO_SOCKETS(INTEL), usual);

	(void)state;
	expect(&machine, "GPU0", "GPU2", TTI_PATH_PHB, TTI_ROUTE_P2P_FAR, "HOST0", 12);
	expect(&machine, "GPU2", "GPU0", TTI_PATH_PHB, TTI_ROUTE_P2P_FAR, "HOST0", 12);
	expect(&machine, "GPU0", "GPU3", TTI_PATH_SYS, TTI_ROUTE_P2P_FAR, "HOST1", 12);
	expect(&machine, "GPU3", "GPU0", TTI_PATH_SYS, TTI_ROUTE_P2P_FAR, "HOST0", 12);
	assert_true(route_of(&machine, "GPU0", "GPU2")->latency_ns >
		    tti_paths_get(machine.paths, endpoint(&machine, "GPU0"),
				  endpoint(&machine, "HOST0"))
			    ->latency_ns);
	machine_end(&machine);
}

static void p2p_may_be_off_or_nearer(void **state)
{
	struct tti_routes_config config = usual;
	struct machine machine;

	(void)state;
	config.p2p_disable = true;
	machine = machine_of(TWO_SOCKETS(INTEL), config);
	expect(&machine, "GPU0", "GPU1", TTI_PATH_PHB, TTI_ROUTE_P2P_OFF, "HOST0", 12);
	expect(&machine, "GPU0", "GPU0", TTI_PATH_LOC, TTI_ROUTE_WIRED, NULL, TTI_LOC_GBPS);
	machine_end(&machine);
	config = usual;
	config.p2p_level = TTI_PATH_LOC;
	machine = machine_of(TWO_SOCKETS(INTEL), config);
	expect(&machine, "GPU0", "GPU1", TTI_PATH_PHB, TTI_ROUTE_P2P_OFF, "HOST0", 12);
	machine_end(&machine);
	config.p2p_level = TTI_PATH_NVL;
	machine = machine_of(TWO_SOCKETS(INTEL), config);
	expect(&machine, "GPU0", "GPU1", TTI_PATH_PHB, TTI_ROUTE_P2P_FAR, "HOST0", 12);
	machine_end(&machine);
}

/* 0 - 1 - 2 by NVLink, on two sockets. */
#define NVLINKED                                                  \
	INTEL(0)                                                  \
	GPU_WITH("01", 0, 80, 1, NVLINK("02", 2))                 \
	GPU_WITH("02", 1, 80, 1, NVLINK("01", 2) NVLINK("11", 2)) \
	END_CPU INTEL(1) GPU_WITH("11", 2, 80, 1, NVLINK("02", 2)) END_CPU

static void nvlink_is_always_near_enough(void **state)
{
	struct tti_routes_config config = usual;
	struct machine machine;

	(void)state;
	config.p2p_level = TTI_PATH_NVL;
	machine = machine_of(NVLINKED, config);
	expect(&machine, "GPU0", "GPU1", TTI_PATH_NVL, TTI_ROUTE_WIRED, NULL, 40);
	expect(&machine, "GPU0", "GPU2", TTI_PATH_NVB, TTI_ROUTE_WIRED, NULL, 40);
	assert_true(route_of(&machine, "GPU0", "GPU2")->p2p);
	machine_end(&machine);
	config.p2p_disable = true;
	machine = machine_of(NVLINKED, config);
	expect(&machine, "GPU0", "GPU1", TTI_PATH_PHB, TTI_ROUTE_P2P_OFF, "HOST0", 12);
	machine_end(&machine);
}

static void no_way_through_another_gpu_if_that_is_off(void **state)
{
	struct tti_routes_config config = usual;
	struct machine machine;

	(void)state;
	config.nvb_disable = true;
	machine = machine_of(NVLINKED, config);
	expect(&machine, "GPU0", "GPU1", TTI_PATH_NVL, TTI_ROUTE_WIRED, NULL, 40);
	expect(&machine, "GPU0", "GPU2", TTI_PATH_SYS, TTI_ROUTE_P2P_FAR, "HOST1", 12);
	machine_end(&machine);
	config.p2p_level = TTI_PATH_SYS;
	machine = machine_of(AMD(0) GPU_WITH("01", 0, 80, 1, NVLINK("02", 2))
				     GPU_WITH("02", 1, 80, 1, NVLINK("01", 2) NVLINK("11", 2))
					     GPU_WITH("11", 2, 80, 1, NVLINK("02", 2)) END_CPU,
			     config);
	expect(&machine, "GPU0", "GPU2", TTI_PATH_PHB, TTI_ROUTE_NVB_OFF, NULL, 12);
	assert_true(route_of(&machine, "GPU0", "GPU2")->p2p);
	machine_end(&machine);
}

static void intel_root_complexes_cost_a_fifth(void **state)
{
	struct tti_routes_config config = usual;
	struct machine machine;

	(void)state;
	config.p2p_level = TTI_PATH_SYS;
	machine = machine_of(TWO_SOCKETS(INTEL), config);
	expect(&machine, "GPU0", "GPU1", TTI_PATH_PIX, TTI_ROUTE_WIRED, NULL, 12);
	expect(&machine, "GPU0", "GPU2", TTI_PATH_PHB, TTI_ROUTE_OVERHEAD, NULL, 10);
	expect(&machine, "GPU2", "GPU0", TTI_PATH_PHB, TTI_ROUTE_OVERHEAD, NULL, 10);
	expect(&machine, "GPU0", "GPU3", TTI_PATH_SYS, TTI_ROUTE_OVERHEAD, NULL, 10);
	assert_true(route_of(&machine, "GPU0", "GPU3")->p2p);
	machine_end(&machine);
	machine = machine_of(TWO_SOCKETS(AMD), config);
	expect(&machine, "GPU0", "GPU2", TTI_PATH_PHB, TTI_ROUTE_WIRED, NULL, 12);
	machine_end(&machine);
}

#define ONE_EACH(CPU_OF) CPU_OF(0) GPU("01", 0) END_CPU CPU_OF(1) GPU("11", 1) END_CPU

static void two_gpus_of_amd_machines_access_each_other(void **state)
{
	struct tti_routes_config config = usual;
	struct machine machine;

	(void)state;
	config.p2p_auto = true;
	machine = machine_of(ONE_EACH(AMD), config);
	expect(&machine, "GPU0", "GPU1", TTI_PATH_SYS, TTI_ROUTE_WIRED, NULL, 12);
	machine_end(&machine);
	machine = machine_of(ONE_EACH(INTEL), config);
	expect(&machine, "GPU0", "GPU1", TTI_PATH_SYS, TTI_ROUTE_P2P_FAR, "HOST1", 12);
	machine_end(&machine);
	machine = machine_of(AMD(0) GPU("01", 0) GPU("02", 1) GPU("03", 2) END_CPU, config);
	expect(&machine, "GPU0", "GPU1", TTI_PATH_PHB, TTI_ROUTE_P2P_FAR, "HOST0", 12);
	machine_end(&machine);
	machine = machine_of(ONE_EACH(AMD), usual);
	expect(&machine, "GPU0", "GPU1", TTI_PATH_SYS, TTI_ROUTE_P2P_FAR, "HOST1", 12);
	machine_end(&machine);
}

/* Nobody hands over to the NIC of another host. */
static void between_hosts_there_is_the_network(void **state)
{
	struct machine machine = machine_of(
		"<cpu host_hash=\"0xa\" numaid=\"0\" affinity=\"f\">" SWITCH("01") MESH_GPU("02", 0)
			NIC("04", 0) END_PCI
		"</cpu><cpu host_hash=\"0xb\" numaid=\"0\" affinity=\"f\">" SWITCH("01")
			MESH_GPU("02", 1) NIC("04", 1) END_PCI
		"</cpu>"
		"<cpu host_hash=\"0xc\" numaid=\"0\" affinity=\"f\">" GPU("02", 2) "</cpu>",
		usual);

	(void)state;
	expect(&machine, "GPU0", "GPU1", TTI_PATH_NVL, TTI_ROUTE_WIRED, NULL, 80);
	expect(&machine, "GPU0", "n1", TTI_PATH_NET, TTI_ROUTE_WIRED, NULL, 10);
	expect(&machine, "n0", "n1", TTI_PATH_NET, TTI_ROUTE_WIRED, NULL, 10);
	expect(&machine, "GPU0", "GPU2", TTI_PATH_DIS, TTI_ROUTE_NO_WAY, NULL, 0);
	expect(&machine, "n0", "GPU2", TTI_PATH_DIS, TTI_ROUTE_NO_WAY, NULL, 0);
	assert_false(route_of(&machine, "GPU0", "n1")->gdr);
	machine_end(&machine);
}

/* -- The rest --------------------------------------------------------------------------------- */

static void all_else_is_as_wired(void **state)
{
	struct machine machine = machine_of(TWO_SOCKETS(INTEL), usual);

	(void)state;
	expect(&machine, "GPU0", "HOST0", TTI_PATH_PHB, TTI_ROUTE_WIRED, NULL, 12);
	expect(&machine, "HOST1", "GPU0", TTI_PATH_SYS, TTI_ROUTE_WIRED, NULL, 12);
	expect(&machine, "HOST0", "n0", TTI_PATH_PHB, TTI_ROUTE_WIRED, NULL, 10);
	expect(&machine, "n0", "n1", TTI_PATH_SYS, TTI_ROUTE_WIRED, NULL, 10);
	machine_end(&machine);
}

/* Between GPUs, and between a NIC and a GPU unless it sends through another one, both
 * directions go the same way where all GPUs and links are alike. */
static void directions_agree(void **state)
{
	static const char *const files[] = { "azhpc-images__ndv4-topo.xml",
					     "azhpc-images__ndv5-topo.xml",
					     "oci-hpc__H100-topology.xml" };

	(void)state;
	for (size_t at = 0; at < sizeof(files) / sizeof(files[0]); at++) {
		struct tti_graph *graph = graph_of(doc_of_file(files[at]), TTI_MODEL_TUTTI);
		struct tti_paths *paths = NULL;
		struct tti_routes *routes = NULL;

		assert_int_equal(tti_paths_build(graph, &paths), TUTTI_OK);
		assert_int_equal(tti_routes_build(paths, &usual, &routes), TUTTI_OK);
		for (uint32_t i = 0; i < paths->n; i++)
			for (uint32_t j = 0; j < paths->n; j++) {
				const struct tti_route *a = &routes->at[i * paths->n + j];
				const struct tti_route *b = &routes->at[j * paths->n + i];

				if (a->why == TTI_ROUTE_PXN || b->why == TTI_ROUTE_PXN)
					continue;
				assert_int_equal(a->type, b->type);
				assert_int_equal(a->why, b->why);
				assert_true(a->bw_gbps == b->bw_gbps && a->p2p == b->p2p &&
					    a->gdr == b->gdr);
			}
		tti_routes_free(routes);
		tti_paths_free(paths);
		tti_graph_free(graph);
	}
}

static void every_allocation_may_fail(void **state)
{
	struct tti_graph *graph = graph_of(doc_of_text(NVLINKED), TTI_MODEL_TUTTI);
	struct tti_routes_config config = usual;
	struct tti_paths *paths = NULL;
	tutti_status status = TUTTI_ENOMEM;
	int nth = 0;

	(void)state;
	config.nvb_disable = true;
	assert_int_equal(tti_paths_build(graph, &paths), TUTTI_OK);
	while (status != TUTTI_OK) {
		struct tti_routes *routes = NULL;
		char list[32];

		snprintf(list, sizeof(list), "mem:%d", ++nth);
		tti_fault_set(list);
		status = tti_routes_build(paths, &config, &routes);
		tti_fault_set(NULL);
		if (status != TUTTI_OK)
			assert_int_equal(status, TUTTI_ENOMEM);
		tti_routes_free(routes);
	}
	assert_true(nth > 10);
	tti_paths_free(paths);
	tti_graph_free(graph);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(near_gpus_access_each_other),
		cmocka_unit_test(far_gpus_go_through_host_memory),
		cmocka_unit_test(p2p_may_be_off_or_nearer),
		cmocka_unit_test(nvlink_is_always_near_enough),
		cmocka_unit_test(no_way_through_another_gpu_if_that_is_off),
		cmocka_unit_test(intel_root_complexes_cost_a_fifth),
		cmocka_unit_test(two_gpus_of_amd_machines_access_each_other),
		cmocka_unit_test(between_hosts_there_is_the_network),
		cmocka_unit_test(all_else_is_as_wired),
		cmocka_unit_test(directions_agree),
		cmocka_unit_test(every_allocation_may_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
