"""Kalman filters through stick and slip.

    found = fx.kalman_filter(machine, record, start_sd={"mass.v": 0.01}, drift={...})
    found["mass.v"], found.sd["mass.v"]

Read in this order: `filters` (the exact run from one sample to the next, steps of Kalman filters,
and the loop over samples), `kalman_filter` (the call and its result).
"""

from .kalman_filter import Filtered as Filtered, kalman_filter as kalman_filter
