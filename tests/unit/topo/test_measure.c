/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "topo/detect/detect_parts.h"
#include "topo/detect/measure.h"
#include "topo/tree/schema.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/fault.h"

#include "tree.h"

/* Where two seconds are promised: on a machine that does other things. */
#define MOST_NS (INT64_C(40000) * TTI_NS_PER_MS)

/* What any memory does, even of a VM that stands still in between. */
static void check_speed(double gbps, double ns)
{
	assert_true(gbps > 0.001 && gbps < 5000);
	assert_true(ns > 1 && ns < 1e8);
}

static uint32_t first_cpu(const cpu_set_t *set)
{
	uint32_t cpu = 0;

	while (!CPU_ISSET(cpu, set))
		cpu++;
	return cpu;
}

static void own_set(cpu_set_t *out)
{
	CPU_ZERO(out);
	assert_int_equal(sched_getaffinity(0, sizeof(*out), out), 0);
}

/* A document of `nnodes` NUMA nodes with the CPUs of this machine, those of `mask`. */
static struct tti_detect nodes_of(int nnodes, const char *mask)
{
	static const struct tti_detect_config config = { .measure = true };
	struct tti_detect detect = { .config = &config };

	assert_int_equal(tti_sysfs_open(NULL, &detect.sysfs), TUTTI_OK);
	assert_int_equal(tti_xml_create("test", &detect.doc), TUTTI_OK);
	for (int i = 0; i < nnodes; i++) {
		struct tti_xml *cpu = tti_xml_add(detect.doc, detect.doc->root, "cpu");

		assert_non_null(cpu);
		assert_true(tti_xml_setf(detect.doc, cpu, "numaid", "%d", i));
		assert_true(!mask || tti_xml_set(detect.doc, cpu, "affinity", mask));
	}
	return detect;
}

static void release(struct tti_detect *detect)
{
	tti_xml_free(detect->doc);
	tti_sysfs_close(&detect->sysfs);
}

static int count_measured(const struct tti_detect *detect)
{
	int n = 0;

	for (struct tti_xml *cpu = tti_xml_find(detect->doc->root, "cpu", NULL, NULL); cpu;
	     cpu = tti_xml_next(cpu, "cpu")) {
		const char *const gbps = tti_xml_get(cpu, "tutti_mem_gbps");
		const char *const ns = tti_xml_get(cpu, "tutti_mem_ns");

		assert_true(!gbps == !ns); /* never one without the other */
		if (gbps)
			check_speed(strtod(gbps, NULL), strtod(ns, NULL));
		n += gbps != NULL;
	}
	return n;
}

static void a_node_is_measured(void **state)
{
	struct tti_memory_speed speed;
	cpu_set_t set;
	uint32_t cpu;

	(void)state;
	own_set(&set);
	cpu = first_cpu(&set);
	assert_int_equal(tti_measure_node(&cpu, 1, 200 * TTI_NS_PER_MS, &speed), TUTTI_OK);
	assert_int_equal(speed.nthreads, 1);
	check_speed(speed.gbps, speed.ns);
}

/* Threads that get no core until the time is over have figures all the same. */
static void no_time_at_all_is_enough(void **state)
{
	static const int64_t budgets_ns[] = { 0, 1, 100, 10 * 1000 };
	struct tti_memory_speed speed;
	cpu_set_t set;
	uint32_t cpus[2];

	(void)state;
	own_set(&set);
	cpus[0] = cpus[1] = first_cpu(&set);
	for (size_t i = 0; i < sizeof(budgets_ns) / sizeof(budgets_ns[0]); i++) {
		assert_int_equal(tti_measure_node(cpus, 2, budgets_ns[i], &speed), TUTTI_OK);
		check_speed(speed.gbps, speed.ns);
	}
}

/* This machine: written to its nodes, within the time, the own affinity as it was. */
static void this_machine_is_measured(void **state)
{
	const struct tti_detect_config config = { .measure = true };
	const int64_t begin = tti_now_ns();
	struct tti_xml_doc *doc = NULL;
	struct tti_detect detect;
	cpu_set_t before, after;

	(void)state;
	own_set(&before);
	assert_int_equal(tti_detect_machine(&config, &doc), TUTTI_OK);
	own_set(&after);
	assert_true(CPU_EQUAL(&before, &after));
	assert_true(tti_now_ns() - begin < MOST_NS);
	assert_int_equal(tti_schema_check(doc), TUTTI_OK);
	detect = (struct tti_detect){ .doc = doc };
	assert_true(count_measured(&detect) >= 1);
	tti_xml_free(doc);
}

