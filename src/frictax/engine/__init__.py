"""The engine: walks a hybrid system from mode to mode.

It knows flow, guard and jump, and nothing of friction.
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
