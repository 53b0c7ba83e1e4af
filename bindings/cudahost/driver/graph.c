/* SPDX-License-Identifier: BSD-3-Clause */
/* Graphs and their edges. */
#include "driver/graph.h"

int tti_driver_begin_graph(const void *handle, const char *what)
{
	const int bad = tti_driver_begin();

	if (bad || handle)
		return bad;
	return tti_cuda_fail(TTI_CUDA_EINVAL, "%s: the graph or node is NULL", what);
}

int tti_driver_check_edges(const CUgraphEdgeData *edges, size_t n)
{
	for (size_t i = 0; edges && i < n; i++)
		if (edges[i].from_port || edges[i].to_port || edges[i].type)
			return tti_cuda_fail(
				TTI_CUDA_EINVAL,
				"edge %zu of a graph has the type %u and ports %u, %u: edges "
				"between kernels, while these run, need a GPU",
				i, edges[i].type, edges[i].from_port, edges[i].to_port);
	return TTI_CUDA_OK;
}

CUresult cuGraphCreate(CUgraph *out, unsigned flags)
{
	struct tti_cuda_graph *graph;
	int bad = tti_driver_begin();

	if (!bad)
		bad = tti_driver_need(out, __func__);
	if (!bad && flags)
		bad = tti_cuda_fail(TTI_CUDA_EINVAL, "cuGraphCreate: flags %u, not 0", flags);
	if (!bad)
		bad = tti_cuda_graph_create(&graph);
	if (!bad)
		*out = (CUgraph)graph;
	return tti_driver_result(bad);
}

CUresult cuGraphDestroy(CUgraph graph)
{
	const int bad = tti_driver_begin_graph(graph, __func__);

	return tti_driver_result(bad ? bad : tti_cuda_graph_destroy(tti_driver_graph(graph)));
}

CUresult cuGraphClone(CUgraph *out, CUgraph graph)
{
	struct tti_cuda_graph *clone;
	int bad = tti_driver_begin_graph(graph, __func__);

	if (!bad)
		bad = tti_driver_need(out, __func__);
	if (!bad)
		bad = tti_cuda_graph_clone(tti_driver_graph(graph), &clone);
	if (!bad)
		*out = (CUgraph)clone;
	return tti_driver_result(bad);
}

CUresult cuGraphNodeFindInClone(CUgraphNode *out, CUgraphNode node, CUgraph clone)
{
	struct tti_cuda_node *found;
	int bad = tti_driver_begin_graph(node, __func__);

	if (!bad)
		bad = tti_driver_begin_graph(clone, __func__);
	if (!bad)
		bad = tti_driver_need(out, __func__);
	if (bad)
		return tti_driver_result(bad);
	found = tti_cuda_node_in_clone(tti_driver_node(node), tti_driver_graph(clone));
	if (!found)
		return tti_driver_fail(
			TTI_CUDA_EINVAL,
			"cuGraphNodeFindInClone: the graph has nothing of that node");
	*out = (CUgraphNode)found;
	return CUDA_SUCCESS;
}

CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType *out)
{
	int kind, bad = tti_driver_begin_graph(node, __func__);

	if (!bad)
		bad = tti_driver_need(out, __func__);
	if (bad)
		return tti_driver_result(bad);
	kind = tti_cuda_node_kind(tti_driver_node(node));
	if (kind < 0)
		return tti_driver_fail(TTI_CUDA_EHANDLE, "cuGraphNodeGetType: %p is no node",
				       (void *)node);
	*out = (CUgraphNodeType)kind;
	return CUDA_SUCCESS;
}

CUresult cuGraphDestroyNode(CUgraphNode node)
{
	const int bad = tti_driver_begin_graph(node, __func__);

	return tti_driver_result(bad ? bad : tti_cuda_node_destroy(tti_driver_node(node)));
}

/* -- Lists -------------------------------------------------------------------------------- */

/* The engine says how many there are; CUDA, how many were written, and the rest is NULL. */

static void finish(CUgraphNode *out, size_t room, size_t *n)
{
	if (!out)
		return;
	for (size_t i = *n; i < room; i++)
		out[i] = NULL;
	if (*n > room)
		*n = room;
}

typedef int graph_lister(const struct tti_cuda_graph *graph, struct tti_cuda_node **out, size_t *n);
typedef int node_lister(const struct tti_cuda_node *node, struct tti_cuda_node **out, size_t *n);

