/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_CUDA_FAULTS_H
#define TESTS_CUDA_FAULTS_H

/* Calls of the driver that fail, and what is left of them: the functions of the driver on host memory
 * that are for that (engine/host_abi.h).
 *
 * Threads: the test's main one. */

#include <stdint.h>

/* Numbers of CUDA. */
#define OUT_OF_MEMORY 2
#define UNKNOWN       999

/* Find the functions: before all else. */
void faults_begin(void);

/* Calls of the driver in this process so far. */
uint64_t faults_calls(void);
/* The call after `skipped` more fails with `error`; none(): no call fails any more. */
void faults_set(uint64_t skipped, int error);
void faults_none(void);

/* What is held now is what the process may keep: kernels, which are loaded once. */
void faults_keep(void);
/* Fails the test if anything else is held, of Tutti's objects or of the driver's. `failed`: which call
 * has failed. */
void faults_assert_nothing_held(uint64_t failed);

#endif
