/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies and fills: cudaMemcpy(), cudaMemset() and all that look like them. */
#include "runtime/runtime.h"

int tti_cudart_check_kind(const char *function, int kind)
{
	if (kind >= TTI_CU_HOST_TO_HOST && kind <= TTI_CU_BY_ADDRESS)
		return 0;
	return tti_cuda_fail(TTI_cudaErrorInvalidMemcpyDirection,
			     "%s(): there is no direction %d: pass one of enum cudaMemcpyKind",
			     function, kind);
}

static int copy_now(const char *function, bool per_thread, const struct tti_cuda_copy *copy)
{
	int error = copy->width ? tti_cudart_check_kind(function, copy->kind) : 0;
	struct tti_cuda_stream *stream;

	if (error)
		return error;
	stream = tti_cuda_stream_get(NULL, per_thread, &error);
	return stream ? tti_cuda_copy_wait(copy, stream) : error;
}

static int copy_later(const char *function, bool per_thread, const struct tti_cuda_copy *copy,
		      const void *handle)
{
	int error = copy->width ? tti_cudart_check_kind(function, copy->kind) : 0;
	struct tti_cuda_stream *stream;

	if (error)
		return error;
	stream = tti_cuda_stream_get(handle, per_thread, &error);
	return stream ? tti_cuda_copy_queue(copy, stream) : error;
}

/* -- Bytes -------------------------------------------------------------------------------- */

int tti_cudaMemcpy(bool per_thread, void *to, const void *from, size_t nbytes, int kind)
{
	const struct tti_cuda_copy copy = tti_cuda_copy_of(to, from, nbytes, kind);

	return copy_now("cudaMemcpy", per_thread, &copy);
}

int tti_cudaMemcpyAsync(bool per_thread, void *to, const void *from, size_t nbytes, int kind,
			tti_cu_stream stream)
{
	const struct tti_cuda_copy copy = tti_cuda_copy_of(to, from, nbytes, kind);

	return copy_later("cudaMemcpyAsync", per_thread, &copy, stream);
}

static int check_peers(const char *function, int to_device, int from_device)
{
	const int error = tti_cudart_check_device(function, to_device);

	return error ? error : tti_cudart_check_device(function, from_device);
}

int tti_cudaMemcpyPeer(void *to, int to_device, const void *from, int from_device, size_t nbytes)
{
	const int error = check_peers("cudaMemcpyPeer", to_device, from_device);
	const struct tti_cuda_copy copy = tti_cuda_copy_of(to, from, nbytes, TTI_CU_BY_ADDRESS);

	return error ? error : copy_now("cudaMemcpyPeer", false, &copy);
}

int tti_cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device,
			    size_t nbytes, tti_cu_stream handle)
{
	const struct tti_cuda_copy copy = tti_cuda_copy_of(to, from, nbytes, TTI_CU_BY_ADDRESS);
	int error = check_peers("cudaMemcpyPeerAsync", to_device, from_device);
	struct tti_cuda_stream *stream;

	if (error)
		return error;
	stream = tti_cuda_stream_get(handle, false, &error);
	if (!stream)
		return error;
	error = tti_cuda_capture_refuse(stream, TTI_CUDA_ECAPTURE, "cudaMemcpyPeerAsync()");
	return error ? error : tti_cuda_copy_queue(&copy, stream);
}

/* -- Rows --------------------------------------------------------------------------------- */

static int check_pitch(const char *function, size_t width, size_t pitch)
{
	if (width <= pitch)
		return 0;
	return tti_cuda_fail(TTI_cudaErrorInvalidPitchValue,
			     "%s(): rows of %zu bytes are %zu bytes apart: pass a pitch that is "
			     "not smaller",
			     function, width, pitch);
}

static int copy2d(const char *function, void *to, size_t to_pitch, const void *from,
		  size_t from_pitch, size_t width, size_t height, int kind,
		  struct tti_cuda_copy *out)
{
	const int error = check_pitch(function, width, to_pitch);

	*out = (struct tti_cuda_copy){
		.to = { to, to_pitch, height },
		.from = { (void *)(uintptr_t)from, from_pitch, height },
		.width = width,
		.height = height,
		.depth = 1,
		.kind = kind,
	};
	return error ? error : check_pitch(function, width, from_pitch);
}

