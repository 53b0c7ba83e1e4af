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

# With memory that the host cannot touch, too.
python=$(command -v python3) || fail "there is no python3: apt-get install python3"
tests=$(cd "$(dirname "$0")/.." && pwd)
for guard in 0 1; do
	mkdir "$tmp/$guard"
	TUTTI_CUDAHOST_GUARD=$guard PYTHONDONTWRITEBYTECODE=1 expect 0 "$TUTTI" run -n 3 --gpus 3 "$python" \
		"$tests/nccl/every_function.py" "$tests/../bindings/nccl/functions.def" "$tmp/$guard"
	says out '^84 functions$'
done
ok "every function of NCCL from Python"
