/* SPDX-License-Identifier: BSD-3-Clause */
/* The model: by hand, in order, and on every machine there is a file of. */
#include "insight/plan/job.h"
#include "machines.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "coll/program.h"
#include "insight/tune/tune_any.h"
#include "insight/tune/tune_write.h"
#include "plan/tune/tune_terms.h"
#include "support/sanitizer.h"
#include "util/error.h"
#include "util/strbuf.h"

#define KIB ((size_t)1024)
#define MIB (KIB * KIB)

static const tutti_collective collectives[] = { TUTTI_ALL_REDUCE,     TUTTI_BROADCAST,
						TUTTI_REDUCE,         TUTTI_ALL_GATHER,
						TUTTI_REDUCE_SCATTER, TUTTI_BARRIER };
#define NCOLLECTIVES (sizeof(collectives) / sizeof(collectives[0]))

static struct tti_tune_any groups(uint32_t nodes, uint32_t ranks, double cores)
{
	struct tti_tune_any machine = { .host = tti_tune_machine_of_groups(nodes * ranks, nodes,
									   ranks, ranks) };

	machine.host.cores = cores;
	return machine;
}

static struct tti_tune_time predict(const struct tti_tune_any *machine, tutti_collective coll,
				    enum tti_tune_algo algo, size_t nbytes)
{
	const struct tti_tune_table table = tti_tune_defaults();
	struct tti_tune_time time;

	assert_true(tti_tune_any_predict(&table.constants, machine, coll, algo, nbytes, &time));
	return time;
}

/* The least time of any algorithm that may be taken. */
static double best(const struct tti_tune_table *table, const struct tti_tune_any *machine,
		   tutti_collective coll, size_t nbytes)
{
	enum tti_tune_algo algo;
	struct tti_tune_time time;

	assert_true(tti_tune_choose(table, machine, coll, nbytes, &algo));
	assert_true(tti_tune_any_predict(&table->constants, machine, coll, algo, nbytes, &time));
	return time.us;
}

static void near_to(double value, double wanted)
{
	if (fabs(value - wanted) > 1e-6 * (1 + fabs(wanted)))
		fail_msg("%.9f is not %.9f", value, wanted);
}

/* -- By hand ---------------------------------------------------------------------- */

/* Constants in the comments are the defaults. */
static void one_host_by_hand(void **state)
{
	const struct tti_tune_any two = groups(1, 2, 2), four = groups(1, 4, 2);
	struct tti_tune_time time;

	(void)state;
	/* A call and one line each way at once: 0.1 + 0.15. */
	time = predict(&two, TUTTI_ALL_REDUCE, TTI_TUNE_EXCHANGE, 0);
	near_to(time.latency_us, 0.25);
	near_to(time.us, 0.25);
	near_to(time.bw_gbps, 0);
	/* 1 MiB, direct: 2 hops; 2 slices of 256 KiB in each of 2 messages; half of it read
	 * from slots twice and written twice, 2 x 1 MiB of buffers on each of 2 ranks fill
	 * the 4 MiB of cache. */
	time = predict(&two, TUTTI_ALL_REDUCE, TTI_TUNE_DIRECT, MIB);
	near_to(time.latency_us, 0.1 + 2 * 0.15);
	near_to(time.us, 0.4 + 2 * 2 * 0.25 + (double)MIB * 1e-3 * (1 / 12.9 + 3 / 97.0));
	near_to(time.bw_gbps, (double)MIB / (time.us - 0.4) / 1e3);
	/* 128 MiB: 4 of 512 MiB of buffers are cached, the rest shares 28 GB/s. */
	time = predict(&two, TUTTI_ALL_REDUCE, TTI_TUNE_DIRECT, 128 * MIB);
	near_to(time.us, 0.4 + 2 * 256 * 0.25 +
				 (double)MIB * 1e-3 *
					 (128 * (1 / 12.9 + 1 / 97.0) + 2 / 97.0 + 254 * 2 / 28.0));
	/* Two ranks a core: a hop is a turn of both, and each of 2 more lines is read by
	 * both; of 3 peers 2 are on the other core. */
	time = predict(&four, TUTTI_ALL_REDUCE, TTI_TUNE_EXCHANGE, 8);
	near_to(time.latency_us, 0.1 + 0.15 + 2 * 0.5 + 2 * 2 * 0.15);
	near_to(time.us, time.latency_us + 8e-3 * 2 * (3 * (2 / 12.9 + 1 / 97.0) / 3 + 3 / 97.0));
}

