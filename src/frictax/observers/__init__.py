"""Kalman filters through stick and slip.

    seen = fx.kalman_filter(machine, record, start_sd={"mass.v": 0.01}, drift={...})
    seen["mass.v"], seen.sd["mass.v"]

Read in this order: `interval` (the exact run from one sample to the next), `mixture` (a step of one
or several Kalman filters), `loop` (all samples of a record), `kalman_filter`, `filtered`.
"""

from .filtered import Filtered as Filtered
from .kalman_filter import kalman_filter as kalman_filter
