/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/facts.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "engine/internal.h"

/* By number. What is not here is 0: it is not there, and programs that ask before they use it do
 * without. That is so for all that kernels and textures need, and for RDMA, multicast and handles
 * of fabrics. Kernels cannot run, yet programs compute with the sizes that a launch would have, and
 * so these are not 0. */
static const int attributes[] = {
	[1] = 1024, /* threads of a block */
	[2] = 1024, /* in each direction */
	[3] = 1024,
	[4] = 64,
	[5] = 2147483647, /* blocks of a grid in each direction */
	[6] = 65535,
	[7] = 65535,
	[8] = 49152,       /* shared memory of a block */
	[9] = 65536,       /* constant memory */
	[10] = 32,         /* threads of a warp */
	[11] = 2147483647, /* bytes of a pitch */
	[12] = 65536,      /* registers of a block */
	[13] = 1000000,    /* kHz */
	[14] = 512,        /* alignment of textures */
	[15] = 1,          /* copies run beside kernels */
	[19] = 1,          /* host memory can be mapped */
	[31] = 1,          /* kernels run beside each other */
	[36] = 1000000,    /* kHz of the memory */
	[37] = 64,         /* bits of its bus */
	[38] = 1 << 20,    /* second-level cache */
	[39] = 2048,       /* threads of a multiprocessor */
	[40] = 2,          /* copy engines: a thread for each stream */
	[41] = 1,          /* one address space */
	[51] = 32,         /* alignment of a texture's pitch */
	[75] = TTI_CUDA_CAPABILITY_MAJOR,
	[76] = TTI_CUDA_CAPABILITY_MINOR,
	[78] = 1,     /* streams have priorities */
	[81] = 65536, /* shared memory of a multiprocessor */
	[82] = 65536, /* registers of a multiprocessor */
	[83] = 1,     /* managed memory */
	[86] = 1,     /* atomic with the host */
	[87] = 2,     /* single to double precision */
	[89] = 1,     /* managed memory while a kernel runs */
	[91] = 1,     /* registered memory by the host's address */
	[97] = 49152, /* shared memory of a block, if it asks */
	[99] = 1,     /* host memory can be registered */
	[101] = 1,    /* the host can use managed memory */
	[106] = 32,   /* blocks of a multiprocessor */
	[113] = 1,    /* read-only host memory can be registered */
	[115] = 1,    /* pools */
	[122] = 1,    /* streams write and await 64 bits */
	[123] = 1,    /* and await "not or" */
	[125] = 1,    /* events of several processes */
	[131] = -1,   /* no memory node of its own */
	[134] = -1,   /* near no memory node of the host */
	[147] = 0,    /* the last */
};

enum {
	MULTIPROCESSORS = 16,
	BUS = 33,
	SLOT = 34,
	DOMAIN = 50,
	VMM = 102,    /* memory and addresses apart */
	VMM_FD = 103, /* file descriptors as handles */
	LAST = (int)(sizeof(attributes) / sizeof(attributes[0])) - 1
};

const char *tti_cuda_facts_name(void)
{
	return "Tutti host memory";
}

static int no_device(int device)
{
	const int n = tti_cuda_device_count();

	if (!n)
		return tti_cuda_fail(TTI_CUDA_ENODEVICE,
				     "device %d: there are none, TUTTI_CUDAHOST_GPUS is 0", device);
	return tti_cuda_fail(TTI_CUDA_EDEVICE,
			     "device %d: there are 0..%d; TUTTI_CUDAHOST_GPUS says how many",
			     device, n - 1);
}

int tti_cuda_facts_attribute(int attribute, int device, int *out)
{
	if (device < 0 || device >= tti_cuda_device_count())
		return no_device(device);
	if (attribute < 1 || attribute > LAST)
		return tti_cuda_fail(TTI_CUDA_EINVAL, "attribute %d: a device has 1..%d", attribute,
				     LAST);

	const struct tti_cuda_pci place = tti_cuda_device_pci(device);

	switch (attribute) {
	case MULTIPROCESSORS:
		*out = tti_cuda_device_multiprocessors();
		break;
	case VMM:
	case VMM_FD:
		*out = tti_cuda_device_has_vmm();
		break;
	case BUS:
		*out = (int)place.bus;
		break;
	case SLOT:
		*out = (int)place.slot;
		break;
	case DOMAIN:
		*out = (int)place.domain;
		break;
	default:
		*out = attributes[attribute];
	}
	return TTI_CUDA_OK;
}

/* FNV-1a (Fowler, Noll, Vo) of 64 bits. */
static uint64_t hash(const char *text, size_t nbytes)
{
	uint64_t h = 0xcbf29ce484222325u;

	for (size_t i = 0; i < nbytes; i++)
		h = (h ^ (unsigned char)text[i]) * 0x100000001b3u;
	return h;
}

/* A host is what was started once; without /proc all hosts are one. */
static uint64_t host_number(void)
{
	char id[64];
	ssize_t n = 0;
	const int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);

	if (fd >= 0) {
		n = read(fd, id, sizeof(id));
		close(fd);
	}
	return hash(id, n > 0 ? (size_t)n : 0);
}

void tti_cuda_facts_uuid(int device, uint8_t out[TTI_CUDA_UUID_BYTES])
{
	const uint64_t host = host_number();

	memcpy(out, "Tutti", 5);
	out[5] = 0;
	/* Version 8 of RFC 9562: a layout of one's own. */
	out[6] = 0x80;
	out[7] = (uint8_t)device;
	memcpy(out + 8, &host, sizeof(host));
	out[8] = (uint8_t)((out[8] & 0x3f) | 0x80);
}

void tti_cuda_facts_pci(int device, char out[TTI_CUDA_PCI_BYTES])
{
	const struct tti_cuda_pci place = tti_cuda_device_pci(device);

	snprintf(out, TTI_CUDA_PCI_BYTES, "%04x:%02x:%02x.%x", place.domain & 0xffffu,
		 place.bus & 0xffu, place.slot & 0xffu, place.function & 0xfu);
}

int tti_cuda_facts_by_pci(const char *text, int *out)
{
	struct tti_cuda_pci place;

	if (!tti_cuda_pci_parse(text, &place))
		return tti_cuda_fail(TTI_CUDA_EINVAL,
				     "PCI bus id \"%.40s\": it is no \"0000:01:00.0\"", text);
	for (int device = 0; device < tti_cuda_device_count(); device++) {
		const struct tti_cuda_pci here = tti_cuda_device_pci(device);

		if (tti_cuda_pci_is_same(&here, &place)) {
			*out = device;
			return TTI_CUDA_OK;
		}
	}
	return tti_cuda_fail(TTI_CUDA_EDEVICE, "PCI bus id \"%.40s\": no device is there", text);
}
