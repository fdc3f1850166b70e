"""Where friction acts: the elements of the Modelica Standard Library."""

from frictax.contacts.bearing_friction import BearingFriction as BearingFriction
from frictax.contacts.brake import Brake as Brake
from frictax.contacts.clutch import Clutch as Clutch, clutch_geometry as clutch_geometry
from frictax.contacts.contact import AbstractContact as AbstractContact
from frictax.contacts.mass_with_stop import MassWithStopAndFriction as MassWithStopAndFriction
from frictax.contacts.mode import Mode as Mode
from frictax.contacts.one_way_clutch import OneWayClutch as OneWayClutch
from frictax.contacts.pressing import MotionDependent as MotionDependent
from frictax.contacts.support_friction import SupportFriction as SupportFriction