static void several_hosts_by_hand(void **state)
{
	const struct tti_tune_any three = groups(3, 1, 0);
	struct tti_tune_any wide = groups(4, 2, 0);
	struct tti_tune_time time;

	(void)state;
	/* A ring of three: 4 hops of 3.05 + 5; all bytes over a wire of 1.25 GB/s, which is
	 * slower than 4 x 2/3 of them through sockets at 6 GB/s. */
	time = predict(&three, TUTTI_ALL_REDUCE, TTI_TUNE_RING, 16 * MIB);
	near_to(time.latency_us, 0.1 + 4 * 8.05);
	near_to(time.us, time.latency_us + 16 * (double)MIB * 1e-3 * (4.0 / 3) / 1.25);
	/* Among 8 ranks on 4 nodes: 1 round near and 2 far, both ranks of a node at once. */
	wide.host.node_gbps = 0.5;
	time = predict(&wide, TUTTI_ALL_REDUCE, TTI_TUNE_RECURSIVE_DOUBLING, 64 * KIB);
	near_to(time.latency_us, 0.1 + 0.15 + 2 * 8.05);
	near_to(time.us, time.latency_us + 64 * (double)KIB * 1e-3 * 4 / 0.5);
	/* Lanes: half of the data each, so all of a node together what a ring carries. */
	time = predict(&wide, TUTTI_ALL_REDUCE, TTI_TUNE_HIERARCHICAL, 64 * MIB);
	near_to(time.latency_us, 0.1 + 2 * 0.15 + 6 * 8.05 + 6 * 0.15);
	near_to(time.us, time.latency_us + 64 * (double)MIB * 1e-3 * 1.5 / 0.5);
}

static void gpus_by_hand(void **state)
{
	const struct tti_tune_table table = tti_tune_defaults();
	struct tti_tune_any machine = groups(2, 8, 0);
	struct tti_tune_time time;

	(void)state;
	machine.gpu = machine.nvlink = true;
	machine.pattern_gbps[TTI_PATTERN_RING] = 90;
	machine.pattern_gbps[TTI_PATTERN_TREE] = 80;
	/* 30 hops, 2 of them between nodes; 30/16 of the bytes. */
	time = predict(&machine, TUTTI_ALL_REDUCE, TTI_TUNE_RING, 1000 * MIB);
	near_to(time.latency_us, 8.4 + 28 * 3.4 + 2 * 14);
	near_to(time.bw_gbps, 90 * 16 / 30.0);
	time = predict(&machine, TUTTI_ALL_GATHER, TTI_TUNE_RING, 1000 * MIB);
	near_to(time.bw_gbps, 90 * 16 / 15.0);
	time = predict(&machine, TUTTI_ALL_REDUCE, TTI_TUNE_TREE, 1000 * MIB);
	near_to(time.latency_us, 8.4 + 2 * (7 * 4 + 14));
	near_to(time.bw_gbps, 40);
	assert_false(tti_tune_any_predict(&table.constants, &machine, TUTTI_ALL_REDUCE,
					  TTI_TUNE_NVLS, 8, &time));
	assert_false(tti_tune_any_predict(&table.constants, &machine, TUTTI_BROADCAST,
					  TTI_TUNE_TREE, 8, &time));
}

