#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# run --gpus: a program of CUDA and NCCL has devices that are memory of the host.
. "$(dirname "$0")/common"
user=$BUILD/tests/cli_gpus_user

expect 3 "$user"
says out 'no cudaGetDeviceCount'
expect 0 "$TUTTI" run --gpus 3 "$user"
says out '^3 devices, sum 6$'
lines out 1
lines err 0
ok "one process with three devices"

expect 0 "$TUTTI" run -n 2 --gpus 1 "$user"
[ "$(cat "$tmp/out")" = "1 devices, sum 1
1 devices, sum 1" ] || fail "two processes have other devices"
TUTTI_CUDAHOST_GUARD=1 expect 0 "$TUTTI" run --gpus 2 "$user"
says out '^2 devices, sum 3$'
ok "two processes, and guarded memory"

for n in 0 65 x -1; do
	expect 2 "$TUTTI" run --gpus $n "$user"
	says err '--gpus'
done
expect 2 "$TUTTI" run --gpus 2
says err 'say which program to run'
ok "numbers that cannot be"

# The programs below have no sanitizers, which a library with them does not stand.
if nm -D "$BUILD/src/libtutti.so" | grep -Eq ' U __(a|t)san_'; then
	echo "the library has sanitizers"
	exit 0
fi

# Devices are where the GPUs of a topology file are.
places='echo "$TUTTI_CUDAHOST_GPUS at $TUTTI_CUDAHOST_PCI"'
cat >"$tmp/two.xml" <<END
<system version="1"><cpu numaid="0" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143">
<pci busid="0000:4b:00.0" class="0x030200"><gpu dev="0" rank="0" sm="90"/></pci>
<pci busid="0001:9a:00.0" class="0x030200"><gpu dev="1" rank="1" sm="90"/></pci>
</cpu></system>
END
TUTTI_TOPO_FILE=$tmp/two.xml expect 0 "$TUTTI" run --gpus 2 sh -c "$places"
says out '^2 at 0000:4b:00.0,0001:9a:00.0$'
lines err 0
NCCL_TOPO_FILE=$tmp/two.xml expect 0 "$TUTTI" run --gpus 1 sh -c "$places"
says out '^1 at 0000:4b:00.0$'
TUTTI_TOPO_FILE=$tmp/two.xml TUTTI_CUDAHOST_PCI=05:00.0,06:00.0,07:00.0 expect 0 "$TUTTI" run --gpus 3 sh -c "$places"
says out '^3 at 05:00.0,06:00.0,07:00.0$'
expect 0 "$TUTTI" run --gpus 3 sh -c "$places"
says out '^3 at $'
TUTTI_TOPO_FILE=$tmp/two.xml expect 1 "$TUTTI" run --gpus 3 sh -c "$places"
says err '--gpus 3: .*/two.xml, which TUTTI_TOPO_FILE names, has 2'
TUTTI_TOPO_FILE=$tmp/none.xml expect 1 "$TUTTI" run --gpus 1 sh -c "$places"
says err 'none.xml'
ok "devices in the places of a topology file"

# With memory that the host cannot touch.
python=$(command -v python3) || fail "there is no python3: apt-get install python3"
tests=$(cd "$(dirname "$0")/.." && pwd)
mkdir "$tmp/shared"
TUTTI_CUDAHOST_GUARD=1 PYTHONDONTWRITEBYTECODE=1 expect 0 "$TUTTI" run -n 3 --gpus 3 "$python" \
	"$tests/nccl/every_function.py" "$tests/../bindings/nccl/functions.def" "$tmp/shared"
says out '^84 functions$'
ok "every function of NCCL from Python"
