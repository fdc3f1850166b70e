"""Bristles: presliding models, for the small elastic motion before a contact slides."""

from .bristle import AbstractBristle as AbstractBristle
from .dahl import Dahl as Dahl
from .elasto_plastic import ElastoPlastic as ElastoPlastic
from .lugre import LuGre as LuGre
from .maxwell_slip import MaxwellSlip as MaxwellSlip