/* What the model takes the program of a collective to be, counted in the programs. */
static void names_are_those_of_the_library(void **state)
{
	const struct tti_tune_any machine = groups(2, 4, 0);
	struct tti_tune_terms terms;
	enum tti_tune_algo algo;

	(void)state;
	for (size_t c = 0; c < NCOLLECTIVES; c++) {
		const struct tti_algorithm *known;

		for (int i = 0; (known = tti_algorithm_at(collectives[c], i)); i++) {
			/* Is chosen by what can be reached, not by time. */
			if (known->needs_memory)
				continue;
			if (!tti_tune_algo_find(known->name, &algo) ||
			    !tti_tune_host_terms(&machine.host, collectives[c], algo, &terms))
				fail_msg("the model does not know %s %s",
					 tutti_collective_name(collectives[c]), known->name);
		}
	}
	assert_false(tti_tune_algo_find("rings", &algo));
	for (int i = 0; i < TTI_TUNE_ALGO_COUNT; i++) {
		assert_true(tti_tune_algo_find(tti_tune_algo_name((enum tti_tune_algo)i), &algo));
		assert_int_equal(algo, i);
	}
}

/* -- In order --------------------------------------------------------------------- */

static void check_order(const struct tti_tune_any *machine, const char *what)
{
	const struct tti_tune_table table = tti_tune_defaults();

	for (size_t c = 0; c < NCOLLECTIVES; c++)
		for (int i = 0; i < TTI_TUNE_ALGO_COUNT; i++) {
			double before = 0;

			for (size_t nbytes = 0; nbytes <= 4096 * MIB;
			     nbytes = nbytes ? nbytes + nbytes / 2 + 1 : 1) {
				struct tti_tune_time time;

				if (!tti_tune_any_predict(&table.constants, machine, collectives[c],
							  (enum tti_tune_algo)i, nbytes, &time))
					break;
				if (!isfinite(time.us) || !isfinite(time.bw_gbps) ||
				    time.latency_us <= 0 || time.us < before ||
				    time.us < time.latency_us || time.bw_gbps < 0)
					fail_msg("%s: %s %s, %zu bytes: %g us, %g GB/s", what,
						 tutti_collective_name(collectives[c]),
						 tti_tune_algo_name((enum tti_tune_algo)i), nbytes,
						 time.us, time.bw_gbps);
				before = time.us;
			}
		}
}

/* A collective that others make up is not slower than they are (Traff, Gropp and Thakur,
 * IEEE TPDS 2010). Room is left where the library has no algorithm for it: no all_reduce
 * goes up a tree and out in one step, no reduce_scatter takes log2 n steps. Without
 * caches, which may hold the buffers of each half but not those of both. */
static void check_sums(const struct tti_tune_any *machine, const char *what)
{
	struct tti_tune_table table = tti_tune_defaults();

	table.constants.cache_bytes = 1;
	for (size_t nbytes = 1; nbytes <= 1024 * MIB; nbytes *= 4) {
		const double all = best(&table, machine, TUTTI_ALL_REDUCE, nbytes);
		const double reduce = best(&table, machine, TUTTI_REDUCE, nbytes);
		const double broadcast = best(&table, machine, TUTTI_BROADCAST, nbytes);
		const double scatter = best(&table, machine, TUTTI_REDUCE_SCATTER, nbytes);
		const double gather = best(&table, machine, TUTTI_ALL_GATHER, nbytes);

		if (all > (reduce + broadcast) * (nbytes < MIB ? 1.5 : 1.02))
			fail_msg("%s, %zu bytes: all_reduce %g us, reduce %g + broadcast %g", what,
				 nbytes, all, reduce, broadcast);
		if (nbytes >= 64 * MIB && (scatter > all * 1.001 || gather > all * 1.001))
			fail_msg("%s, %zu bytes: all_reduce %g us, reduce_scatter %g, "
				 "all_gather %g",
				 what, nbytes, all, scatter, gather);
	}
}

