/* SPDX-License-Identifier: BSD-3-Clause */
/* What devices are: attributes and properties. */
#include <stdio.h>
#include <string.h>

#include "engine/facts.h"
#include "runtime/runtime.h"

#define NO_ATTRIBUTE 0

/* In the layout that programs of this major version have. */
struct properties {
#define ONE(majors, type, name, attribute) majors(type name;)
#define SOME(majors, name, n, attributes)  majors(int name[n];)
#define OTHER(majors, type, name, n)       majors(type name[n];)
#include "runtime/properties.def"
#undef ONE
#undef SOME
#undef OTHER
};

_Static_assert(sizeof(struct properties) == (TTI_CUDART_MAJOR == 13 ? 1008 : 1032),
	       "the layout is not NVIDIA's");

int tti_cudaDeviceGetAttribute(int *out, int attribute, int device)
{
	const int error = tti_cudart_check_device("cudaDeviceGetAttribute", device);

	if (error)
		return error;
	if (!out)
		return tti_cudart_null("cudaDeviceGetAttribute", "value");
	return tti_cuda_facts_attribute(attribute, device, out);
}

static int get(int attribute, int device)
{
	int value = 0;

	if (attribute != NO_ATTRIBUTE)
		(void)tti_cuda_facts_attribute(attribute, device, &value);
	return value;
}

static void fill(struct properties *out, int device)
{
	memset(out, 0, sizeof(*out));
#define ONE(majors, type, name, attribute) majors(out->name = (type)get(attribute, device);)
#define SOME(majors, name, n, attributes)                             \
	majors({                                                      \
		static const int from[n] = { TTI_UNPACK attributes }; \
		for (int at = 0; at < (n); at++)                      \
			out->name[at] = get(from[at], device);        \
	})
#define OTHER(majors, type, name, n)
#include "runtime/properties.def"
#undef ONE
#undef SOME
#undef OTHER
	(void)snprintf(out->name, sizeof(out->name), "%s", tti_cuda_facts_name());
	tti_cuda_facts_uuid(device, (uint8_t *)out->uuid);
	out->totalGlobalMem = tti_cuda_device_bytes();
}

static int get_properties(const char *function, void *out, int device, size_t nbytes)
{
	const int error = tti_cudart_check_device(function, device);
	struct properties all;

	if (error)
		return error;
	if (!out)
		return tti_cudart_null(function, "properties");
	fill(&all, device);
	memcpy(out, &all, nbytes);
	return 0;
}

#if TTI_CUDART_MAJOR == 12
/* Programs that ask by this name have the struct of CUDA 11, which ends here. */
int tti_cudaGetDeviceProperties(void *out, int device)
{
	return get_properties("cudaGetDeviceProperties", out, device,
			      offsetof(struct properties, hostRegisterSupported));
}

int tti_cudaGetDeviceProperties_v2(void *out, int device)
{
	return get_properties("cudaGetDeviceProperties", out, device, sizeof(struct properties));
}
#else
int tti_cudaGetDeviceProperties(void *out, int device)
{
	return get_properties("cudaGetDeviceProperties", out, device, sizeof(struct properties));
}
#endif
