"""Friction laws: sliding friction as a function of the speed v >= 0."""

from .as_law import as_law as as_law
from .coulomb import Coulomb as Coulomb
from .law import (
    AbstractLaw as AbstractLaw,
    Characteristic as Characteristic,
    has_start as has_start,
)
from .stribeck import Stribeck as Stribeck
from .table import Table as Table
from .temperature import TemperatureDependent as TemperatureDependent

# All laws of the package. Problem files, reports and the search for start values use this list.
LAWS: tuple[type[AbstractLaw], ...] = (Coulomb, Stribeck, Table, TemperatureDependent)
# The laws whose start values for a fit can be computed from data.
LAWS_WITH_START = tuple(law for law in LAWS if has_start(law))
