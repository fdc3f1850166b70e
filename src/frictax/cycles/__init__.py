"""Limit cycles, such as hunting and stick-slip, by shooting on the return map."""

from .branch import Branch as Branch, continued as continued
from .cycle import CycleEvent as CycleEvent, LimitCycle as LimitCycle
from .finding import limit_cycle as limit_cycle
from .following import CycleNumbers as CycleNumbers
from .made import CycleError as CycleError
