# SPDX-License-Identifier: BSD-3-Clause
"""Jobs on two hosts, which are network namespaces, with a middle box between them that drops, repeats
and holds up frames: data has to be right, or there is an error on all ranks where that is promised.

Half of the jobs are encrypted. Theirs the box also changes, and it looks for what it knows of the data: such
a job goes on right or ends with an error on all ranks, and the box finds nothing. In those that are not
encrypted it has to find it."""
import collections
import os
import random
import struct
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
RANKS = 4
# So long a job goes on once the network is as it was.
AFTER_S = 0.5
# A rank that cannot be reached at all is given up after 16 s, and what the box has made of an encrypted
# connection may be the beginning of something long.
CUT_S = 150
TIMEOUT_MS = 20000
# What net_stream sends among other things, and sums of it.
KNOWN = (0x6b6e6f, 0x776e20, 0x746578, 0x742021)
TEXTS = [struct.pack("<4i", *(ranks * word for word in KNOWN)).hex() for ranks in range(1, RANKS + 1)]

# What happened in one job, and what is wrong, "": nothing; of an encrypted one, what the box has seen.
Round = collections.namedtuple("Round", "told wrong is_sealed frames changed")


def ip(*words):
    return subprocess.run(["ip", *words], capture_output=True, text=True)


class Network:
    """Two hosts and the box; gone at the end of a `with`."""

    def __init__(self, seed):
        self.name = f"tutti-campaign-{os.getpid()}"
        self.seed, self.box = seed, None
        self.frames = self.changed = self.found = 0

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
                                     os.path.join(HERE, "box.py"), "side0", "side1", str(self.seed),
                                     *TEXTS],
                                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        return self

    def __exit__(self, *_):
        self.box.stdin.close()
        self.frames, self.changed, self.found = map(int, self.box.stdout.read().split())
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


def draw_event(draw, may_cut, is_sealed):
    """What the box does, and for how long; None: for ever."""
    if may_cut and draw.randrange(12) == 0:
        return draw.choice(["drop", "drop-left", "drop-right"]), None
    few = f"{10 ** draw.uniform(-2, 1.3):.2f}"
    attacks = [f"flip {few}", f"swap {few}", f"replay {few}", "take"]
    events = ["drop", "drop-left", "drop-right", f"loss {draw.randrange(1, 15)}",
              f"twice {draw.randrange(5, 60)}", f"late {draw.randrange(5, 60)} {draw.randrange(1, 60)}"]
    command = draw.choice(attacks if is_sealed and draw.randrange(2) else events)
    return command, draw.uniform(0.05, 1.2)


def start(place, environment, network, command, is_sealed):
    meet = os.path.join(place.work, "meet")
    sealed = {"TUTTI_ENCRYPT": "1", "TUTTI_TIMEOUT_MS": str(TIMEOUT_MS)} if is_sealed else {}
    command = [os.path.join(place.tree, "tests/net_stream"), *command]
    return [subprocess.Popen(["ip", "netns", "exec", f"{network.name}-{rank % 2}", *command],
                             env=environment(place, TUTTI_RANK=str(rank), TUTTI_NRANKS=str(RANKS),
                                             TUTTI_COMM_FILE=meet, TUTTI_DEBUG="NONE",
                                             TUTTI_HOST_ID=str(rank % 2), **sealed),
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            for rank in range(RANKS)]


def judge(ranks, may_fail, must_fail):
    """If one rank fails, all have to."""
    wrong, said, failed = "", "", []
    for rank, process in enumerate(ranks):
        try:
            out, err = process.communicate(timeout=CUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            wrong += f"rank {rank} does not end\n"
        failed.append(process.returncode != 0 or "bytes right" not in out)
        said += f"rank {rank}: status {process.returncode} {out} {err}\n"
        if " is " in err and ", not " in err:
            wrong += f"rank {rank}: wrong data: {err}\n"
    if any(failed) != all(failed) or (all(failed) and not may_fail) or (must_fail and not any(failed)):
        wrong += said
    return wrong


def run_one(place, environment, seed, may_cut):
    draw = random.Random(seed)
    kind = draw.choice(["all_reduce", "exchange", "send"])
    nbytes = draw.choice([64, 5000, 200000, 2000000])
    is_sealed = draw.randrange(2) == 1
    command, seconds = draw_event(draw, may_cut, is_sealed)
    told = (f"{kind} of {nbytes} bytes, {'encrypted, ' if is_sealed else ''}{command} for "
            f"{seconds or 'ever'} s\n")
    # They run until there is that file, or until they fail: what is done to them is over before their end.
    over = os.path.join(place.work, "over")
    with Network(seed) as network:
        ranks = start(place, environment, network, [kind, str(nbytes), over], is_sealed)
        ranks[0].stdout.readline()  # "begin"
        time.sleep(draw.uniform(0, 0.8))
        network.tell(command)
        if seconds is not None:
            time.sleep(seconds)
            network.tell("pass")
            time.sleep(AFTER_S)
            with open(over, "w", encoding="ascii"):
                pass
        is_attack = command.split()[0] in ("flip", "swap", "replay", "take")
        wrong = judge(ranks, seconds is None or is_attack, seconds is None)
    if is_sealed and network.found:
        wrong += f"{network.found} frames can be read\n"
    if not is_sealed and kind != "all_reduce" and not network.found:
        wrong += "the box has not found what was sent for it to read\n"
    for path in (over, os.path.join(place.work, "meet")):
        if os.path.exists(path):
            os.remove(path)
    return Round(told, told + wrong if wrong else "", is_sealed, network.frames, network.changed)