static void host_memory_is_in_order(void **state)
{
	static const uint32_t nodes[] = { 1, 2, 3, 4, 5, 16, 100 },
			      ranks[] = { 1, 2, 3, 4, 7, 8, 64 };

	(void)state;
	for (size_t i = 0; i < sizeof(nodes) / sizeof(nodes[0]); i++)
		for (size_t k = 0; k < sizeof(ranks) / sizeof(ranks[0]); k++)
			for (double cores = 0; cores <= 8; cores += 4) {
				const struct tti_tune_any machine =
					groups(nodes[i], ranks[k], cores);
				char what[64];

				snprintf(what, sizeof(what), "%u x %u on %g cores", nodes[i],
					 ranks[k], cores);
				check_order(&machine, what);
				check_sums(&machine, what);
			}
}

/* Twice the rate, of anything: not slower. */
static void more_is_not_slower(void **state)
{
	struct tti_tune_any machine = groups(4, 4, 2);

	(void)state;
	machine.host.node_gbps = 3;
	machine.host.node_memory_gbps = 40;
	for (size_t c = 0; c < NCOLLECTIVES; c++)
		for (size_t nbytes = 8; nbytes <= 1024 * MIB; nbytes *= 8) {
			const struct tti_tune_table table = tti_tune_defaults();
			struct tti_tune_table fast = table;
			struct tti_tune_any better = machine;
			const double was = best(&table, &machine, collectives[c], nbytes);

			better.host.node_gbps *= 2;
			assert_true(best(&table, &better, collectives[c], nbytes) <= was);
			better.host.node_memory_gbps *= 2;
			better.host.cores *= 2;
			assert_true(best(&table, &better, collectives[c], nbytes) <= was);
			fast.constants.cross_gbps *= 2;
			fast.constants.copy_gbps *= 2;
			fast.constants.memory_gbps *= 2;
			fast.constants.socket_gbps *= 2;
			fast.constants.tcp_hop_us /= 2;
			assert_true(best(&fast, &machine, collectives[c], nbytes) <= was);
		}
}

/* -- Every machine ---------------------------------------------------------------- */

static void every_file(void **state)
{
	glob_t files;

	(void)state;
	machine_files(&files);
	for (size_t i = 0; i < files.gl_pathc; i += SANITIZED ? 3 : 1) {
		struct machine m;

		machine_read(&m, files.gl_pathv[i], TTI_MODEL_NCCL);
		for (uint32_t count = 1; count <= 4; count *= SANITIZED ? 4 : 2) {
			const struct tti_routes *routes = m.routes;
			struct tti_plan_job *job = NULL;
			struct tti_plan *plan = NULL;
			struct tti_tune_any machine;
			enum tti_tune_algo algo;
			const struct tti_tune_table table = tti_tune_defaults();

			if (count > 1 && m.graph->ntype[TTI_NODE_NET] == 0)
				continue;
			assert_int_equal(tti_plan_job_of(&routes, 1, count, 0, &job), TUTTI_OK);
			assert_int_equal(tti_plan_make(job, NULL, &plan), TUTTI_OK);
			machine = tti_tune_any_of_plan(plan);
			tti_tune_any_add_node(&machine, m.graph);
			assert_int_equal(machine.host.n, plan->nranks);
			check_order(&machine, files.gl_pathv[i]);
			assert_true(
				tti_tune_choose(&table, &machine, TUTTI_ALL_REDUCE, MIB, &algo));
			/* The same ranks as if they were CPUs. */
			machine.gpu = false;
			check_order(&machine, files.gl_pathv[i]);
			check_sums(&machine, files.gl_pathv[i]);
			tti_plan_free(plan);
			tti_plan_job_free(job);
		}
		machine_release(&m);
	}
	globfree(&files);
}

/* -- The file --------------------------------------------------------------------- */

