/* SPDX-License-Identifier: BSD-3-Clause */
#include "insight/tune/tune_fit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "util/error.h"
#include "util/mem.h"

#define COUNT         TTI_TUNE_FIT_COUNT
#define ROUNDS_DOWN   200
/* Where the model takes the larger of two times, it does not depend on the constants of the smaller
 * one. So the descent ends early; then each constant is tried alone, and the descent goes on. */
#define ROUNDS_AROUND 20
/* A sample whose ratio has a larger logarithm does not pull harder: a factor of 1.35. */
#define WILD          0.3
/* The most by which a constant may change, in all and in one step: factors of 50 and 2.7. */
#define FURTHEST      3.9
#define STEP          1.0
/* The weight that pulls a constant back to its first value, beside the samples: very small. */
#define PULL          1e-4
/* A constant is not fitted if its samples hold less information, or leave room for a factor of
 * 1.6. */
#define INFORMATION   1e-2
#define UNCERTAIN     0.5
#define NUDGE         1e-4
/* Where the model takes the larger of two times, the descent may end early, so it begins at these
 * factors, too. */
#define OFF           1.2
/* A fit that does not bring half of the samples this much nearer is not worth having. */
#define WORTH         0.98

static const struct {
	const char *name;
	size_t offset;
} known[COUNT] = {
#define X(name) { #name, offsetof(struct tti_tune_constants, name) },
	TTI_TUNE_FIT_MAP(X)
#undef X
};

struct fit {
	const struct tti_tune_sample *samples;
	uint32_t n;
	const struct tti_tune_constants *from;
	bool frozen[COUNT];
	double at[COUNT];         /* logarithm of the ratio to `from` */
	double *residual, *slope; /* [n], [n * COUNT] */
	double normal[COUNT][COUNT], gradient[COUNT];
};

const char *tti_tune_fit_name(int which)
{
	return known[which].name;
}

double tti_tune_fit_value(const struct tti_tune_constants *constants, int which)
{
	return *(const double *)((const char *)constants + known[which].offset);
}

static struct tti_tune_constants constants_at(const struct fit *fit, const double *at)
{
	struct tti_tune_constants constants = *fit->from;

	for (int i = 0; i < COUNT; i++)
		*(double *)((char *)&constants + known[i].offset) *= exp(at[i]);
	return constants;
}

double tti_tune_sample_us(const struct tti_tune_constants *constants,
			  const struct tti_tune_sample *sample)
{
	struct tti_tune_constants own = *constants;
	struct tti_tune_machine machine = sample->machine;
	struct tti_tune_time time;

	if (sample->loopback) {
		own.wire_us = 0;
		machine.node_gbps = 1e6;
	}
	return tti_tune_predict(&own, &machine, sample->coll, sample->algo, sample->nbytes, &time)
		       ? time.us
		       : 0;
}

static double residual_at(const struct fit *fit, const struct tti_tune_constants *constants,
			  uint32_t i)
{
	return log(tti_tune_sample_us(constants, &fit->samples[i]) / fit->samples[i].us);
}

static double weight(double residual)
{
	return fabs(residual) > WILD ? WILD / fabs(residual) : 1;
}

static double cost_at(const struct fit *fit, const double *at)
{
	const struct tti_tune_constants constants = constants_at(fit, at);
	double cost = 0;

	for (int i = 0; i < COUNT; i++)
		cost += PULL * at[i] * at[i];
	for (uint32_t i = 0; i < fit->n; i++) {
		const double r = fabs(residual_at(fit, &constants, i));

		cost += r > WILD ? WILD * (2 * r - WILD) : r * r;
	}
	return cost;
}

/* Residuals and their slopes. */
static void look(struct fit *fit)
{
	const struct tti_tune_constants here = constants_at(fit, fit->at);

	for (uint32_t i = 0; i < fit->n; i++)
		fit->residual[i] = residual_at(fit, &here, i);
	for (int k = 0; k < COUNT; k++) {
		double at[COUNT];
		struct tti_tune_constants there;

		memcpy(at, fit->at, sizeof(at));
		at[k] += fit->frozen[k] ? 0 : NUDGE;
		there = constants_at(fit, at);
		for (uint32_t i = 0; i < fit->n; i++)
			fit->slope[i * COUNT + (size_t)k] =
				fit->frozen[k]
					? 0
					: (residual_at(fit, &there, i) - fit->residual[i]) / NUDGE;
	}
}

