#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# Ranks of a user who is not root, under each of Yama's scopes: where one process may not look
# into another they go through slots, and say what forbids it and what would allow it. Where
# only a process that is let in may, the launcher's others are.
. "$(dirname "$0")/common"

vm_kernel
vm_put "$TUTTI"
vm_put "$(command -v setpriv)"
mkdir -p "$vm_root/modules"
: >"$vm_root/modules/order"
cat >"$vm_root/bin/barrier" <<'END'
export TUTTI_DEBUG=INFO
exec tutti run -n 2 tutti perf barrier -i 1
END
vm_run '
busybox ifconfig lo 127.0.0.1 up
busybox chmod 1777 /tmp
for scope in 0 1 alone 2 3; do
	ptracer=
	[ $scope != alone ] || ptracer=TUTTI_PTRACER=0
	[ $scope = alone ] || echo $scope >/proc/sys/kernel/yama/ptrace_scope || exit 1
	/bin/setpriv --reuid=1000 --regid=1000 --clear-groups \
		busybox env $ptracer busybox sh /bin/barrier >/tmp/out.$scope 2>&1 || {
		busybox cat /tmp/out.$scope
		exit 1
	}
	busybox grep "ordinary memory" /tmp/out.$scope | busybox sed "s/^/scope $scope /"
done' -smp 2 -m 512
[ "$status" = 0 ] || fail "tutti in the machine: exit code $status: $(cat "$tmp/out")"
cat "$tmp/out"

says() { grep -Eq "$1" "$tmp/out" || fail "no line like: $1 in: $(cat "$tmp/out")"; }

allowed='(is copied by the kernel|goes through slots): (of 512 KiB|the kernel may copy)'
says "^scope 0 .*$allowed"
says "^scope 1 .*$allowed"
ok "without a scope, or let in by each other, ranks can copy"
refused='goes through slots: rank [01] may not copy from the process of rank [01]: Operation not permitted'
scope='as kernel.yama.ptrace_scope is'
says "^scope alone .*$refused, $scope 1: .sysctl kernel.yama.ptrace_scope=0.*, TUTTI_PTRACER"
says "^scope 2 .*$refused, $scope 2: .sysctl kernel.yama.ptrace_scope=0"
says "^scope 3 .*$refused, $scope 3: that forbids it to all until the next boot"
ok "each scope that forbids it is named, with its remedy"
