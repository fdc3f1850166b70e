"""Where friction acts: the elements of the Modelica Standard Library."""

from frictax.contacts.brake import Brake as Brake
from frictax.contacts.contact import AbstractContact as AbstractContact
from frictax.contacts.mass_with_stop import MassWithStopAndFriction as MassWithStopAndFriction
from frictax.contacts.mode import Mode as Mode
from frictax.contacts.support_friction import SupportFriction as SupportFriction
