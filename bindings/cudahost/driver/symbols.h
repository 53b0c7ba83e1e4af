/* SPDX-License-Identifier: BSD-3-Clause */
/* All functions by name: what cuGetProcAddress() finds. */
#ifndef TUTTI_CUDAHOST_DRIVER_SYMBOLS_H
#define TUTTI_CUDAHOST_DRIVER_SYMBOLS_H

#include <stdbool.h>

struct tti_driver_symbol {
	const char *base; /* without _v2 and the like */
	int since;        /* the release that brought this version */
	bool is_per_thread;
	void (*function)(void);
};

extern const struct tti_driver_symbol tti_driver_symbols[];
extern const int tti_driver_nsymbols;

#endif
