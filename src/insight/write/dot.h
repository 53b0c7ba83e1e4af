/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_INSIGHT_WRITE_DOT_H
#define TTI_INSIGHT_WRITE_DOT_H

/* Pictures for Graphviz: what all of them have in common. A label is a table in which each line
 * has a row of its own: lines of one cell stand so close that the underscore of one touches the
 * next. Out of memory: out->failed.
 * Threads: any. */

#include <stdbool.h>
#include <stdint.h>

#include "util/strbuf.h"

/* Fills of boxes. */
#define TTI_DOT_GPU  "#d3ecc5"
#define TTI_DOT_NVS  "#b7e1a1"
#define TTI_DOT_NIC  "#cfe5f7"
#define TTI_DOT_CPU  "#fcefc5"
#define TTI_DOT_PCI  "#ececec"
#define TTI_DOT_MARK "#c00000" /* what is wrong */

/* Colours that most people tell apart, on white. */
#define TTI_DOT_COLORS 12
extern const char *const tti_dot_palette[TTI_DOT_COLORS];

/* A graph with the attributes of `layout`; below the title stand the lines of `notes`. */
void tti_dot_open(struct tti_strbuf *out, const char *layout, const char *title, const char *notes);

/* A text as the content of a label. */
void tti_dot_text(struct tti_strbuf *out, const char *text);

/* A node as a box with rounded corners, line by line; `mark`: it has a red frame. */
TUTTI_PRINTF(4, 5)
void tti_dot_box(struct tti_strbuf *out, const char *fill, bool mark, const char *name, ...);
/* A bold and a small text; either may be NULL. */
void tti_dot_line(struct tti_strbuf *out, const char *bold, const char *small);
void tti_dot_box_end(struct tti_strbuf *out);

/* A table without lines around its cells, inside of a label. */
void tti_dot_table(struct tti_strbuf *out, const char *attributes);
/* A cell of a row; `attributes` may be NULL. */
void tti_dot_cell(struct tti_strbuf *out, const char *attributes, const char *text);
void tti_dot_heading(struct tti_strbuf *out, const char *attributes, const char *text);
/* A row with one text over `columns`, at the left. */
void tti_dot_row(struct tti_strbuf *out, uint32_t columns, const char *text);

/* Rows or columns of ports that nobody sees, called "p0", "p1" ...: edges to them keep nodes in
 * order. */
void tti_dot_ports(struct tti_strbuf *out, const char *attributes, uint32_t n, bool across);

#endif
