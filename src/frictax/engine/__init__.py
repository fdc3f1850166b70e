"""The engine: walks a hybrid system from mode to mode.

It knows flow, guard and jump, and nothing of friction.
"""

from frictax.engine.options import Adaptive as Adaptive, OnSamples as OnSamples
from frictax.engine.result import Result as Result
from frictax.engine.system import (
    CUT as CUT,
    DEADLINE as DEADLINE,
    END as END,
    AbstractHybridSystem as AbstractHybridSystem,
)
from frictax.engine.walk import Path as Path, walk as walk
