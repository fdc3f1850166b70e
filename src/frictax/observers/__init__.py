"""Kalman filters for machines that stick and slip.

    found = fx.kalman_filter(machine, record, start_sd={"mass.v": 0.01}, drift={...})
    found["mass.v"], found.sd["mass.v"]

Read the code in this order: first `filters` (simulation from sample to sample, Kalman filters, loop
over samples), then `kalman_filter` (the call and its result).
"""

from .kalman_filter import Filtered as Filtered, kalman_filter as kalman_filter
