/* SPDX-License-Identifier: BSD-3-Clause */
/* A program of CUDA that launches a kernel and never asks for errors. Compiled by nvcc, the kernel
 * cannot run on host memory: the program has to end with a status that is not 0, and name it. */
#include <cstdio>

__global__ void triple(float *values, int n)
{
	const int at = blockIdx.x * blockDim.x + threadIdx.x;

	if (at < n)
		values[at] *= 3;
}

int main()
{
	float host[4] = { 1, 2, 3, 4 };
	float *device;

	if (cudaMalloc(&device, sizeof(host)) != cudaSuccess)
		return 2;
	cudaMemcpy(device, host, sizeof(host), cudaMemcpyHostToDevice);
	triple<<<1, 4>>>(device, 4);
	cudaMemcpy(host, device, sizeof(host), cudaMemcpyDeviceToHost);
	std::printf("%g\n", host[3]);
	cudaFree(device);
	return 0;
}
