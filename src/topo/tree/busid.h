/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_TOPO_TREE_BUSID_H
#define TTI_TOPO_TREE_BUSID_H

/* The address of a PCI function, "DDDD:BB:DD.F", as one number:
 * domain << 20 | bus << 12 | device << 4 | function, each as many hex digits as
 * written, so that the made-up addresses of topology files ("fffffff:ff:ff.0")
 * keep their value. Domains may have eight digits. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TTI_BUSID_TEXT 24
#define TTI_BUSID_NONE UINT64_MAX

/* Lower or upper case, 4 to 8 digits of domain. false: not a bus id. */
bool tti_busid_parse(const char *text, uint64_t *out);
/* The same for the last part of the first `len` bytes of a path. */
bool tti_busid_of_path(const char *path, size_t len, uint64_t *out);
/* "0000:3b:00.0"; returns buf. */
char *tti_busid_format(uint64_t busid, char buf[TTI_BUSID_TEXT]);

/* The card a function belongs to: the address with function 0. */
#define TTI_BUSID_CARD(busid) ((busid) & ~UINT64_C(0xf))

#endif
