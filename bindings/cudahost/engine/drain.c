/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/drain.h"

#include <stdlib.h>

#include "engine/internal.h"

int tti_cuda_device_drain(int device)
{
	struct tti_cuda_point *points = NULL;
	size_t n = 0;
	int error = tti_cuda_device_check(device);

	if (!error)
		error = tti_cuda_device_may_wait("the streams of a device are waited for");
	if (!error)
		error = tti_cuda_stream_busy(device, &points, &n);
	if (error)
		return error;
	for (size_t at = 0; at < n; at++) {
		if (!error)
			error = tti_cuda_point_wait(&points[at]);
		tti_cuda_point_release(&points[at]);
	}
	free(points);
	return error;
}

void tti_cuda_drain_all(void)
{
	if (!tti_cuda_device_waits() || tti_cuda_begin())
		return;
	for (int device = 0; device < tti_cuda_device_count(); device++)
		(void)tti_cuda_device_drain(device);
}
