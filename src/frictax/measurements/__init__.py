"""Measured data: motion records and steady sweeps, read, checked, with units. numpy only."""

from .readers import Column as Column
from .record import Record as Record
from .sweep import Sweep as Sweep