int tti_cudaMemcpy2D(bool per_thread, void *to, size_t to_pitch, const void *from,
		     size_t from_pitch, size_t width, size_t height, int kind)
{
	struct tti_cuda_copy copy;
	const int error =
		copy2d("cudaMemcpy2D", to, to_pitch, from, from_pitch, width, height, kind, &copy);

	return error ? error : copy_now("cudaMemcpy2D", per_thread, &copy);
}

int tti_cudaMemcpy2DAsync(bool per_thread, void *to, size_t to_pitch, const void *from,
			  size_t from_pitch, size_t width, size_t height, int kind,
			  tti_cu_stream stream)
{
	struct tti_cuda_copy copy;
	const int error = copy2d("cudaMemcpy2DAsync", to, to_pitch, from, from_pitch, width, height,
				 kind, &copy);

	return error ? error : copy_later("cudaMemcpy2DAsync", per_thread, &copy, stream);
}

/* -- Layers ------------------------------------------------------------------------------- */

/* Where a box begins: x bytes into row y of layer z. */
static struct tti_cuda_place place_of(const struct tti_cu_pitched *at, const struct tti_cu_pos *pos,
				      size_t height)
{
	const size_t rows = at->ysize ? at->ysize : height;
	const size_t skipped = (pos->z * rows + pos->y) * at->pitch + pos->x;

	return (struct tti_cuda_place){ (char *)at->ptr + skipped, at->pitch, rows };
}

/* Rows and layers of the box do not reach into the next ones. */
static int check_box(const char *function, const struct tti_cu_pitched *at,
		     const struct tti_cu_extent *extent)
{
	if (extent->height > 1 || extent->depth > 1) {
		const int error = check_pitch(function, extent->width, at->pitch);

		if (error)
			return error;
	}
	if (extent->depth <= 1 || !at->ysize || extent->height <= at->ysize)
		return 0;
	return tti_cuda_fail(TTI_cudaErrorInvalidPitchValue,
			     "%s(): layers of %zu rows are %zu rows apart: pass a height that is "
			     "not smaller",
			     function, extent->height, at->ysize);
}

int tti_cudart_copy3d(const char *function, const struct tti_cu_copy3d *from,
		      struct tti_cuda_copy *out)
{
	if (!from)
		return tti_cudart_null(function, "description of the copy");
	if (from->from_array || from->to_array)
		return tti_cuda_fail(
			TTI_CUDA_ENOTSUPPORTED,
			"%s() of arrays is not there on host memory: use linear memory", function);
	if (!from->from.ptr || !from->to.ptr)
		return tti_cudart_null(function, from->to.ptr ? "source" : "target");
	*out = (struct tti_cuda_copy){
		.to = place_of(&from->to, &from->to_pos, from->extent.height),
		.from = place_of(&from->from, &from->from_pos, from->extent.height),
		.width = from->extent.width,
		.height = from->extent.height,
		.depth = from->extent.depth,
		.kind = from->kind,
	};
	return check_box(function, &from->to, &from->extent) ||
			       check_box(function, &from->from, &from->extent)
		       ? TTI_cudaErrorInvalidPitchValue
		       : 0;
}

int tti_cudaMemcpy3D(bool per_thread, const struct tti_cu_copy3d *from)
{
	struct tti_cuda_copy copy;
	const int error = tti_cudart_copy3d("cudaMemcpy3D", from, &copy);

	return error ? error : copy_now("cudaMemcpy3D", per_thread, &copy);
}

int tti_cudaMemcpy3DAsync(bool per_thread, const struct tti_cu_copy3d *from, tti_cu_stream stream)
{
	struct tti_cuda_copy copy;
	const int error = tti_cudart_copy3d("cudaMemcpy3DAsync", from, &copy);

	return error ? error : copy_later("cudaMemcpy3DAsync", per_thread, &copy, stream);
}

static int copy3d_peer(const char *function, const struct tti_cu_copy3d_peer *from,
		       struct tti_cuda_copy *out)
{
	struct tti_cu_copy3d plain;
	int error;

	if (!from)
		return tti_cudart_null(function, "description of the copy");
	plain = (struct tti_cu_copy3d){
		.from_array = from->from_array,
		.from_pos = from->from_pos,
		.from = from->from,
		.to_array = from->to_array,
		.to_pos = from->to_pos,
		.to = from->to,
		.extent = from->extent,
		.kind = TTI_CU_BY_ADDRESS,
	};
	error = check_peers(function, from->to_device, from->from_device);
	return error ? error : tti_cudart_copy3d(function, &plain, out);
}

