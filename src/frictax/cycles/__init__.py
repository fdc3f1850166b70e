"""Limit cycles, such as hunting and stick-slip: find, differentiate and continue them."""

from .branch import Branch as Branch, continued as continued
from .cycle import CycleError as CycleError, CycleEvent as CycleEvent, LimitCycle as LimitCycle
from .following import CycleNumbers as CycleNumbers
from .limit_cycle import limit_cycle as limit_cycle
