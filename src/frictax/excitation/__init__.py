"""Design of experiments: excitations that identify the parameters best within limits."""

from .design import Design as Design, design as design
from .information import information as information
from .limits import Limits as Limits, Margins as Margins
from .shapes import (
    AbstractShape as AbstractShape,
    Chirp as Chirp,
    CubicSpline as CubicSpline,
    FourierSeries as FourierSeries,
    Multisine as Multisine,
    Ramps as Ramps,
    Staircase as Staircase,
)
