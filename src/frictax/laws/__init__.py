"""Friction laws: sliding friction as a function of the speed v >= 0."""

from .as_law import as_law as as_law
from .coulomb import Coulomb as Coulomb
from .law import AbstractLaw as AbstractLaw, Characteristic as Characteristic
from .stribeck import Stribeck as Stribeck
from .table import Table as Table
from .temperature import TemperatureDependent as TemperatureDependent
