/* SPDX-License-Identifier: BSD-3-Clause */
/* Objects of the program that live as long as graphs. */
#include "engine/object.h"
#include "driver/graph.h"

static struct tti_cuda_object *object_of(CUuserObject handle)
{
	return (struct tti_cuda_object *)handle;
}

CUresult cuUserObjectCreate(CUuserObject *out, void *arg, CUhostFn destroy, unsigned count,
			    unsigned flags)
{
	struct tti_cuda_object *object;
	int bad = tti_driver_begin();

	if (!bad)
		bad = tti_driver_need(out, __func__);
	if (!bad)
		bad = tti_cuda_object_create(__func__, arg, destroy, count, flags, &object);
	if (!bad)
		*out = (CUuserObject)object;
	return tti_driver_result(bad);
}

CUresult cuUserObjectRetain(CUuserObject object, unsigned count)
{
	const int bad = tti_driver_begin();

	return tti_driver_result(bad ? bad
				     : tti_cuda_object_retain(__func__, object_of(object), count));
}

CUresult cuUserObjectRelease(CUuserObject object, unsigned count)
{
	const int bad = tti_driver_begin();

	return tti_driver_result(bad ? bad
				     : tti_cuda_object_release(__func__, object_of(object), count));
}

CUresult cuGraphRetainUserObject(CUgraph graph, CUuserObject object, unsigned count, unsigned flags)
{
	const int bad = tti_driver_begin_graph(graph, __func__);

	return tti_driver_result(bad ? bad
				     : tti_cuda_object_retain_by(__func__, tti_driver_graph(graph),
								 object_of(object), count, flags));
}

CUresult cuGraphReleaseUserObject(CUgraph graph, CUuserObject object, unsigned count)
{
	const int bad = tti_driver_begin_graph(graph, __func__);

	return tti_driver_result(bad ? bad
				     : tti_cuda_object_release_by(__func__, tti_driver_graph(graph),
								  object_of(object), count));
}