int tti_cudaMemcpy3DPeer(bool per_thread, const struct tti_cu_copy3d_peer *from)
{
	struct tti_cuda_copy copy;
	const int error = copy3d_peer("cudaMemcpy3DPeer", from, &copy);

	return error ? error : copy_now("cudaMemcpy3DPeer", per_thread, &copy);
}

int tti_cudaMemcpy3DPeerAsync(bool per_thread, const struct tti_cu_copy3d_peer *from,
			      tti_cu_stream stream)
{
	struct tti_cuda_copy copy;
	const int error = copy3d_peer("cudaMemcpy3DPeerAsync", from, &copy);

	return error ? error : copy_later("cudaMemcpy3DPeerAsync", per_thread, &copy, stream);
}

/* -- Several copies ----------------------------------------------------------------------- */

/* Where the caller may write into the source again at once, the source has been read. */
static int copy_ordered(const char *function, const struct tti_cuda_copy *copy, int order,
			struct tti_cuda_stream *stream)
{
	int error;

	if (order < TTI_CU_ORDER_STREAM || order > TTI_CU_ORDER_ANY)
		return tti_cuda_fail(TTI_CUDA_EINVAL,
				     "%s(): there is no order %d of reading: 1 to 3", function,
				     order);
	error = tti_cuda_copy_queue(copy, stream);
	if (error || order != TTI_CU_ORDER_CALL || tti_cudart_is_captured(stream))
		return error;
	return tti_cuda_stream_synchronize(stream);
}

static int batch(bool per_thread, void *const *to, const void *const *from, const size_t *nbytes,
		 size_t n, const struct tti_cu_copy_attributes *attributes, const size_t *first,
		 size_t nattributes, size_t *failed, const void *handle)
{
	struct tti_cuda_stream *stream;
	size_t which = 0;
	int error = 0;

	if (failed)
		*failed = SIZE_MAX;
	if (!to || !from || !nbytes || !attributes)
		return tti_cudart_null("cudaMemcpyBatchAsync", "list of addresses or attributes");
	stream = tti_cuda_stream_get(handle, per_thread, &error);
	if (!error)
		error = tti_cuda_batch_check("cudaMemcpyBatchAsync", n, first, nattributes, stream);
	for (size_t at = 0; !error && at < n; at++) {
		const struct tti_cuda_copy copy =
			tti_cuda_copy_of(to[at], from[at], nbytes[at], TTI_CU_BY_ADDRESS);

		while (which + 1 < nattributes && first[which + 1] <= at)
			which++;
		error = copy_ordered("cudaMemcpyBatchAsync", &copy, attributes[which].from_order,
				     stream);
		if (error && failed)
			*failed = at;
	}
	return error;
}

static int place_of_operand(const struct tti_cu_operand *at, const struct tti_cu_extent *extent,
			    struct tti_cuda_place *out)
{
	if (at->type != 1)
		return tti_cuda_fail(TTI_CUDA_ENOTSUPPORTED,
				     "cudaMemcpy3DBatchAsync() of arrays is not there on host "
				     "memory: use linear memory");
	*out = (struct tti_cuda_place){
		at->op.linear.ptr,
		at->op.linear.row_length ? at->op.linear.row_length : extent->width,
		at->op.linear.layer_height ? at->op.linear.layer_height : extent->height,
	};
	return 0;
}

static int batch3d(bool per_thread, size_t n, const struct tti_cu_copy3d_op *ops, size_t *failed,
		   const void *handle)
{
	struct tti_cuda_stream *stream;
	int error = 0;

	if (failed)
		*failed = SIZE_MAX;
	if (!ops)
		return tti_cudart_null("cudaMemcpy3DBatchAsync", "list of copies");
	stream = tti_cuda_stream_get(handle, per_thread, &error);
	for (size_t at = 0; !error && at < n; at++) {
		struct tti_cuda_copy copy = {
			.width = ops[at].extent.width,
			.height = ops[at].extent.height,
			.depth = ops[at].extent.depth,
			.kind = TTI_CU_BY_ADDRESS,
		};

		error = place_of_operand(&ops[at].to, &ops[at].extent, &copy.to);
		if (!error)
			error = place_of_operand(&ops[at].from, &ops[at].extent, &copy.from);
		if (!error)
			error = copy_ordered("cudaMemcpy3DBatchAsync", &copy, ops[at].from_order,
					     stream);
		if (error && failed)
			*failed = at;
	}
	return error;
}

