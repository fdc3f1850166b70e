"""Bristles: what friction does before it slides."""

from .bristle import AbstractBristle as AbstractBristle
from .elasto_plastic import ElastoPlastic as ElastoPlastic
from .lugre import Dahl as Dahl, LuGre as LuGre
from .maxwell_slip import MaxwellSlip as MaxwellSlip
