"""Measured motions (`Record`) and friction at steady speeds (`Sweep`), with units and checks."""

from .readers import Column as Column
from .record import Record as Record
from .sweep import Sweep as Sweep