static void make_normal(struct fit *fit)
{
	memset(fit->normal, 0, sizeof(fit->normal));
	for (int k = 0; k < COUNT; k++) {
		fit->normal[k][k] = PULL;
		fit->gradient[k] = PULL * fit->at[k];
	}
	for (uint32_t i = 0; i < fit->n; i++) {
		const double *slope = &fit->slope[i * COUNT], w = weight(fit->residual[i]);

		for (int k = 0; k < COUNT; k++) {
			fit->gradient[k] += w * slope[k] * fit->residual[i];
			for (int l = 0; l < COUNT; l++)
				fit->normal[k][l] += w * slope[k] * slope[l];
		}
	}
}

/* Cholesky, of a matrix that is positive definite: it has something added to its diagonal. */
static void factor(double m[COUNT][COUNT])
{
	for (int k = 0; k < COUNT; k++)
		for (int l = k; l < COUNT; l++) {
			double sum = m[k][l];

			for (int i = 0; i < k; i++)
				sum -= m[k][i] * m[l][i];
			m[l][k] = l == k ? sqrt(fmax(sum, 1e-12)) : sum / m[k][k];
		}
}

static void solve(double m[COUNT][COUNT], double *x)
{
	for (int k = 0; k < COUNT; k++) {
		for (int i = 0; i < k; i++)
			x[k] -= m[k][i] * x[i];
		x[k] /= m[k][k];
	}
	for (int k = COUNT - 1; k >= 0; k--) {
		for (int i = k + 1; i < COUNT; i++)
			x[k] -= m[i][k] * x[i];
		x[k] /= m[k][k];
	}
}

static double clamp(double value, double most)
{
	return fmax(-most, fmin(most, value));
}

/* The constants after a step; more `damping` makes the step shorter and steeper. */
static void step(const struct fit *fit, double damping, double *to)
{
	double m[COUNT][COUNT], x[COUNT];

	memcpy(m, fit->normal, sizeof(m));
	for (int k = 0; k < COUNT; k++) {
		m[k][k] *= 1 + damping;
		x[k] = -fit->gradient[k];
	}
	factor(m);
	solve(m, x);
	for (int k = 0; k < COUNT; k++)
		to[k] = clamp(fit->at[k] + clamp(x[k], STEP), FURTHEST);
}

static double descend_from_here(struct fit *fit)
{
	double cost = cost_at(fit, fit->at), damping = 1e-2;

	for (int round = 0; round < ROUNDS_DOWN && damping < 1e6; round++) {
		double to[COUNT], there;

		look(fit);
		make_normal(fit);
		step(fit, damping, to);
		there = cost_at(fit, to);
		if (there >= cost) {
			damping *= 4;
			continue;
		}
		memcpy(fit->at, to, sizeof(fit->at));
		if (cost - there < 1e-12 * cost)
			break;
		cost = there;
		damping /= 8;
	}
	return cost;
}

/* One constant at a time, far and near. Whether that brings something. */
static bool look_around(struct fit *fit, double *cost)
{
	const double before = *cost;

	for (double far = FURTHEST / 2; far > 1e-4; far /= 2)
		for (int k = 0; k < 2 * COUNT; k++) {
			double to[COUNT], there;

			if (fit->frozen[k / 2])
				continue;
			memcpy(to, fit->at, sizeof(to));
			to[k / 2] = clamp(to[k / 2] + (k % 2 ? far : -far), FURTHEST);
			there = cost_at(fit, to);
			if (there < *cost) {
				*cost = there;
				memcpy(fit->at, to, sizeof(to));
			}
		}
	return *cost < before * (1 - 1e-6);
}

static void descend(struct fit *fit)
{
	double cost;
	int round = 0;

	do
		cost = descend_from_here(fit);
	while (look_around(fit, &cost) && ++round < ROUNDS_AROUND);
	look(fit);
	make_normal(fit);
}

