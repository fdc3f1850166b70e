"""Friction elements of the Modelica Standard Library."""

from .bearing_friction import BearingFriction as BearingFriction
from .brake import Brake as Brake
from .clutch import Clutch as Clutch, clutch_geometry as clutch_geometry
from .contact import AbstractContact as AbstractContact
from .mass_with_stop import MassWithStopAndFriction as MassWithStopAndFriction
from .mode import Mode as Mode
from .one_way_clutch import OneWayClutch as OneWayClutch
from .pressing import MotionDependent as MotionDependent
from .support_friction import SupportFriction as SupportFriction