static struct tti_tune_table *read_good(const char *text)
{
	struct tti_tune_table *table = NULL;

	if (tti_tune_read(text, strlen(text), "t.tune", &table) != TUTTI_OK)
		fail_msg("%s", tti_error_text());
	return table;
}

static void a_file_changes_what_it_names(void **state)
{
	struct tti_tune_table *table = read_good("# mine\n"
						 "constant wire_us 1.5 # faster\r\n"
						 "\n"
						 "choose all_reduce 16K double_tree reach mapped\n"
						 "choose all_reduce 16K ring\n"
						 "choose all_reduce inf tree\n"
						 "  choose\tbroadcast 1000 chain");
	const struct tti_tune_any machine = groups(4, 1, 0);
	enum tti_tune_algo algo;

	(void)state;
	near_to(table->constants.wire_us, 1.5);
	near_to(table->constants.tcp_hop_us, 3.05);
	assert_int_equal(table->nrules, 4);
	assert_true(tti_tune_choose(table, &machine, TUTTI_ALL_REDUCE, 16 * KIB, &algo));
	assert_int_equal(algo, TTI_TUNE_RING);
	/* There is no tree for host memory: the model goes on. */
	assert_true(tti_tune_choose(table, &machine, TUTTI_ALL_REDUCE, 16 * KIB + 1, &algo));
	assert_int_not_equal(algo, TTI_TUNE_TREE);
	assert_true(tti_tune_choose(table, &machine, TUTTI_BROADCAST, 1000, &algo));
	assert_int_equal(algo, TTI_TUNE_CHAIN);
	tti_tune_table_free(table);
}

static void what_is_written_is_read(void **state)
{
	struct tti_tune_table *table = read_good("constant socket_gbps 7.25\n"
						 "choose barrier inf exchange\n"
						 "choose reduce 3M flat\nchoose reduce 0 flat\n"
						 "choose reduce 1K-inf flat ranks 12\n"
						 "choose reduce 1M-4M memory ranks 2 reach copied\n"
						 "choose reduce 8M flat reach mapped\n"
						 "choose reduce 9M flat reach slots\n"
						 "reach call_ns 700\nreach copied_64k 9700\n"
						 "reach copied_512k 11850\n"
						 "reach slots_64k 8900\nreach slots_512k 9300\n"
						 "version 1.2.3\nmachine one, of # many words \n");
	struct tti_strbuf text = { 0 }, again = { 0 };
	struct tti_tune_table *copy;

	(void)state;
	tti_tune_write(table, &text);
	assert_false(text.failed);
	copy = read_good(text.text);
	tti_tune_write(copy, &again);
	assert_string_equal(text.text, again.text);
	assert_string_equal(copy->version, "1.2.3");
	assert_string_equal(copy->machine, "one, of # many words");
	assert_true(tti_tune_hash(table) == tti_tune_hash(copy));
	assert_memory_equal(&copy->figures, &table->figures, sizeof(table->figures));
	assert_int_equal(copy->figures.slots_512k, 9300);
	assert_int_equal(copy->rules[4].reach, TTI_REACH_COPIED);
	assert_int_equal(copy->rules[5].reach, TTI_REACH_MAPPED);
	/* Ranks must agree on all of it. */
	copy->constants.call_us += 1;
	assert_true(tti_tune_hash(table) != tti_tune_hash(copy));
	copy->constants = table->constants;
	copy->figures.call_ns++;
	assert_true(tti_tune_hash(table) != tti_tune_hash(copy));
	copy->figures = table->figures;
	copy->rules[5].reach = TTI_REACH_COPIED;
	assert_true(tti_tune_hash(table) != tti_tune_hash(copy));
	tti_tune_table_free(table);
	tti_tune_table_free(copy);
	tti_strbuf_release(&text);
	tti_strbuf_release(&again);
}

