# SPDX-License-Identifier: BSD-3-Clause
"""Nodes that are namespaces, and networks between them that are veth pairs.

A node has a network, a host name, a /dev/shm and (all but the first, where launchers run)
processes of its own. Nothing of it has a name outside: all is gone when the processes that hold
the namespaces are, and they die with us, however we end.
"""
import os
import signal
import subprocess
import time

# What a node does first: $1 its name, $2 the file that knows the addresses of all.
INIT = """
hostname "$1" && mount --bind "$2" /etc/hosts && mount -t sysfs sysfs /sys &&
mount -t tmpfs -o size=80% tmpfs /dev/shm && ip link set lo up && echo ready &&
exec sleep infinity
"""


class NoNetwork(Exception):
    """Namespaces cannot be made here, and why."""


def run(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, check=False)
    if done.returncode:
        raise NoNetwork(f"{' '.join(map(str, command))}: {done.stderr.strip()}")


class Node:
    def __init__(self, name, hosts, own_processes):
        self.name = name
        self.cores = []
        self.options = ["--net", "--uts", "--ipc", "--mount"]
        self.entry = ["-n", "-u", "-i", "-m"]
        if own_processes:
            self.options += ["--pid", "--fork", "--kill-child", "--mount-proc"]
            self.entry += ["-p"]
        self.holder = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "unshare", *self.options, "sh", "-c", INIT, "sh",
             name, hosts], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, start_new_session=True)
        if self.holder.stdout.readline() != "ready\n":
            self.holder.kill()
            raise NoNetwork(self.holder.communicate()[1].strip() or "unshare failed")
        self.pid = self.holder.pid
        if own_processes:
            children = f"/proc/{self.pid}/task/{self.pid}/children"
            with open(children, encoding="ascii") as file:
                self.pid = int(file.read())
        self.net = os.readlink(f"/proc/{self.pid}/ns/net")

    def inside(self, *command):
        """The command that runs `command` in this node."""
        return [*self.cores, "nsenter", "-t", str(self.pid), *self.entry, *map(str, command)]

    def ip(self, *words):
        run("nsenter", "-t", self.pid, "-n", "ip", *words)

    def shape(self, device, gbps):
        if gbps:
            run("nsenter", "-t", self.pid, "-n", "tc", "qdisc", "replace", "dev", device, "root",
                "tbf", "rate", f"{round(gbps * 1000)}mbit", "burst", "128kb", "limit", "1mb")

    def wait_until_up(self):
        """The kernel takes a moment to believe in a carrier."""
        for _ in range(500):
            done = subprocess.run(["nsenter", "-t", str(self.pid), "-n", "ip", "-br", "link"],
                                  capture_output=True, text=True, check=True)
            if not any(line.split()[1] == "DOWN" for line in done.stdout.splitlines()):
                return
            time.sleep(0.01)
        raise NoNetwork(f"an interface of {self.name} does not come up")

    def processes(self):
        """All that runs here but the holder."""
        found = []
        for entry in os.listdir("/proc"):
            try:
                if entry.isdigit() and int(entry) not in (self.pid, self.holder.pid) and \
                        os.readlink(f"/proc/{entry}/ns/net") == self.net:
                    found.append(int(entry))
            except OSError:
                pass
        return found

    def kill_all(self):
        for _ in range(100):
            left = self.processes()
            for pid in left:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            if not left:
                return
            time.sleep(0.01)

    def stop(self):
        self.kill_all()
        self.holder.kill()
        self.holder.communicate()


class Network:
    """`with Network(...) as net`: nodes that are linked either by rails (two nodes, a veth pair
    per rail: eth0, eth1 and so on) or, where `switched`, each by its eth0 to one switch.
    Rates are in Gbit/s, 0: as fast as the machine goes."""

    def __init__(self, scratch, nodes, rates, switched=False):
        self.scratch, self.count, self.rates, self.switched = scratch, nodes, rates, switched
        self.nodes, self.switch = [], None

    def __enter__(self):
        hosts = self.scratch / "hosts"
        lines = [f"10.78.0.{i + 1} node{i}\n" for i in range(self.count)]
        hosts.write_text("127.0.0.1 localhost\n" + "".join(lines))
        try:
            for i in range(self.count):
                self.nodes.append(Node(f"node{i}", hosts, i > 0))
            self.deal_out_cores()
            if self.switched:
                self.switch = Node("switch", hosts, True)
                self.connect_switch()
            else:
                self.connect_rails()
            for node in self.nodes:
                node.wait_until_up()
        except BaseException:
            self.__exit__()
            raise
        return self

    def deal_out_cores(self):
        """A node has cores of its own, as a machine would, where there are enough of them. Else
        the ranks of two nodes may share one while another is idle."""
        cores = sorted(os.sched_getaffinity(0))
        each = len(cores) // self.count
        for i, node in enumerate(self.nodes if each else ()):
            own = cores[i * each:(i + 1) * each]
            node.cores = ["taskset", "-c", ",".join(map(str, own))]

    def __exit__(self, *_):
        for node in [*self.nodes, self.switch]:
            if node:
                node.stop()

    def connect_rails(self):
        a, b = self.nodes
        for rail, gbps in enumerate(self.rates):
            device = f"eth{rail}"
            a.ip("link", "add", device, "type", "veth", "peer", "name", device, "netns", b.pid)
            for i, node in enumerate(self.nodes):
                self.bring_up(node, device, f"10.78.{rail}.{i + 1}/24", gbps)

    def connect_switch(self):
        self.switch.ip("link", "add", "br0", "type", "bridge")
        self.switch.ip("link", "set", "br0", "up")
        for i, node in enumerate(self.nodes):
            port = f"port{i}"
            node.ip("link", "add", "eth0", "type", "veth", "peer", "name", port, "netns",
                    self.switch.pid)
            self.switch.ip("link", "set", port, "master", "br0", "up")
            self.switch.shape(port, self.rates[0])
            self.bring_up(node, "eth0", f"10.78.0.{i + 1}/24", self.rates[0])

    @staticmethod
    def bring_up(node, device, address, gbps):
        node.ip("addr", "add", address, "dev", device)
        node.ip("link", "set", device, "up")
        node.shape(device, gbps)

    def kill_all(self):
        for node in self.nodes:
            node.kill_all()
