"""Observers: what a machine does now, from its sensors.

    seen = fx.kalman_filter(machine, record, start_sd={"mass.v": 0.01}, drift={...})
    seen["mass.v"], seen.sd["mass.v"]

Read in this order: `interval` (the exact run from one sample to the next), `mixture` (one Kalman
filter or several side by side, one step), `loop` (over a record), `kalman_filter`, `filtered`.
"""

from .filtered import Filtered as Filtered
from .kalman_filter import kalman_filter as kalman_filter
