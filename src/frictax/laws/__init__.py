"""Sliding characteristics: friction force over a speed v >= 0."""

from frictax.laws.as_law import as_law as as_law
from frictax.laws.coulomb import Coulomb as Coulomb
from frictax.laws.law import AbstractLaw as AbstractLaw, Characteristic as Characteristic
from frictax.laws.stribeck import Stribeck as Stribeck
from frictax.laws.table import Table as Table
from frictax.laws.temperature import TemperatureDependent as TemperatureDependent
