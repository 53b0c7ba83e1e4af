#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Ranks on two hosts, started by mpirun of Open MPI (PMIx) and of MPICH (PMI-1).
set -eu
cd "$(dirname "$0")"
. ../net/common
. ./common

launch_begin 2
hosts=10.77.0.1,10.77.0.2

# Each daemon's name of itself is that of the one machine, so the hosts are told apart by address.
if has "Open MPI" command -v mpirun.openmpi; then
	set -- mpirun.openmpi --allow-run-as-root --oversubscribe \
		--mca plm_rsh_agent "$net_dir/rsh" --mca plm_rsh_no_tree_spawn 1 \
		--mca orte_keep_fqdn_hostnames 1 --mca oob_tcp_if_include eth0 \
		-H 10.77.0.1:2,10.77.0.2:2 -n 4
	right "Open MPI" 4 "$@"
	survives "Open MPI" 4 "$@" --mca orte_enable_recovery 1
fi
if has MPICH command -v mpirun.mpich; then
	set -- mpirun.mpich -launcher ssh -launcher-exec "$net_dir/rsh" -iface eth0 -hosts $hosts -ppn 2
	right MPICH 4 "$@" -n 4
	# Hydra ends the others of a rank that was killed, and tells the others of one that ended by a signal.
	survives MPICH 4 "$@" -disable-auto-cleanup -n 4 sh -c 'trap "" USR1; "$0" "$@"; true'
fi
echo "$passed passed, 0 failed"
