"""Drives over time: smooth between switches, whose times are known in advance."""

from frictax.signals.as_signal import as_signal as as_signal
from frictax.signals.function import Function as Function
from frictax.signals.periodic import Pulse as Pulse, Trapezoid as Trapezoid
from frictax.signals.sampled import Sampled as Sampled
from frictax.signals.signal import (
    AbstractSignal as AbstractSignal,
    Drive as Drive,
    check_signal as check_signal,
)
from frictax.signals.sine import Sine as Sine
from frictax.signals.step import Constant as Constant, Ramp as Ramp, Step as Step
