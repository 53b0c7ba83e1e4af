/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_DEVICE_FAMILIES_H
#define TTI_DEVICE_FAMILIES_H

/* Types that share a kernel, tutti_run_FAMILY, as most of it is the same for all of them: compiling one
 * for each type would take twice as long, and twice the room.
 *
 * Owner: none. Threads: any. */

/* X(type, family): those of TUTTI_TYPE_MAP. */
#define TTI_DEV_TYPE_MAP(X)         \
	X(INT8, int8)               \
	X(UINT8, int8)              \
	X(INT32, int32)             \
	X(UINT32, int32)            \
	X(INT64, int64)             \
	X(UINT64, int64)            \
	X(FLOAT16, float16)         \
	X(FLOAT32, float32)         \
	X(FLOAT64, float64)         \
	X(BFLOAT16, bfloat16)       \
	X(FLOAT8_E4M3, float8_e4m3) \
	X(FLOAT8_E5M2, float8_e5m2) \
	X(INT16, int16)             \
	X(UINT16, int16)            \
	X(BOOL, int8)               \
	X(COMPLEX64, float32)       \
	X(COMPLEX128, float64)

/* X(family): two halves, which take about as long to compile. */
#define TTI_DEV_INT_FAMILY_MAP(X) \
	X(int8)                   \
	X(int16)                  \
	X(int32)                  \
	X(int64)

#define TTI_DEV_FLOAT_FAMILY_MAP(X) \
	X(float16)                  \
	X(bfloat16)                 \
	X(float32)                  \
	X(float64)                  \
	X(float8_e4m3)              \
	X(float8_e5m2)

#define TTI_DEV_FAMILY_MAP(X) TTI_DEV_INT_FAMILY_MAP(X) TTI_DEV_FLOAT_FAMILY_MAP(X)

#endif
