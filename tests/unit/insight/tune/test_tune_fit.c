/* SPDX-License-Identifier: BSD-3-Clause */
/* Constants come back from the times that they predict, also from noisy ones; what no time
 * depends on stays. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "insight/tune/tune_fit.h"
#include "tutti/insight.h"
#include "util/error.h"
#include "util/hash.h"

#define MOST 2048

static struct tti_tune_sample samples[MOST];
static uint32_t nsamples;

/* All algorithms of some collectives that go round, by these constants. */
static void add(const struct tti_tune_constants *constants, struct tti_tune_machine machine,
		bool loopback)
{
	static const tutti_collective colls[] = { TUTTI_ALL_REDUCE, TUTTI_ALL_GATHER,
						  TUTTI_REDUCE_SCATTER };

	for (size_t c = 0; c < sizeof(colls) / sizeof(colls[0]); c++)
		for (int algo = 0; algo < TTI_TUNE_ALGO_COUNT; algo++)
			for (size_t nbytes = 8; nbytes <= (size_t)16 << 20; nbytes *= 8) {
				struct tti_tune_sample sample = { .machine = machine,
								  .coll = colls[c],
								  .algo = (enum tti_tune_algo)algo,
								  .nbytes = nbytes,
								  .loopback = loopback };

				sample.us = tti_tune_sample_us(constants, &sample);
				if (sample.us <= 0)
					continue;
				assert_true(nsamples < MOST);
				samples[nsamples++] = sample;
			}
}

/* One rank, two with a core each, four and eight on two cores; two over loopback. */
static void add_one_host(const struct tti_tune_constants *constants)
{
	for (uint32_t n = 1; n <= 8; n *= 2) {
		struct tti_tune_machine machine = tti_tune_machine_of_groups(n, 1, n, n);

		machine.cores = 2;
		add(constants, machine, false);
	}
	add(constants, tti_tune_machine_of_groups(2, 2, 1, 1), true);
}

static struct tti_tune_constants other_machine(void)
{
	struct tti_tune_constants constants = tti_tune_defaults().constants;

	constants.call_us = 0.2;
	constants.line_us = 0.08;
	constants.slot_us = 0.5;
	constants.yield_us = 1.4;
	constants.cross_gbps = 7;
	constants.copy_gbps = 40;
	constants.memory_gbps = 11;
	constants.node_memory_gbps = 17;
	constants.tcp_hop_us = 9;
	constants.socket_gbps = 2.5;
	return constants;
}

static int number_of(const char *name)
{
	for (int i = 0; i < TTI_TUNE_FIT_COUNT; i++)
		if (strcmp(tti_tune_fit_name(i), name) == 0)
			return i;
	fail_msg("no constant %s", name);
	return -1;
}

static void constants_come_back(void **state)
{
	const struct tti_tune_constants wanted = other_machine();
	struct tti_tune_constants constants = tti_tune_defaults().constants;
	struct tti_tune_fit fit;

	(void)state;
	nsamples = 0;
	add_one_host(&wanted);
	assert_int_equal(tti_tune_fit(samples, nsamples, &constants, &fit), TUTTI_OK);
	for (int i = 0; i < TTI_TUNE_FIT_COUNT; i++) {
		const double is = tti_tune_fit_value(&constants, i);
		const double should = tti_tune_fit_value(&wanted, i);

		if (fabs(is / should - 1) > 0.01)
			fail_msg("%s is %g, not %g", tti_tune_fit_name(i), is, should);
	}
	assert_true(fit.before > 1.3);
	assert_true(fit.after < 1.001);
	/* Nothing went over a wire, or woke a rank that waited for one. */
	assert_false(fit.fitted[number_of("wire_us")]);
	assert_false(fit.fitted[number_of("node_net_gbps")]);
	assert_false(fit.fitted[number_of("wake_us")]);
	assert_true(fit.fitted[number_of("line_us")]);
	assert_true(constants.wire_us == wanted.wire_us);
}

/* From 0 to 1, always the same. */
static double draw(uint64_t *state)
{
	*state = tti_hash_mix(*state + 1);
	return (double)(*state >> 11) / 9007199254740992.0;
}

static void noise_is_borne(void **state)
{
	const struct tti_tune_constants wanted = other_machine();
	struct tti_tune_constants constants = tti_tune_defaults().constants;
	struct tti_tune_fit fit;
	uint64_t seed = 1;

	(void)state;
	nsamples = 0;
	add_one_host(&wanted);
	/* A tenth either way, and one in twenty was disturbed. */
	for (uint32_t i = 0; i < nsamples; i++) {
		samples[i].us *= 0.9 + 0.2 * draw(&seed);
		if (draw(&seed) < 0.05)
			samples[i].us *= 20;
	}
	assert_int_equal(tti_tune_fit(samples, nsamples, &constants, &fit), TUTTI_OK);
	for (int i = 0; i < TTI_TUNE_FIT_COUNT; i++) {
		const double is = tti_tune_fit_value(&constants, i);
		const double should = tti_tune_fit_value(&wanted, i);

		if (fit.fitted[i] && fabs(log(is / should)) > 0.35)
			fail_msg("%s is %g, not %g", tti_tune_fit_name(i), is, should);
	}
	assert_true(fit.after < 1.1);
}

