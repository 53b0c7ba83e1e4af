#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Ranks on two hosts by torchrun, and by the variables that it and others set.
set -eu
cd "$(dirname "$0")"
. ../net/common
. ./common

launch_begin 2
# Its secrets are not those of whoever runs this.
mkdir "$net_dir/home"
export HOME="$net_dir/home"
unset XDG_CONFIG_HOME
secret=$HOME/.config/tutti/secret

# By hand, two ranks: RANK, or what an Indexed Job of Kubernetes says.
export WORLD_SIZE=2 MASTER_ADDR=10.77.0.1 MASTER_PORT=4900
spread "$net_dir/by-rank" 'sh -c '\''RANK=$node exec "$0" "$@"'\'
right "RANK and WORLD_SIZE" 2 "$net_dir/by-rank"
[ "$(stat -c %a "$secret")" = 600 ] || die "the mode of $secret"
spread "$net_dir/by-index" 'sh -c '\''JOB_COMPLETION_INDEX=$node exec "$0" "$@"'\'
right "JOB_COMPLETION_INDEX" 2 "$net_dir/by-index"

# Hosts that do not share the folder.
spread "$net_dir/apart" 'sh -c '\''HOME=$HOME/$node RANK=$node exec "$0" "$@"'\'
mkdir "$HOME/0" "$HOME/1"
export TUTTI_BOOT_TIMEOUT_MS=10000
! ip netns exec "$net-0" "$net_dir/apart" "$BUILD/tests/net_launched" 2 >"$net_dir/out" 2>"$net_dir/err" ||
	die "two secrets are taken for one"
unset TUTTI_BOOT_TIMEOUT_MS
grep -q "$HOME/1/.config/tutti/secret, of which all hosts need the same copy" "$net_dir/err" || die "no remedy"
ok "two secrets are not one"

chmod 644 "$secret"
! RANK=0 ip netns exec "$net-0" "$BUILD/tests/net_launched" 2 2>"$net_dir/err" || die "a secret that all may read"
grep -q "mode 644" "$net_dir/err" || die "a secret that all may read is not told"
chmod 600 "$secret"
ok "a secret that others may read is refused"
unset WORLD_SIZE MASTER_ADDR MASTER_PORT

if has torchrun test -d /usr/lib/python3/dist-packages/torch; then
	export OMP_NUM_THREADS=1
	# That of Debian 12 knows no 0 for these (with Python 3.11), which would leave the output alone.
	redirect="--redirects 1 --tee 1 --log_dir $net_dir/log"
	spread "$net_dir/torchrun" '/usr/bin/python3 -m torch.distributed.run --nnodes 2 --nproc_per_node 2 \
		--node_rank $node --master_addr 10.77.0.1 --master_port 4800 '"$redirect"' --no_python'
	right torchrun 4 "$net_dir/torchrun"
fi
echo "$passed passed, 0 failed"