static void what_is_no_file_is_refused(void **state)
{
	static const struct {
		const char *text, *says;
	} cases[] = {
		{ "\nconstant speed 3\n", "t.tune:2: there is no constant \"speed\"" },
		{ "constant call_us fast", "t.tune:1: call_us \"fast\" is no number" },
		{ "constant call_us 1x", "t.tune:1" },
		{ "constant call_us -1", "out of range" },
		{ "constant copy_gbps 0", "out of range" },
		{ "constant copy_gbps nan", "out of range" },
		{ "constant copy_gbps inf", "out of range" },
		{ "constant copy_gbps", "1 more words" },
		{ "choose allreduce 8 ring", "no collective \"allreduce\"" },
		{ "choose all_reduce 8k ring", "\"8k\" is no size" },
		{ "choose all_reduce -8 ring", "is no size" },
		{ "choose all_reduce 8KB ring", "is no size" },
		{ "choose all_reduce 99999999999999999999 ring", "is no size" },
		{ "choose all_reduce 99999999999999999G ring", "is no size" },
		{ "choose all_reduce 8 rings", "no algorithm \"rings\"" },
		{ "choose all_reduce 8 ring fast", "4 more words" },
		{ "choose all_reduce 8- ring", "\"8-\" is no size" },
		{ "choose all_reduce -8 ring", "is no size" },
		{ "choose all_reduce 8K-4K ring", "is no size" },
		{ "choose all_reduce 8-16-32 ring", "is no size" },
		{ "choose all_reduce 8 ring rank 4", "is not \"ranks N\"" },
		{ "choose all_reduce 8 ring ranks 0", "is not \"ranks N\"" },
		{ "choose all_reduce 8 ring ranks -4", "is not \"ranks N\"" },
		{ "choose all_reduce 8 ring ranks 4 5", "6 more words" },
		{ "choose all_reduce 8 ring reach far",
		  "is not \"reach slots\", mapped or copied" },
		{ "choose all_reduce 8 ring reach mapped ranks 2", "\"ranks 2\" is too much" },
		{ "choose all_reduce 8 ring ranks 2 over mapped", "\"over mapped\" is not" },
		{ "choose all_reduce 8 memory", "add \"reach copied\"" },
		{ "reach call_ns 5", "none \"reach slots_512k\"" },
		{ "reach call_ns 0", "no whole number from 1" },
		{ "reach pages 5", "no figure \"pages\"" },
		{ "pick all_reduce 8 ring", "\"pick\"" },
		{ "0123456789012345678901234567890123456789012345678901234567890123456789",
		  "more than 63 letters" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct tti_tune_table *table = NULL;

		assert_int_equal(
			tti_tune_read(cases[i].text, strlen(cases[i].text), "t.tune", &table),
			TUTTI_EINVAL);
		assert_null(table);
		if (!strstr(tti_error_text(), cases[i].says))
			fail_msg("\"%s\" does not say \"%s\"", tti_error_text(), cases[i].says);
	}
	assert_int_equal(tti_tune_read("a\0b", 3, "t.tune", &(struct tti_tune_table *){ NULL }),
			 TUTTI_EINVAL);
	assert_int_equal(tti_tune_read_file("/nowhere/t.tune", &(struct tti_tune_table *){ NULL }),
			 TUTTI_EINVAL);
	assert_int_equal(tti_tune_read_file("/", &(struct tti_tune_table *){ NULL }), TUTTI_EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_host_by_hand),
		cmocka_unit_test(several_hosts_by_hand),
		cmocka_unit_test(gpus_by_hand),
		cmocka_unit_test(names_are_those_of_the_library),
		cmocka_unit_test(host_memory_is_in_order),
		cmocka_unit_test(more_is_not_slower),
		cmocka_unit_test(every_file),
		cmocka_unit_test(a_file_changes_what_it_names),
		cmocka_unit_test(what_is_written_is_read),
		cmocka_unit_test(what_is_no_file_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
