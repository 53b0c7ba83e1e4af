/* SPDX-License-Identifier: BSD-3-Clause */
/* What the devices say of themselves: one source for both libraries. */
#ifndef TUTTI_CUDAHOST_ENGINE_FACTS_H
#define TUTTI_CUDAHOST_ENGINE_FACTS_H

#include <stdint.h>

#pragma GCC visibility push(default)

/* The release of CUDA that the libraries are like, as both their version functions tell it. */
#define TTI_CUDA_RELEASE 13000

#define TTI_CUDA_CAPABILITY_MAJOR 9
#define TTI_CUDA_CAPABILITY_MINOR 0

/* The greatest priority of a stream is the least number. */
#define TTI_CUDA_PRIORITY_LEAST    0
#define TTI_CUDA_PRIORITY_GREATEST (-5)

#define TTI_CUDA_PCI_BYTES  13 /* "0000:01:00.0" */
#define TTI_CUDA_UUID_BYTES 16

/* All devices have this name. */
const char *tti_cuda_facts_name(void);

/* The numbers of cudaDeviceAttr, which are those of CUdevice_attribute. EINVAL for a number that is
 * none of them, EDEVICE for a device that is not there. */
int tti_cuda_facts_attribute(int attribute, int device, int *out);

/* The same in all processes of this host until it is started anew; another for each device. */
void tti_cuda_facts_uuid(int device, uint8_t out[TTI_CUDA_UUID_BYTES]);

void tti_cuda_facts_pci(int device, char out[TTI_CUDA_PCI_BYTES]);
/* "DOMAIN:BUS:DEVICE.FUNCTION", "DOMAIN:BUS:DEVICE" or "BUS:DEVICE.FUNCTION", in hexadecimal.
 * EDEVICE if no device is there, EINVAL if the text is nothing of that. */
int tti_cuda_facts_by_pci(const char *text, int *out);

#pragma GCC visibility pop

#endif