/* Between hosts the wire counts, and only with it what a message takes there. */
static void wires(void **state)
{
	struct tti_tune_constants wanted = tti_tune_defaults().constants, constants = wanted;
	struct tti_tune_fit fit;

	(void)state;
	wanted.wire_us = 40;
	wanted.node_net_gbps = 0.11;
	nsamples = 0;
	add(&wanted, tti_tune_machine_of_groups(4, 4, 1, 1), false);
	add(&wanted, tti_tune_machine_of_groups(2, 2, 1, 1), true);
	assert_int_equal(tti_tune_fit(samples, nsamples, &constants, &fit), TUTTI_OK);
	assert_true(fabs(constants.wire_us / wanted.wire_us - 1) < 0.02);
	assert_true(fabs(constants.node_net_gbps / wanted.node_net_gbps - 1) < 0.02);
	assert_false(fit.fitted[number_of("line_us")]);
}

/* What has nothing to do with the model brings nothing, and changes nothing. */
static void what_brings_nothing_changes_nothing(void **state)
{
	const struct tti_tune_constants defaults = tti_tune_defaults().constants;
	struct tti_tune_constants constants = defaults;
	struct tti_tune_fit fit;
	uint64_t seed = 7;

	(void)state;
	nsamples = 0;
	add_one_host(&defaults);
	for (uint32_t i = 0; i < nsamples; i++)
		samples[i].us *= exp(6 * (draw(&seed) - 0.5));
	assert_int_equal(tti_tune_fit(samples, nsamples, &constants, &fit), TUTTI_OK);
	assert_true(fit.after <= fit.before * 0.98 ||
		    memcmp(&constants, &defaults, sizeof(defaults)) == 0);
}

static void bad_samples_are_named(void **state)
{
	struct tti_tune_constants constants = tti_tune_defaults().constants;
	struct tti_tune_fit fit;

	(void)state;
	nsamples = 0;
	assert_int_equal(tti_tune_fit(samples, 0, &constants, &fit), TUTTI_EINVAL);
	add_one_host(&constants);
	samples[3].us = 0;
	assert_int_equal(tti_tune_fit(samples, nsamples, &constants, &fit), TUTTI_EINVAL);
	assert_non_null(strstr(tti_error_text(), "sample 3, all_reduce"));
	samples[3].us = 1;
	samples[5].algo = TTI_TUNE_TREE;
	assert_int_equal(tti_tune_fit(samples, nsamples, &constants, &fit), TUTTI_EINVAL);
	assert_non_null(strstr(tti_error_text(), "sample 5"));
}

/* As tools have it: a file that is read, of these samples, with these choices. */
static void as_a_tune_file(void **state)
{
	struct tutti_tune_sample sample = TUTTI_TUNE_SAMPLE_INIT;
	char *file = NULL, *report = NULL;
	struct tti_tune_table *table = NULL;

	(void)state;
	sample.collective = TUTTI_ALL_REDUCE;
	sample.algorithm = "exchange";
	sample.nbytes = 8;
	sample.nranks = sample.most = sample.least = 2;
	sample.nhosts = 1;
	sample.us = 100;
	assert_int_equal(
		tutti_tune_fit(&sample, 1, "choose all_reduce 8 ring ranks 2\n", 0, &file, &report),
		TUTTI_OK);
	assert_int_equal(tti_tune_read(file, strlen(file), "file", &table), TUTTI_OK);
	assert_int_equal(table->nrules, 1);
	assert_int_equal(table->rules[0].ranks, 2);
	assert_string_not_equal(table->machine, "");
	assert_string_not_equal(table->version, "");
	assert_non_null(strstr(report, "half of 1 times are within"));
	tti_tune_table_free(table);
	free(file);
	free(report);
	assert_int_equal(tutti_tune_fit(&sample, 1, "choose all_reduce", 0, &file, NULL),
			 TUTTI_EINVAL);
	assert_non_null(strstr(tti_error_text(), "choices:1"));
	sample.algorithm = "exchang";
	assert_int_equal(tutti_tune_fit(&sample, 1, NULL, 0, &file, NULL), TUTTI_EINVAL);
	assert_non_null(strstr(tti_error_text(), "none \"exchang\""));
	sample.algorithm = "exchange";
	sample.most = 3;
	assert_int_equal(tutti_tune_fit(&sample, 1, NULL, 0, &file, NULL), TUTTI_EINVAL);
	sample.size = 8;
	assert_int_equal(tutti_tune_fit(&sample, 1, NULL, 0, &file, NULL), TUTTI_EINVAL);
	assert_non_null(strstr(tti_error_text(), "TUTTI_TUNE_SAMPLE_INIT"));
	assert_null(file);
	assert_int_equal(tutti_tune_keep("/tmp/none", "nonsense", &file), TUTTI_EINVAL);
	assert_null(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(constants_come_back),
		cmocka_unit_test(noise_is_borne),
		cmocka_unit_test(wires),
		cmocka_unit_test(what_brings_nothing_changes_nothing),
		cmocka_unit_test(bad_samples_are_named),
		cmocka_unit_test(as_a_tune_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
