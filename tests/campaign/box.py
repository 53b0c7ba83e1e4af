# SPDX-License-Identifier: BSD-3-Clause
"""A middle box between two interfaces: passes frames on, and does to them what it is told.

    python3 box.py LEFT RIGHT SEED HEX...   commands come as lines of its input

    pass | drop | drop-left | drop-right | loss PERCENT | twice PERCENT | late PERCENT MS
    flip PERCENT     changes one bit of what TCP carries, so that TCP does not notice
    swap PERCENT     sends its second half before the first
    replay PERCENT   sends in its place what it had seen before on that connection
    take             speaks for both sides of the next connection that it sees, until that ends

It looks for each HEX in what TCP carries. At its end it says how many such frames there were, how many
of them it has changed, and in how many it has found what it looked for.
"""
import heapq
import os
import random
import select
import socket
import sys
import time

SOL_PACKET, VNET_HDR, IGNORE_OUTGOING = 263, 15, 23
FRAME = 10 + 65536 + 64  # what goes with a frame that is cut later, and the largest of those


def open_port(name):
    port = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    port.setsockopt(SOL_PACKET, VNET_HDR, 1)
    port.setsockopt(SOL_PACKET, IGNORE_OUTGOING, 1)
    port.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
    port.bind((name, 3))  # ETH_P_ALL
    port.setblocking(False)
    return port


def payload_of(frame):
    """The connection and direction of a frame, and where what TCP carries begins; None: it carries
    nothing."""
    kind, ip = frame[22:24], 24
    if kind == b"\x08\x00":
        protocol, addresses, tcp = frame[ip + 9], frame[ip + 12:ip + 20], ip + (frame[ip] & 15) * 4
    elif kind == b"\x86\xdd":
        protocol, addresses, tcp = frame[ip + 6], frame[ip + 8:ip + 40], ip + 40
    else:
        return None
    if protocol != socket.IPPROTO_TCP:
        return None
    begin = tcp + (frame[tcp + 12] >> 4) * 4
    return (addresses + frame[tcp:tcp + 4], begin) if begin < len(frame) else None


def is_changeable(frame):
    """Its checksum is made later, and so will be right."""
    return frame[0] & 1


class Box:
    def __init__(self, left, right, seed, texts):
        self.ports = [left, right]
        self.draw = random.Random(seed)
        self.what, self.percent, self.late_s = "pass", 0, 0
        self.held, self.number = [], 0
        self.texts, self.seen, self.changed, self.found = texts, 0, 0, 0
        self.taken, self.past = set(), {}

    def command(self, line):
        words = line.split() + ["0", "0"]
        self.what, self.percent, self.late_s = words[0], float(words[1]), float(words[2]) / 1000

    def send(self, side, frame):
        try:
            self.ports[side].send(frame)
        except OSError:
            pass  # its queue is full: a network drops, too

    def other_bytes(self, flow, data, hit):
        """What goes on in the place of this; None: the same."""
        if self.what == "take" and not self.taken:
            self.taken.add(flow)
        if flow in self.taken:
            return self.draw.randbytes(len(data))
        if not hit:
            return None
        if self.what == "flip":
            at = self.draw.randrange(len(data))
            return data[:at] + bytes([data[at] ^ 1 << self.draw.randrange(8)]) + data[at + 1:]
        if self.what == "swap":
            return data[len(data) // 2:] + data[:len(data) // 2]
        return self.past.get((flow, len(data))) if self.what == "replay" else None

    def look(self, frame, hit):
        """The frame that goes on."""
        flow, begin = payload_of(frame) or (None, 0)
        if not flow:
            return frame
        data = frame[begin:]
        self.seen += 1
        self.found += any(text in data for text in self.texts)
        other = self.other_bytes(flow, data, hit) if is_changeable(frame) else None
        if len(self.past) > 4096:
            self.past.clear()
        self.past.setdefault((flow, len(data)), data)
        if other is None or other == data:
            return frame
        self.changed += 1
        return frame[:begin] + other

    def take(self, side, frame):
        hit = self.draw.random() * 100 < self.percent
        frame = self.look(frame, hit)
        if self.what == "drop" or self.what == ("drop-left", "drop-right")[side]:
            return
        if self.what == "loss" and hit:
            return
        if self.what == "late" and hit:
            self.number += 1
            heapq.heappush(self.held, (time.monotonic() + self.late_s, self.number, 1 - side, frame))
            return
        for _ in range(2 if self.what == "twice" and hit else 1):
            self.send(1 - side, frame)

    def run(self):
        poll, data = select.poll(), b""
        for fd in (0, *self.ports):
            poll.register(fd, select.POLLIN)
        while True:
            wait = self.held[0][0] - time.monotonic() if self.held else 1
            ready = {fd for fd, _ in poll.poll(max(0, wait) * 1000)}
            while self.held and self.held[0][0] <= time.monotonic():
                _, _, side, frame = heapq.heappop(self.held)
                self.send(side, frame)
            for side, port in enumerate(self.ports):
                for _ in range(64 if port.fileno() in ready else 0):
                    try:
                        self.take(side, port.recv(FRAME))
                    except OSError:
                        break
            if 0 in ready:
                got = os.read(0, 4096)
                if not got:
                    print(self.seen, self.changed, self.found)
                    return
                *lines, data = (data + got).split(b"\n")
                for line in lines:
                    self.command(line.decode())


if __name__ == "__main__":
    Box(open_port(sys.argv[1]), open_port(sys.argv[2]), int(sys.argv[3]),
        [bytes.fromhex(text) for text in sys.argv[4:]]).run()
