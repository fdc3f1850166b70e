"""Drive signals: functions of time that are smooth between known switching times."""

from .as_signal import as_signal as as_signal
from .function import Function as Function
from .periodic import Pulse as Pulse, Trapezoid as Trapezoid
from .sampled import Sampled as Sampled
from .signal import AbstractSignal as AbstractSignal, Drive as Drive, check_signal as check_signal
from .sine import Sine as Sine
from .step import Constant as Constant, Ramp as Ramp, Step as Step
