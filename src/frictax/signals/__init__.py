"""Drives over time: smooth between switches, whose times are known in advance."""

from frictax.signals.as_signal import as_signal as as_signal
from frictax.signals.function import Function as Function
from frictax.signals.periodic import Pulse as Pulse
from frictax.signals.periodic import Trapezoid as Trapezoid
from frictax.signals.sampled import Sampled as Sampled
from frictax.signals.signal import AbstractSignal as AbstractSignal
from frictax.signals.signal import Drive as Drive
from frictax.signals.signal import check_signal as check_signal
from frictax.signals.sine import Sine as Sine
from frictax.signals.step import Constant as Constant
from frictax.signals.step import Ramp as Ramp
from frictax.signals.step import Step as Step
