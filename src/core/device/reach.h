/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_CORE_DEVICE_REACH_H
#define TTI_CORE_DEVICE_REACH_H

/* Which GPUs reach each other's memory, found out by trying. Each rank with a device lends a piece of
 * its memory to those of its host, which read in it whose it is, and write a pattern of their own
 * that its owner then looks for. A link that the driver promises and that loses or changes what goes
 * over it (an IOMMU that is in the way, a bridge that is broken) is refused, and its two ranks go by
 * the host. */

#include "core/device/device.h"

/* Fill devices->reach; all ranks of the communicator call it. The same status on all. */
TUTTI_CHECKED tutti_status tti_devices_try(struct tti_comm *comm);

#endif
