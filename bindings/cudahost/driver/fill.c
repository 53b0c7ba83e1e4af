/* SPDX-License-Identifier: BSD-3-Clause */
/* Fills. */
#include "driver/driver.h"

static struct tti_cuda_fill fill_of(CUdeviceptr to, size_t pitch, unsigned value, unsigned element,
				    size_t width, size_t height)
{
	return (struct tti_cuda_fill){
		.to = { tti_driver_address(to), pitch, height },
		.width = width,
		.height = height,
		.depth = 1,
		.element = element,
		.value = value,
	};
}

static CUresult now(const struct tti_cuda_fill fill, CUstream stream)
{
	struct tti_cuda_stream *in;
	int bad = tti_driver_begin_context(NULL);

	if (!bad)
		bad = tti_driver_stream(stream, &in);
	return tti_driver_result(bad ? bad : tti_cuda_fill_wait(&fill, in));
}

static CUresult later(const struct tti_cuda_fill fill, CUstream stream)
{
	struct tti_cuda_stream *in;
	const int bad = tti_driver_stream(stream, &in);

	return tti_driver_result(bad ? bad : tti_cuda_fill_queue(&fill, in));
}

static struct tti_cuda_fill row(CUdeviceptr to, unsigned value, unsigned element, size_t n)
{
	return fill_of(to, 0, value, element, n, 1);
}

/* A function and the one whose default stream is the thread's. */
#define NOW(name, params, fill)                         \
	CUresult name params                            \
	{                                               \
		return now(fill, CU_STREAM_LEGACY);     \
	}                                               \
	CUresult name##_ptds params                     \
	{                                               \
		return now(fill, CU_STREAM_PER_THREAD); \
	}
#define LATER(name, params, fill)                                  \
	CUresult name params                                       \
	{                                                          \
		return later(fill, stream);                        \
	}                                                          \
	CUresult name##_ptsz params                                \
	{                                                          \
		return later(fill, tti_driver_per_thread(stream)); \
	}

NOW(cuMemsetD8_v2, (CUdeviceptr to, unsigned char value, size_t n), row(to, value, 1, n))
LATER(cuMemsetD8Async, (CUdeviceptr to, unsigned char value, size_t n, CUstream stream),
      row(to, value, 1, n))
NOW(cuMemsetD2D8_v2,
    (CUdeviceptr to, size_t pitch, unsigned char value, size_t width, size_t height),
    fill_of(to, pitch, value, 1, width, height))
LATER(cuMemsetD2D8Async,
      (CUdeviceptr to, size_t pitch, unsigned char value, size_t width, size_t height,
       CUstream stream),
      fill_of(to, pitch, value, 1, width, height))
NOW(cuMemsetD16_v2, (CUdeviceptr to, unsigned short value, size_t n), row(to, value, 2, n))
LATER(cuMemsetD16Async, (CUdeviceptr to, unsigned short value, size_t n, CUstream stream),
      row(to, value, 2, n))
NOW(cuMemsetD2D16_v2,
    (CUdeviceptr to, size_t pitch, unsigned short value, size_t width, size_t height),
    fill_of(to, pitch, value, 2, width, height))
LATER(cuMemsetD2D16Async,
      (CUdeviceptr to, size_t pitch, unsigned short value, size_t width, size_t height,
       CUstream stream),
      fill_of(to, pitch, value, 2, width, height))
NOW(cuMemsetD32_v2, (CUdeviceptr to, unsigned value, size_t n), row(to, value, 4, n))
LATER(cuMemsetD32Async, (CUdeviceptr to, unsigned value, size_t n, CUstream stream),
      row(to, value, 4, n))
NOW(cuMemsetD2D32_v2, (CUdeviceptr to, size_t pitch, unsigned value, size_t width, size_t height),
    fill_of(to, pitch, value, 4, width, height))
LATER(cuMemsetD2D32Async,
      (CUdeviceptr to, size_t pitch, unsigned value, size_t width, size_t height, CUstream stream),
      fill_of(to, pitch, value, 4, width, height))