/* The spread of the logarithm of one constant, from the curvature at the end and the residuals. */
static double error_of(const struct fit *fit, int which)
{
	double m[COUNT][COUNT], x[COUNT] = { 0 }, sum = 0;
	const double degrees = fit->n > COUNT ? fit->n - COUNT : 1;

	for (uint32_t i = 0; i < fit->n; i++)
		sum += weight(fit->residual[i]) * fit->residual[i] * fit->residual[i];
	memcpy(m, fit->normal, sizeof(m));
	x[which] = 1;
	factor(m);
	solve(m, x);
	return sqrt(sum / degrees * x[which]);
}

/* Whether all that is left is determined; else what is least so is put back. */
static bool settle(struct fit *fit, struct tti_tune_fit *out)
{
	double worst = UNCERTAIN;
	bool changed = false;
	int which = -1;

	for (int k = 0; k < COUNT; k++) {
		const bool blind = fit->normal[k][k] < INFORMATION;
		const double error = blind ? INFINITY : error_of(fit, k);

		out->fitted[k] = !fit->frozen[k];
		out->spread[k] = fit->frozen[k] ? 1 : exp(error);
		if (!fit->frozen[k] && blind) {
			fit->frozen[k] = changed = true;
		} else if (!fit->frozen[k] && error > worst) {
			worst = error;
			which = k;
		}
	}
	if (which < 0 && !changed)
		return true;
	if (!changed)
		fit->frozen[which] = true;
	memset(fit->at, 0, sizeof(fit->at));
	return false;
}

static int by_value(const void *left, const void *right)
{
	const double *a = left, *b = right;

	return (*a > *b) - (*a < *b);
}

/* As a factor. */
static double median_error(struct fit *fit, const struct tti_tune_constants *constants)
{
	for (uint32_t i = 0; i < fit->n; i++)
		fit->residual[i] = fabs(residual_at(fit, constants, i));
	qsort(fit->residual, fit->n, sizeof(*fit->residual), by_value);
	return exp(fit->residual[fit->n / 2]);
}

static tutti_status check(const struct tti_tune_constants *constants,
			  const struct tti_tune_sample *samples, uint32_t n)
{
	if (!n)
		return tti_fail(TUTTI_EINVAL, "no samples: there is nothing to fit");
	for (uint32_t i = 0; i < n; i++) {
		const double us = tti_tune_sample_us(constants, &samples[i]);

		if (!(samples[i].us > 0) || !isfinite(samples[i].us) || !(us > 0))
			return tti_fail(TUTTI_EINVAL,
					"sample %u, %s of %zu bytes by %s: %g us measured, %g "
					"predicted: both must be above 0",
					i, tutti_collective_name(samples[i].coll),
					samples[i].nbytes, tti_tune_algo_name(samples[i].algo),
					samples[i].us, us);
	}
	return TUTTI_OK;
}

tutti_status tti_tune_fit(const struct tti_tune_sample *samples, uint32_t nsamples,
			  struct tti_tune_constants *constants, struct tti_tune_fit *out)
{
	struct fit fit = { .samples = samples, .n = nsamples, .from = constants };
	struct tti_tune_constants found;

	TTI_TRY(check(constants, samples, nsamples));
	fit.residual = tti_calloc(nsamples, sizeof(*fit.residual));
	fit.slope = tti_calloc((size_t)nsamples * COUNT, sizeof(*fit.slope));
	if (!fit.residual || !fit.slope) {
		tti_free(fit.residual);
		tti_free(fit.slope);
		return tti_fail(TUTTI_ENOMEM, "fit of %u samples: out of memory", nsamples);
	}
	do
		descend(&fit);
	while (!settle(&fit, out));
	found = constants_at(&fit, fit.at);
	out->before = median_error(&fit, constants);
	out->after = median_error(&fit, &found);
	if (out->after < out->before * WORTH || out->after < 1 + 1e-6)
		*constants = found;
	else
		memset(out->fitted, 0, sizeof(out->fitted));
	tti_free(fit.residual);
	tti_free(fit.slope);
	return TUTTI_OK;
}
