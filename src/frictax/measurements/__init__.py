"""Measured data: motion records and steady sweeps, read, checked, with units. numpy only."""

from frictax.measurements.readers import Column as Column
from frictax.measurements.record import Record as Record
from frictax.measurements.sweep import Sweep as Sweep
