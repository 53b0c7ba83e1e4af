/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_COLL_SHAPE_PARTS_H
#define TTI_COLL_SHAPE_PARTS_H

/* Private to what makes shapes: shape.c, from plans and groups; shape_project.c, from another. */

#include "coll/shape.h"

/* Without rings, trees and groups. */
TUTTI_CHECKED tutti_status tti_shape_create(uint32_t n, struct tti_shape **out);
/* One ring more, one tree more: copies of `order`, `parent`. */
TUTTI_CHECKED tutti_status tti_shape_add_ring(struct tti_shape *shape, const uint32_t *order,
					      uint32_t share);
TUTTI_CHECKED tutti_status tti_shape_add_tree(struct tti_shape *shape, const uint32_t *parent,
					      uint32_t share);

#endif
