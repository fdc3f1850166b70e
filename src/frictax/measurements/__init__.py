"""Motion records and steady sweeps, with units and checks. It uses numpy and pandas only."""

from .readers import Column as Column
from .record import Record as Record
from .sweep import Sweep as Sweep
