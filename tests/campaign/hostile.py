# SPDX-License-Identifier: BSD-3-Clause
"""A job whose ports are attacked while it runs: its data has to be right, and it has to end."""
import os
import random
import socket
import subprocess
import threading
import time

HELLO = b"TUTTI\r\n\x1a"  # how a handshake begins: src/boot/net/auth.c
RANKS = 4
BYTES = 20000


def start_job(place, environment, over, kind="all_reduce"):
    """Ranks over TCP of one host, until there is the file `over`; what they say is piped."""
    meet = os.path.join(place.work, "meet")
    more = {"TUTTI_NRANKS": str(RANKS), "TUTTI_COMM_FILE": meet, "TUTTI_TRANSPORT": "tcp",
            "TUTTI_DEBUG": "NONE"}
    command = [os.path.join(place.tree, "tests/net_stream"), kind, str(BYTES), over]
    return [subprocess.Popen(command, env=environment(place, TUTTI_RANK=str(rank), **more),
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            for rank in range(RANKS)]


def ports_of(pid):
    """TCP ports that a process listens at, by the inodes of its sockets."""
    inodes = set()
    for name in os.listdir(f"/proc/{pid}/fd"):
        try:
            target = os.readlink(f"/proc/{pid}/fd/{name}")
        except OSError:
            continue
        if target.startswith("socket:["):
            inodes.add(target[8:-1])
    found = set()
    for path in ("/proc/net/tcp", "/proc/net/tcp6"):
        with open(path, encoding="ascii") as file:
            for line in list(file)[1:]:
                words = line.split()
                if words[3] == "0A" and words[9] in inodes:
                    found.add((int(words[1].split(":")[1], 16), path.endswith("6")))
    return found


def payload(draw):
    """What a stranger sends: nothing, noise, or a hello that goes wrong somewhere."""
    hello = HELLO + bytes(draw.randrange(256) for _ in range(40))
    how = draw.randrange(6)
    if how == 0:
        return b""
    if how == 1:
        return draw.randbytes(draw.randrange(1, 300))
    if how == 2:
        return hello[:draw.randrange(1, 48)]
    if how == 3:
        return hello + draw.randbytes(draw.randrange(200))
    if how == 4:
        return HELLO + bytes([draw.randrange(256), 0]) + draw.randbytes(4000)
    at = draw.randrange(len(hello))
    return hello[:at] + bytes([hello[at] ^ 1 << draw.randrange(8)]) + hello[at + 1:]


def attack(ports, draw, until):
    """Connections until then; some are kept open, as slow strangers do. How many."""
    count, kept = 0, []
    while time.monotonic() < until:
        port, is_v6 = draw.choice(ports)
        family = socket.AF_INET6 if is_v6 else socket.AF_INET
        with_it = socket.socket(family, socket.SOCK_STREAM)
        with_it.settimeout(0.2)
        try:
            with_it.connect(("::1" if is_v6 else "127.0.0.1", port))
            with_it.sendall(payload(draw))
            if draw.randrange(2):
                with_it.recv(1000)
        except OSError:
            pass
        count += 1
        if draw.randrange(20) == 0 and len(kept) < 200:
            kept.append(with_it)
        else:
            with_it.close()
    for with_it in kept:
        with_it.close()
    return count


def run_one(place, environment, seed, seconds):
    """How many connections there were, and what is wrong, None: nothing."""
    draw = random.Random(seed)
    over = os.path.join(place.work, "over")
    ranks = start_job(place, environment, over)
    ranks[0].stdout.readline()  # "begin"
    ports = sorted(set().union(*(ports_of(rank.pid) for rank in ranks)))
    counts = []
    if ports:
        until = time.monotonic() + seconds
        threads = [threading.Thread(target=lambda own: counts.append(attack(ports, own, until)),
                                    args=(random.Random(draw.random()),)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    with open(over, "w", encoding="ascii"):
        pass
    wrong = None if ports else "no rank listens\n"
    for rank, process in enumerate(ranks):
        try:
            out, err = process.communicate(timeout=150)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            wrong = f"rank {rank} does not end\n"
        if process.returncode or "bytes right" not in out:
            wrong = (wrong or "") + f"rank {rank}: status {process.returncode} {out} {err}\n"
    for path in (over, os.path.join(place.work, "meet")):
        if os.path.exists(path):
            os.remove(path)
    return sum(counts), wrong
