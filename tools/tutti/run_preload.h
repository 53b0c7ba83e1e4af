/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOOL_RUN_PRELOAD_H
#define TOOL_RUN_PRELOAD_H

#include <stdbool.h>

#include "tool.h"

/* Make the programs that this process starts load libtutti_malloc.so, or the CUDA runtime on host memory and
 * NCCL, before the libraries that LD_PRELOAD names already. If a library is missing, the error names it and
 * the option. */
bool run_preload_malloc(void);
bool run_preload_cuda(void);

/* Have what this process starts find so many devices of CUDA, which are host memory; where TUTTI_TOPO_FILE names a
 * topology, on the PCI buses of its first GPUs. A file that cannot be read, or has fewer, is an error. */
bool run_gpus(int gpus);

#endif
