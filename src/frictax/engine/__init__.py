"""The engine: simulate a hybrid system from event to event.

A system defines `flow` (the motion), `guard` (event functions) and `jump` (changes at events). The
engine contains nothing specific to friction.
"""

from .options import Adaptive as Adaptive, Engine as Engine, OnSamples as OnSamples
from .result import Result as Result
from .system import (
    CUT as CUT,
    DEADLINE as DEADLINE,
    END as END,
    AbstractHybridSystem as AbstractHybridSystem,
)
from .walk import Path as Path, walk as walk
