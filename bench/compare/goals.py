# SPDX-License-Identifier: BSD-3-Clause
"""What the project wants to reach beside other libraries, and which points miss it."""
import dataclasses

import points


@dataclasses.dataclass(frozen=True)
class Goal:
    """Of the best other library over Tutti: what no point may be below, and what the geometric
    mean of all shall be."""

    title: str
    mode: str
    ratio: str
    library: str
    least: float
    mean: float

    def points(self, measured):
        """A barrier has no memory: there only Tutti as it is can be compared."""
        return [point for point in points.of_mode(measured, self.mode) if point.get(self.ratio)
                and (self.library == "tutti" or point["operation"] != "barrier")]

    def missed(self, measured):
        mine = [point for point in self.points(measured) if point[self.ratio] < self.least]
        return sorted(mine, key=lambda point: point[self.ratio])


GOALS = (
    Goal("rewritten", "rewritten", "peer_over_tutti", "tutti", 0.95, 1.7),
    Goal("unchanged", "unchanged", "peer_over_tutti", "tutti", 0.95, 1.6),
    Goal("memory of the shared heap, rewritten", "rewritten", "peer_over_registered",
         "tutti-mem", 1, 2.2),
    Goal("memory of the shared heap, unchanged", "unchanged", "peer_over_registered",
         "tutti-mem", 1, 2.2),
)

# Beside busy loops: the most us that a call of Tutti shall take in the mean, up to this size.
LOADED_GOALS = ((8, 100), (64 << 10, 300))


def loaded_goal(point):
    """None: nothing is asked for."""
    return next((most for nbytes, most in LOADED_GOALS if point["bytes"] <= nbytes), None)


def loaded_missed(measured):
    mine = [point for point in points.of_mode(measured, "loaded")
            if loaded_goal(point) and point["us"]["tutti"]]
    return [point for point in mine if point["us"]["tutti"] > loaded_goal(point)]
