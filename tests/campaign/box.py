# SPDX-License-Identifier: BSD-3-Clause
"""A middle box between two interfaces: passes frames on, and does to them what it is told.

    python3 box.py LEFT RIGHT SEED      commands come as lines of its input

    pass | drop | drop-left | drop-right | loss PERCENT | twice PERCENT | late PERCENT MS
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


class Box:
    def __init__(self, left, right, seed):
        self.ports = [left, right]
        self.draw = random.Random(seed)
        self.what, self.percent, self.late_s = "pass", 0, 0
        self.held, self.number = [], 0

    def command(self, line):
        words = line.split() + ["0", "0"]
        self.what, self.percent, self.late_s = words[0], float(words[1]), float(words[2]) / 1000

    def send(self, side, frame):
        try:
            self.ports[side].send(frame)
        except OSError:
            pass  # its queue is full: a network drops, too

    def take(self, side, frame):
        hit = self.draw.random() * 100 < self.percent
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
                    return
                *lines, data = (data + got).split(b"\n")
                for line in lines:
                    self.command(line.decode())


if __name__ == "__main__":
    Box(open_port(sys.argv[1]), open_port(sys.argv[2]), int(sys.argv[3])).run()
