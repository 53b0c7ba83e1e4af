/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_TOPO_GRAPH_MODEL_H
#define TTI_TOPO_GRAPH_MODEL_H

/* What a link carries, in GB/s of payload per direction, and what it adds to the
 * latency, in ns. The tables in model.c and model_cpu.c name their sources; a new
 * machine is a new line there. GB is 1e9 bytes.
 * Threads: any. */

#include <stdbool.h>
#include <stdint.h>

#define TTI_LOC_GBPS 5000.0 /* inside one device: never the limit */

/* What a link adds to the latency of a path, in ns. These are estimates. A PCI switch passes a
 * packet on in 100 to 150 ns (data sheets of Broadcom and Microchip), half of which counts for
 * each of its two links. A root complex needs two to three times as long (Neugebauer et
 * al., "Understanding PCIe performance for end host networking", SIGCOMM 2018). GPUs
 * need 0.7 us to write to each other over NVLink, a little more over NVSwitch. */
#define TTI_PCI_SWITCH_NS 65.0  /* a PCI link that ends at a switch or device */
#define TTI_PCI_ROOT_NS   200.0 /* a PCI link that ends at a CPU             */
#define TTI_NVLINK_NS     700.0 /* from GPU to GPU                           */
#define TTI_NVSWITCH_NS   450.0 /* from GPU to NVSwitch                      */
#define TTI_C2C_NS        300.0 /* from GPU to its CPU                       */
#define TTI_NET_NS        500.0 /* from NIC to the cable, if not stated      */

/* A net whose speed is not stated counts as 10 Gb/s. */
#define TTI_NET_MBPS 10000

/* One NVLink of a GPU that the tables do not know. */
#define TTI_NVLINK_GBPS 20.0

/* Which figures: Tutti's own, or exactly those of NCCL (a full clique of CPUs, one figure
 * per CPU family), so that plans can be compared. */
enum tti_model {
	TTI_MODEL_TUTTI,
	TTI_MODEL_NCCL,
};

/* GT/s of "16.0 GT/s PCIe", 0: unknown; and GB/s of a PCI link of that speed and so many
 * lanes. An unknown speed counts as gen 3, a width of 0 as 16. */
double tti_model_pci_gts(const char *link_speed);
double tti_model_pci_gbps(double gts, int width);

/* GB/s of one NVLink of a GPU of compute capability `sm` (70, 80, 90 ...), and of one xGMI link
 * of an AMD GPU of that gcn ("gfx942", "906"). 0: not known. */
double tti_model_nvlink_gbps(int sm);
double tti_model_xgmi_gbps(const char *gcn);

/* Names a CPU. `arch` and `vendor` are as in the XML, family and model as CPUID has them or as
 * NCCL writes them; -1: unknown. */
struct tti_cpu_id {
	const char *arch, *vendor;
	int family, model;
	int c2c_sm; /* compute capability x 10 of a GPU on it by C2C, 0: none */
};

/* What is known of such a CPU: the links between sockets, those between NUMA nodes of one
 * socket, and the memory of a socket where it was not measured. */
struct tti_cpu_model {
	double inter_gbps; /* socket to socket      */
	double inter_ns;
	double intra_gbps; /* NUMA node to NUMA node of one socket */
	double intra_ns;
	double mem_gbps; /* all of a socket's memory */
	double mem_ns;
	int cores;         /* of the largest CPU of this model, 0: not known     */
	bool is_known;     /* mem_gbps is by its data sheet, else an estimate    */
	bool p2p_overhead; /* PCI to PCI through its root complex costs 6/5 (Intel) */
	const char *name;  /* "Intel Sapphire Rapids"; "Intel", "x86_64" if not known */
};
struct tti_cpu_model tti_model_cpu(const struct tti_cpu_id *id);
/* The GB/s that NCCL assumes between the sockets of such CPUs. */
double tti_model_nccl_sockets(const struct tti_cpu_id *id);

#endif
