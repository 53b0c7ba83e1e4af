/* SPDX-License-Identifier: BSD-3-Clause */
/* A program of CUDA whose kernels are compiled for the host with cuda_on_host.h, and compute in memory that
 * the host may not touch: status 0 if they have computed what they should. */
#include <cstdio>

template <class T> __global__ void axpy(T *y, const T *x, T a, int n)
{
	const int at = int(blockIdx.x * blockDim.x + threadIdx.x);

	if (at < n)
		y[at] += a * x[at];
}

struct vector {
	int n;
	float *at;
};

__global__ void fill(vector to, float value)
{
	const int at = int(blockIdx.x * blockDim.x + threadIdx.x);

	if (at < to.n)
		to.at[at] = value;
}

__global__ void count(unsigned *n, unsigned *most)
{
	atomicAdd(n, 1);
	atomicMax(most, (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x);
}

static bool is_right(bool right, const char *what)
{
	if (!right)
		std::printf("wrong: %s, %s\n", what, cudaGetErrorString(cudaGetLastError()));
	return right;
}

int main()
{
	const int n = 1000;
	float *x, *y, a = 2, got[n];
	unsigned *counted, counts[2];
	int all = n;
	void *args[] = { &y, &x, &a, &all };
	bool right = true;

	cudaMalloc(&x, n * sizeof(*x));
	cudaMalloc(&y, n * sizeof(*y));
	cudaMalloc(&counted, 2 * sizeof(*counted));
	cudaMemset(counted, 0, 2 * sizeof(*counted));
	for (int at = 0; at < n; at++)
		got[at] = float(at);
	cudaMemcpy(x, got, sizeof(got), cudaMemcpyHostToDevice);
	tutti::loops<fill>::launch(8, 128, 0, nullptr, vector{ n, y }, 1);
	tutti::loops<axpy<float>>::launch(8, 128, 0, nullptr, y, x, 3, n);
	cudaLaunchKernel(TUTTI_KERNEL(axpy<float>), dim3(8), dim3(128), args, 0, nullptr);
	a = 100;
	tutti::loops<count>::launch(dim3(2, 3), dim3(4, 5, 6), 0, nullptr, counted, counted + 1);
	right &= is_right(cudaDeviceSynchronize() == cudaSuccess, "synchronize");
	cudaMemcpy(got, y, sizeof(got), cudaMemcpyDeviceToHost);
	cudaMemcpy(counts, counted, sizeof(counts), cudaMemcpyDeviceToHost);
	for (int at = 0; at < n; at++)
		right &= is_right(got[at] == float(1 + 5 * at), "y");
	right &= is_right(counts[0] == 2 * 3 * 4 * 5 * 6, "threads");
	right &= is_right(counts[1] == 4 * 5 * 6 - 1, "last thread");
	right &= is_right(cudaGetLastError() == cudaSuccess, "last error");
	cudaFree(x);
	cudaFree(y);
	cudaFree(counted);
	return right ? 0 : 1;
}
