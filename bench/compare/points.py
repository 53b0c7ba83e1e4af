# SPDX-License-Identifier: BSD-3-Clause
"""What was measured, as values: points, their ratios, files of them, and tables as text. Times
are medians of the rounds, and ratios are medians of each round's ratio.

A file has one JSON object a line: first {"about": ...}, the machine, the versions and the
settings; then one point each. Several files one after another are a file, too."""
import json
import math
import statistics
import sys

TUTTI = ("tutti", "tutti-mem")
# Where registered memory is to be faster than that of malloc.
REGISTERED_FROM = 1 << 20


def size_text(nbytes):
    for unit, name in ((1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "KB")):
        if nbytes >= unit and nbytes % unit == 0:
            return f"{nbytes // unit} {name}"
    return f"{nbytes} B" if nbytes else "-"


def time_text(us):
    """Three digits: there are no more in a measurement."""
    if us is None:
        return "-"
    us = float(f"{us:.3g}")
    return f"{us:.2f}" if us < 10 else f"{us:.1f}" if us < 100 else f"{us:.0f}"


def ratio_text(ratio):
    return f"{ratio:.2f}" if ratio else "-"


def rounded(value):
    return float(f"{value:.4g}")


def median(values):
    measured = [value for value in values if value]
    return rounded(statistics.median(measured)) if measured else None


def median_ratio(over, under):
    """Of what was measured in the same round: what the machine does for minutes at a time, as
    moving its cores nearer to each other, does not count then."""
    return median([a / b if a and b else None for a, b in zip(over, under)])


def make_point(operation, nranks, nbytes, times):
    """times: us by library, one of each round, None where it was given up."""
    tutti = times["tutti"]
    ratios = {name: median_ratio(mine, tutti) for name, mine in times.items() if name not in TUTTI}
    ratios = {name: ratio for name, ratio in ratios.items() if ratio}
    best = min(ratios, key=ratios.get) if ratios else None
    return {"operation": operation, "nranks": nranks, "bytes": nbytes,
            "us": {name: median(mine) for name, mine in times.items()},
            "best_peer": best,
            "peer_over_tutti": ratios.get(best),
            "tutti_over_registered": median_ratio(tutti, times.get("tutti-mem", []))}


def read(paths):
    """(abouts, points) of files; a point that comes twice counts as it was measured last."""
    abouts, points = [], {}
    for path in paths:
        with open(path, encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                try:
                    value = json.loads(line)
                    if "about" in value:
                        abouts.append(value["about"])
                    else:
                        points[value["operation"], value["nranks"], value["bytes"]] = value
                except (ValueError, KeyError, TypeError) as error:
                    sys.exit(f"{path}:{number}: not a point of bench/compare/run --json: {error}")
    return abouts, list(points.values())


def geometric_mean(ratios):
    return math.exp(sum(math.log(ratio) for ratio in ratios) / len(ratios)) if ratios else None


def ratios_of(points, operation=None):
    """Best peer over Tutti of all points of an operation, or of all."""
    return [point["peer_over_tutti"] for point in points
            if point["peer_over_tutti"] and operation in (None, point["operation"])]


def registered_ratios_of(points, operation=None):
    return [point["tutti_over_registered"] for point in points
            if point["tutti_over_registered"] and operation in (None, point["operation"])
            and point["bytes"] >= REGISTERED_FROM]


def operations_of(points):
    return list(dict.fromkeys(point["operation"] for point in points))


def head(operation, names):
    columns = "".join(f"{name:>12}" for name in names)
    return (f"\n{operation}\n{'ranks':>5}{'size':>9}{columns}{'peer/tutti':>12}  {'best peer':<12}"
            f"{'tutti/mem':>10}")


def row(point, names):
    columns = "".join(f"{time_text(point['us'].get(name)):>12}" for name in names)
    return (f"{point['nranks']:>5}{size_text(point['bytes']):>9}{columns}"
            f"{ratio_text(point['peer_over_tutti']):>12}  {point['best_peer'] or '-':<12}"
            f"{ratio_text(point['tutti_over_registered']):>10}")


def summary(points):
    """Lines: geometric means of each operation and of all, and how many points are not won."""
    lines = [f"{'geometric means':<16}{'points':>7}{'peer/tutti':>12}{'below 1':>9}"
             f"{'tutti/mem, 1 MB up':>20}"]
    for operation in [*operations_of(points), None]:
        ratios = ratios_of(points, operation)
        lines.append(f"{operation or 'all':<16}{len(ratios):>7}"
                     f"{ratio_text(geometric_mean(ratios)):>12}"
                     f"{sum(ratio < 1 for ratio in ratios):>9}"
                     f"{ratio_text(geometric_mean(registered_ratios_of(points, operation))):>20}")
    return lines