static CUresult list_graph(CUgraph graph, CUgraphNode *out, size_t *n, graph_lister *lister,
			   const char *what)
{
	int bad = tti_driver_begin_graph(graph, what);

	if (!bad)
		bad = tti_driver_need(n, what);
	if (bad)
		return tti_driver_result(bad);
	const size_t room = *n;

	bad = lister(tti_driver_graph(graph), (struct tti_cuda_node **)out, n);
	if (!bad)
		finish(out, room, n);
	return tti_driver_result(bad);
}

CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *out, size_t *n)
{
	return list_graph(graph, out, n, tti_cuda_graph_nodes, __func__);
}

CUresult cuGraphGetRootNodes(CUgraph graph, CUgraphNode *out, size_t *n)
{
	return list_graph(graph, out, n, tti_cuda_graph_roots, __func__);
}

static void plain(CUgraphEdgeData *out, size_t n)
{
	for (size_t i = 0; out && i < n; i++)
		out[i] = (CUgraphEdgeData){ 0 };
}

static CUresult list_node(CUgraphNode node, CUgraphNode *out, CUgraphEdgeData *edges, size_t *n,
			  node_lister *lister, const char *what)
{
	int bad = tti_driver_begin_graph(node, what);

	if (!bad)
		bad = tti_driver_need(n, what);
	if (bad)
		return tti_driver_result(bad);
	const size_t room = *n;

	bad = lister(tti_driver_node(node), (struct tti_cuda_node **)out, n);
	if (bad)
		return tti_driver_result(bad);
	finish(out, room, n);
	plain(out ? edges : NULL, *n);
	return CUDA_SUCCESS;
}

CUresult cuGraphNodeGetDependencies_v2(CUgraphNode node, CUgraphNode *out, CUgraphEdgeData *edges,
				       size_t *n)
{
	return list_node(node, out, edges, n, tti_cuda_node_before, __func__);
}

CUresult cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode *out, size_t *n)
{
	return list_node(node, out, NULL, n, tti_cuda_node_before, __func__);
}

CUresult cuGraphNodeGetDependentNodes_v2(CUgraphNode node, CUgraphNode *out, CUgraphEdgeData *edges,
					 size_t *n)
{
	return list_node(node, out, edges, n, tti_cuda_node_after, __func__);
}

CUresult cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode *out, size_t *n)
{
	return list_node(node, out, NULL, n, tti_cuda_node_after, __func__);
}

CUresult cuGraphGetEdges_v2(CUgraph graph, CUgraphNode *from, CUgraphNode *to,
			    CUgraphEdgeData *edges, size_t *n)
{
	int bad = tti_driver_begin_graph(graph, __func__);

	if (!bad)
		bad = tti_driver_need(n, __func__);
	if (!bad && !from != !to)
		bad = tti_cuda_fail(TTI_CUDA_EINVAL,
				    "cuGraphGetEdges: both ends of the edges, or NULL for both");
	if (bad)
		return tti_driver_result(bad);
	const size_t room = *n;
	size_t written;

	bad = tti_cuda_graph_edges(tti_driver_graph(graph), (struct tti_cuda_node **)from,
				   (struct tti_cuda_node **)to, n);
	if (bad)
		return tti_driver_result(bad);
	written = *n;
	finish(from, room, &written);
	finish(to, room, n);
	plain(from ? edges : NULL, *n);
	return CUDA_SUCCESS;
}

CUresult cuGraphGetEdges(CUgraph graph, CUgraphNode *from, CUgraphNode *to, size_t *n)
{
	return cuGraphGetEdges_v2(graph, from, to, NULL, n);
}

CUresult cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
				   const CUgraphEdgeData *edges, size_t n)
{
	int bad = tti_driver_begin_graph(graph, __func__);

	if (!bad)
		bad = tti_driver_check_edges(edges, n);
	return tti_driver_result(bad ? bad
				     : tti_cuda_graph_connect(tti_driver_graph(graph),
							      tti_driver_nodes(from),
							      tti_driver_nodes(to), n));
}

CUresult cuGraphAddDependencies(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
				size_t n)
{
	return cuGraphAddDependencies_v2(graph, from, to, NULL, n);
}

CUresult cuGraphRemoveDependencies_v2(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
				      const CUgraphEdgeData *edges, size_t n)
{
	int bad = tti_driver_begin_graph(graph, __func__);

	if (!bad)
		bad = tti_driver_check_edges(edges, n);
	return tti_driver_result(bad ? bad
				     : tti_cuda_graph_disconnect(tti_driver_graph(graph),
								 tti_driver_nodes(from),
								 tti_driver_nodes(to), n));
}

CUresult cuGraphRemoveDependencies(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
				   size_t n)
{
	return cuGraphRemoveDependencies_v2(graph, from, to, NULL, n);
}
