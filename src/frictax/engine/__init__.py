"""The engine: walks a hybrid system from mode to mode. It knows flow, guard and jump, and nothing of friction."""

from frictax.engine.options import Adaptive as Adaptive
from frictax.engine.options import OnSamples as OnSamples
from frictax.engine.result import Result as Result
from frictax.engine.system import CUT as CUT
from frictax.engine.system import DEADLINE as DEADLINE
from frictax.engine.system import END as END
from frictax.engine.system import AbstractHybridSystem as AbstractHybridSystem
from frictax.engine.walk import Path as Path
from frictax.engine.walk import walk as walk
