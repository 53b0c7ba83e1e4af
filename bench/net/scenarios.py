# SPDX-License-Identifier: BSD-3-Clause
"""What is measured, over which network, and how fast it could be at all.

The limit is bytes over bandwidth of the wire, headers of TCP and Ethernet not counted: with
them 0.956 of it is the most that can arrive."""
from dataclasses import dataclass

GBIT = 125e6  # bytes a second
MB = 1 << 20
PAYLOAD = 0.956


@dataclass(frozen=True)
class Point:
    scenario: str    # what --only names
    title: str
    operation: str
    nbytes: int
    nodes: int = 2
    ranks: int = 1   # of a node
    rates: tuple = ()  # Gbit/s of each rail; 0: as fast as the machine goes
    switched: bool = False
    target: float = 0  # share of the limit that is asked for
    times: bool = False  # the target is asked for as a multiple of the limit's time
    quick: bool = False  # part of the short form
    cut: tuple = ()      # rails that are cut in the middle

    @property
    def limit(self):
        """Seconds that the busiest wire is in use in its busier direction; None: no wire limits.

        Of the vector of N bytes, over the bandwidth of a node: a broadcast brings all of it into
        each node; so does all_gather but for what its own ranks gave, and a node of
        reduce_scatter sends as much, as its ranks' vectors are one once they are reduced. An
        all_reduce is both in a row. In all_to_all each rank sends all but what is for its node."""
        if not all(self.rates):
            return None
        elsewhere = (self.nodes - 1) / self.nodes
        share = {
            "all_reduce": 2 * elsewhere,
            "all_gather": elsewhere,
            "reduce_scatter": elsewhere,
            "all_to_all": self.ranks * elsewhere,
        }.get(self.operation, 1)
        return share * self.nbytes / (sum(self.rates) * GBIT)


def rate_text(rates):
    if len(set(rates)) == 1:
        return f"{len(rates)} x {rates[0]:g} Gbit/s"
    return " + ".join(f"{rate:g}" for rate in rates) + " Gbit/s"


PLAIN = ("send_recv", "broadcast", "all_reduce", "all_gather")


def equal_rails():
    for rails in (1, 2, 4):
        for operation in PLAIN:
            yield Point("equal", f"2 nodes, {rate_text((1,) * rails)}", operation, 16 * MB,
                        rates=(1,) * rails, target=0.93, quick=rails == 2)


def unequal_rails():
    for rates in ((1, 0.25), (1, 0.5, 0.25)):
        for operation in PLAIN:
            yield Point("unequal", f"2 nodes, {rate_text(rates)}", operation, 16 * MB,
                        rates=rates, target=0.90, quick=len(rates) == 2)


def to_all_ranks():
    for rates in ((1,), (1, 1), (1, 1, 1, 1), (1, 0.25)):
        for operation in ("handoff", "handoff_copies", "broadcast"):
            yield Point("handoff", f"2 nodes x 4 ranks, {rate_text(rates)}", operation, 64 * MB,
                        ranks=4, rates=rates, times=True,
                        target=1 / (1.06 if len(set(rates)) == 1 else 1.12),
                        quick=len(rates) == 2 and rates[1] == 1)


def four_nodes():
    for ranks in (1, 2):
        for operation in ("broadcast", "all_reduce", "all_gather", "reduce_scatter", "all_to_all"):
            yield Point("nodes", f"4 nodes x {ranks} rank{'s'[:ranks - 1]}, 1 x 1 Gbit/s each",
                        operation, 16 * MB, nodes=4, ranks=ranks, rates=(1,), switched=True,
                        target=0.93, quick=operation == "all_reduce")


def cut_rails():
    for rails, cut in ((2, (1,)), (2, (0,)), (4, (2,)), (2, (0, 1))):
        names = ", ".join(f"eth{rail}" for rail in cut)
        yield Point("cut", f"2 nodes, {rate_text((1,) * rails)}, {names} cut", "send_recv",
                    256 * MB, rates=(1,) * rails, times=True, cut=cut, quick=cut == (1,))


def unshaped():
    for nbytes in (8, 64 << 10, 16 * MB):
        for operation in ("ping_pong", *PLAIN[1:]):
            yield Point("unshaped", "2 nodes, veth as fast as it goes", operation, nbytes,
                        rates=(0,), quick=operation == "ping_pong")


def all_points():
    for points in (equal_rails, unequal_rails, to_all_ranks, four_nodes, cut_rails, unshaped):
        yield from points()


SCENARIOS = tuple(dict.fromkeys(point.scenario for point in all_points()))