static void eight_nodes_are_measured(void **state)
{
	struct tti_detect detect = nodes_of(8, "ffffffff");
	const int64_t begin = tti_now_ns();

	(void)state;
	assert_int_equal(tti_detect_memory(&detect), TUTTI_OK);
	assert_true(tti_now_ns() - begin < MOST_NS);
	assert_int_equal(count_measured(&detect), 8);
	release(&detect);
}

/* Nodes whose cores this process may not use, or that have none. */
static void nodes_out_of_reach_are_left_out(void **state)
{
	static const char *const masks[] = { NULL, "",
					     "0",  "00000000,00000000",
					     "x",  "80000000,00000000,00000000,00000000" };

	(void)state;
	for (size_t i = 0; i < sizeof(masks) / sizeof(masks[0]); i++) {
		struct tti_detect detect = nodes_of(2, masks[i]);

		assert_int_equal(tti_detect_memory(&detect), TUTTI_OK);
		assert_int_equal(count_measured(&detect), 0);
		release(&detect);
	}
}

static void a_captured_machine_cannot_be_measured(void **state)
{
	struct tti_detect_config config = { .measure = true };
	struct tti_xml_doc *doc = NULL;
	struct tree tree;

	(void)state;
	tree_make(&tree);
	tree_file(&tree, "sys/devices/system/node/node0/cpulist", "0\n");
	config.sysfs_root = tree.top;
	assert_int_equal(tti_detect_machine(&config, &doc), TUTTI_EUNSUPPORTED);
	assert_non_null(strstr(tti_error_text(), "captured machine"));
	assert_null(doc);
	tree_remove(&tree);
}

static void *spin(void *stop)
{
	while (!atomic_load((_Atomic bool *)stop))
		tti_now_ns();
	return NULL;
}

/* Two busy threads a core: the figures get worse, the call does not fail. */
static void a_busy_machine_is_measured(void **state)
{
	struct tti_detect detect = nodes_of(1, "ffffffff,ffffffff,ffffffff,ffffffff");
	_Atomic bool stop = false;
	pthread_t threads[8];

	(void)state;
	for (size_t i = 0; i < 8; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, spin, &stop), 0);
	assert_int_equal(tti_detect_memory(&detect), TUTTI_OK);
	atomic_store(&stop, true);
	for (size_t i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(count_measured(&detect), 1);
	release(&detect);
}

/* Threads or memory that are not to be had: an error, at once. */
static void a_fault_is_told(void **state)
{
	static const char *const faults[] = { "thread:1", "thread:2", "mem:1", "mem:2" };
	struct tti_memory_speed speed;
	const int64_t begin = tti_now_ns();
	cpu_set_t set;
	uint32_t cpus[2];

	(void)state;
	own_set(&set);
	cpus[0] = cpus[1] = first_cpu(&set);
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		tti_fault_set(faults[i]);
		assert_int_not_equal(tti_measure_node(cpus, 2, 100 * TTI_NS_PER_MS, &speed),
				     TUTTI_OK);
		tti_fault_set(NULL);
	}
	/* A CPU that no machine has cannot be run on. */
	cpus[0] = cpus[1] = 1000000;
	assert_int_equal(tti_measure_node(cpus, 2, 100 * TTI_NS_PER_MS, &speed), TUTTI_ESYS);
	assert_true(tti_now_ns() - begin < MOST_NS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_node_is_measured),
		cmocka_unit_test(no_time_at_all_is_enough),
		cmocka_unit_test(this_machine_is_measured),
		cmocka_unit_test(eight_nodes_are_measured),
		cmocka_unit_test(nodes_out_of_reach_are_left_out),
		cmocka_unit_test(a_captured_machine_cannot_be_measured),
		cmocka_unit_test(a_fault_is_told),
		cmocka_unit_test(a_busy_machine_is_measured),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
