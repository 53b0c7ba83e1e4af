# SPDX-License-Identifier: BSD-3-Clause
"""Jobs on two hosts, which are network namespaces, with a middle box between them that drops, repeats
and holds up frames: data has to be right, or there is an error on all ranks where that is promised."""
import os
import random
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
RANKS = 4
JOB_S = 2.5
# A rank that cannot be reached at all is given up after 16 s.
CUT_S = 40


def ip(*words):
    return subprocess.run(["ip", *words], capture_output=True, text=True)


class Network:
    """Two hosts and the box; gone at the end of a `with`."""

    def __init__(self, seed):
        self.name = f"tutti-campaign-{os.getpid()}"
        self.seed, self.box = seed, None

    def __enter__(self):
        for end in ("0", "1", "box"):
            ip("netns", "add", f"{self.name}-{end}")
            ip("-n", f"{self.name}-{end}", "link", "set", "lo", "up")
        for end in ("0", "1"):
            ip("-n", f"{self.name}-{end}", "link", "add", "eth0", "type", "veth", "peer", "name",
               f"side{end}", "netns", f"{self.name}-box")
            ip("-n", f"{self.name}-{end}", "addr", "add", f"10.79.0.{int(end) + 1}/24", "dev", "eth0")
            ip("-n", f"{self.name}-{end}", "link", "set", "eth0", "up")
            ip("-n", f"{self.name}-box", "link", "set", f"side{end}", "up")
        self.box = subprocess.Popen(["ip", "netns", "exec", f"{self.name}-box", sys.executable,
                                     os.path.join(HERE, "box.py"), "side0", "side1", str(self.seed)],
                                    stdin=subprocess.PIPE, text=True)
        return self

    def __exit__(self, *_):
        self.box.stdin.close()
        self.box.wait()
        for end in ("0", "1", "box"):
            ip("netns", "del", f"{self.name}-{end}")

    def tell(self, command):
        self.box.stdin.write(command + "\n")
        self.box.stdin.flush()


def why_not():
    """Why there can be no networks here, None: there can."""
    name = f"tutti-campaign-probe-{os.getpid()}"
    made = ip("netns", "add", name)
    entered = made.returncode == 0 and ip("netns", "exec", name, "true").returncode == 0
    ip("netns", "del", name)
    return None if entered else made.stderr.strip() or "namespaces cannot be entered"


def draw_event(draw, may_cut):
    """What the box does, and for how long; None: for ever."""
    if may_cut and draw.randrange(12) == 0:
        return draw.choice(["drop", "drop-left", "drop-right"]), None
    command = draw.choice(["drop", "drop-left", "drop-right", f"loss {draw.randrange(1, 15)}",
                           f"twice {draw.randrange(5, 60)}",
                           f"late {draw.randrange(5, 60)} {draw.randrange(1, 60)}"])
    return command, draw.uniform(0.05, 1.2)


def start(place, environment, network, kind, nbytes, seconds):
    meet = os.path.join(place.work, "meet")
    command = [os.path.join(place.tree, "tests/net_stream"), kind, str(nbytes), str(seconds)]
    return [subprocess.Popen(["ip", "netns", "exec", f"{network.name}-{rank % 2}", *command],
                             env=environment(place, TUTTI_RANK=str(rank), TUTTI_NRANKS=str(RANKS),
                                             TUTTI_COMM_FILE=meet, TUTTI_DEBUG="NONE",
                                             TUTTI_HOST_ID=str(rank % 2)),
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            for rank in range(RANKS)]


def judge(ranks, is_cut):
    wrong = ""
    for rank, process in enumerate(ranks):
        try:
            out, err = process.communicate(timeout=CUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            wrong += f"rank {rank} does not end\n"
        good = process.returncode == 0 and "bytes right" in out
        if " is " in err and ", not " in err:
            wrong += f"rank {rank}: wrong data: {err}\n"
        elif good == is_cut:
            wrong += f"rank {rank}: status {process.returncode} {out} {err}\n"
    return wrong


def run_one(place, environment, seed, may_cut):
    """What happened in one job, and what is wrong, "": nothing."""
    draw = random.Random(seed)
    kind = draw.choice(["all_reduce", "exchange", "send"])
    nbytes = draw.choice([64, 5000, 200000, 2000000])
    command, seconds = draw_event(draw, may_cut)
    told = f"{kind} of {nbytes} bytes, {command} for {seconds or 'ever'} s\n"
    with Network(seed) as network:
        ranks = start(place, environment, network, kind, nbytes, 60 if seconds is None else JOB_S)
        ranks[0].stdout.readline()  # "begin"
        time.sleep(draw.uniform(0, 0.8))
        network.tell(command)
        if seconds is not None:
            time.sleep(seconds)
            network.tell("pass")
        wrong = judge(ranks, seconds is None)
    meet = os.path.join(place.work, "meet")
    if os.path.exists(meet):
        os.remove(meet)
    return told, told + wrong if wrong else ""
