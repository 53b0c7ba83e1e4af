#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The Indexed Job of docs/kubernetes.md: its manifests say what its text says, and its command runs with
# its variables on hosts that have the names of the pods.
set -eu
cd "$(dirname "$0")"
. ../net/common
. ./common

launch_begin 3
/usr/bin/python3 - ../../docs/kubernetes.md "$net_dir" <<'END' || die "the manifests"
import pathlib
import re
import shlex
import sys

import yaml

page, out = pathlib.Path(sys.argv[1]).read_text(), pathlib.Path(sys.argv[2])
service, job = yaml.safe_load_all(re.search(r"```yaml\n(.*?)```", page, re.S)[1])
name, spec = job["metadata"]["name"], job["spec"]
pod = spec["template"]["spec"]
assert (service["kind"], job["kind"]) == ("Service", "Job")
assert service["spec"]["clusterIP"] == "None" and service["spec"]["publishNotReadyAddresses"]
assert service["spec"]["selector"] == {"job-name": name}
assert service["metadata"]["name"] == pod["subdomain"]
assert spec["completionMode"] == "Indexed" and spec["completions"] == spec["parallelism"]
(container,) = pod["containers"]
secret = re.search(r"create secret generic (\w+) --from-literal=(\w+)=", page)
lines = []
for variable in container["env"]:
    value = variable.get("value")
    if value is None:
        key = variable["valueFrom"]["secretKeyRef"]
        assert (key["name"], key["key"]) == secret.groups()
        value = "a secret of more than sixteen bytes"
    lines.append(f"export {variable['name']}={shlex.quote(value)}\n")
lines.append("exec " + shlex.join(container["command"]) + "\n")
(out / "command").write_text("".join(lines))
(out / "count").write_text(str(spec["completions"]))
(out / "hosts").write_text("".join(f"10.77.0.{i + 1} {name}-{i}.{pod['subdomain']}\n"
                                   for i in range(spec["completions"])))
END
count=$(cat "$net_dir/count")
[ "$count" = 3 ] || die "the job has $count pods, and this test 3 hosts"
PATH=$(dirname "$TUTTI"):$PATH
net_pids=
for index in 2 1 0; do
	JOB_COMPLETION_INDEX=$index timeout 100 ip netns exec "$net-$index" unshare --mount sh -c \
		'mount --bind "$1/hosts" /etc/hosts; exec sh "$1/command"' sh "$net_dir" \
		>"$net_dir/out.$index" 2>"$net_dir/err.$index" &
	net_pids="$net_pids $!"
done
for pid in $net_pids; do
	wait "$pid" || die "a pod failed"
done
net_pids=
grep -q '^# Out of bounds values : 0 OK' "$net_dir/out.0" || die "no result"
! grep -q . "$net_dir/err.0" || die "a warning"
ok "the Indexed Job of docs/kubernetes.md"
echo "$passed passed, 0 failed"
