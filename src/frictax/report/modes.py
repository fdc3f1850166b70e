"""The name, colour, hatching and times of each mode of a contact, for figures.

The colours are those of M. Okabe and K. Ito (2008), which colour-blind readers can distinguish.
"""

import numpy as np

from frictax.contacts import Mode
from frictax.trajectory import Trajectory

FORWARD, BACKWARD = "#0072B2", "#D55E00"
STUCK, FREE = "#B4B8BE", "#FFFFFF"
MODES = {  # mode -> (name, colour, hatching of matplotlib)
    Mode.BACKWARD: ("backward", BACKWARD, ""),
    Mode.STUCK: ("stuck", STUCK, ""),
    Mode.FORWARD: ("forward", FORWARD, ""),
    Mode.FREE: ("free", FREE, "////"),
}


def mode_spans(run: Trajectory, name: str) -> list[tuple[Mode, float, float]]:
    """Return the successive modes of contact `name`, each with its start and end time [s].

    A contact with a bristle does not have events, so its modes are known only at the samples.
    """
    events = run.events
    if name not in events.names:
        known = np.all(np.isfinite(np.asarray(run.ys)), axis=1)
        ts, modes = np.asarray(run.ts)[known], np.asarray(run[name].mode)[known]
        firsts = [0, *(np.flatnonzero(np.diff(modes)) + 1)]
        stops = [*ts[firsts[1:]], *ts[-1:]]
        pairs = zip(firsts, stops, strict=True)
        return [(Mode(int(modes[i])), float(ts[i]), float(end)) for i, end in pairs if end > ts[i]]
    mine = np.asarray(events.part)[: int(events.count)] == events.names.index(name)
    times, before, after = (
        np.asarray(a)[: mine.size][mine]
        for a in (events.time, events.mode_before, events.mode_after)
    )
    modes = np.asarray(run.modes)[:, events.names.index(name)]
    reached = np.flatnonzero(np.all(np.isfinite(np.asarray(run.ys)), axis=1))
    begin, end = float(run.ts[0]), float(run.ts[reached[-1]] if reached.size else run.ts[0])
    first = int(before[0] if times.size else modes[0])
    ends = [*map(float, times), max(end, float(times[-1]) if times.size else end)]
    spans, start = [], begin
    for mode, stop in zip([first, *map(int, after)], ends, strict=True):
        if stop > start:
            spans.append((Mode(mode), start, stop))
        start = stop
    return spans