#if TTI_CUDART_MAJOR == 12
int tti_cudaMemcpyBatchAsync(bool per_thread, void *const *to, const void *const *from,
			     const size_t *nbytes, size_t n,
			     struct tti_cu_copy_attributes *attributes, size_t *first,
			     size_t nattributes, size_t *failed, tti_cu_stream stream)
{
	return batch(per_thread, to, from, nbytes, n, attributes, first, nattributes, failed,
		     stream);
}

int tti_cudaMemcpy3DBatchAsync(bool per_thread, size_t n, struct tti_cu_copy3d_op *ops,
			       size_t *failed, unsigned long long flags, tti_cu_stream stream)
{
	(void)flags;
	return batch3d(per_thread, n, ops, failed, stream);
}
#else
int tti_cudaMemcpyBatchAsync(bool per_thread, void *const *to, const void *const *from,
			     const size_t *nbytes, size_t n,
			     struct tti_cu_copy_attributes *attributes, size_t *first,
			     size_t nattributes, tti_cu_stream stream)
{
	return batch(per_thread, to, from, nbytes, n, attributes, first, nattributes, NULL, stream);
}

int tti_cudaMemcpy3DBatchAsync(bool per_thread, size_t n, struct tti_cu_copy3d_op *ops,
			       unsigned long long flags, tti_cu_stream stream)
{
	(void)flags;
	return batch3d(per_thread, n, ops, NULL, stream);
}
#endif

/* -- Fills -------------------------------------------------------------------------------- */

static struct tti_cuda_fill fill_of(void *to, size_t pitch, size_t rows, int value,
				    struct tti_cu_extent extent)
{
	return (struct tti_cuda_fill){
		.to = { to, pitch, rows },
		.width = extent.width,
		.height = extent.height,
		.depth = extent.depth,
		.element = 1,
		.value = (unsigned char)value,
	};
}

static int fill_now(bool per_thread, const struct tti_cuda_fill *fill)
{
	int error = 0;
	struct tti_cuda_stream *stream = tti_cuda_stream_get(NULL, per_thread, &error);

	return stream ? tti_cuda_fill_wait(fill, stream) : error;
}

static int fill_later(bool per_thread, const struct tti_cuda_fill *fill, const void *handle)
{
	int error = 0;
	struct tti_cuda_stream *stream = tti_cuda_stream_get(handle, per_thread, &error);

	return stream ? tti_cuda_fill_queue(fill, stream) : error;
}

static struct tti_cuda_fill fill1d(void *to, int value, size_t nbytes)
{
	return fill_of(to, nbytes, 1, value, (struct tti_cu_extent){ nbytes, 1, 1 });
}

int tti_cudaMemset(bool per_thread, void *to, int value, size_t nbytes)
{
	const struct tti_cuda_fill fill = fill1d(to, value, nbytes);

	return fill_now(per_thread, &fill);
}

int tti_cudaMemsetAsync(bool per_thread, void *to, int value, size_t nbytes, tti_cu_stream stream)
{
	const struct tti_cuda_fill fill = fill1d(to, value, nbytes);

	return fill_later(per_thread, &fill, stream);
}

int tti_cudaMemset2D(bool per_thread, void *to, size_t pitch, int value, size_t width,
		     size_t height)
{
	const struct tti_cuda_fill fill =
		fill_of(to, pitch, height, value, (struct tti_cu_extent){ width, height, 1 });

	return fill_now(per_thread, &fill);
}

int tti_cudaMemset2DAsync(bool per_thread, void *to, size_t pitch, int value, size_t width,
			  size_t height, tti_cu_stream stream)
{
	const struct tti_cuda_fill fill =
		fill_of(to, pitch, height, value, (struct tti_cu_extent){ width, height, 1 });

	return fill_later(per_thread, &fill, stream);
}

int tti_cudaMemset3D(bool per_thread, struct tti_cu_pitched to, int value,
		     struct tti_cu_extent extent)
{
	const struct tti_cuda_fill fill =
		fill_of(to.ptr, to.pitch, to.ysize ? to.ysize : extent.height, value, extent);

	return fill_now(per_thread, &fill);
}

int tti_cudaMemset3DAsync(bool per_thread, struct tti_cu_pitched to, int value,
			  struct tti_cu_extent extent, tti_cu_stream stream)
{
	const struct tti_cuda_fill fill =
		fill_of(to.ptr, to.pitch, to.ysize ? to.ysize : extent.height, value, extent);

	return fill_later(per_thread, &fill, stream);
}
