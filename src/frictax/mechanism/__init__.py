"""Bodies, what acts between them, and their assembly to a hybrid system."""

from frictax.mechanism.axis import AbstractAxis as AbstractAxis
from frictax.mechanism.bodies import Fixed as Fixed
from frictax.mechanism.bodies import Inertia as Inertia
from frictax.mechanism.bodies import Mass as Mass
from frictax.mechanism.driven import Driven as Driven
from frictax.mechanism.forces import Damper as Damper
from frictax.mechanism.forces import Force as Force
from frictax.mechanism.forces import LinearPositionDependentForce as LinearPositionDependentForce
from frictax.mechanism.forces import Position as Position
from frictax.mechanism.forces import PositionController as PositionController
from frictax.mechanism.forces import RotationalDamper as RotationalDamper
from frictax.mechanism.forces import RotationalSpring as RotationalSpring
from frictax.mechanism.forces import RotationalSpringDamper as RotationalSpringDamper
from frictax.mechanism.forces import Spring as Spring
from frictax.mechanism.forces import SpringDamper as SpringDamper
from frictax.mechanism.forces import Torque as Torque
from frictax.mechanism.gears import IdealGear as IdealGear
from frictax.mechanism.gears import IdealPlanetary as IdealPlanetary
from frictax.mechanism.hybrid import MechanicalSystem as MechanicalSystem
from frictax.mechanism.linkage import AbstractLinkage as AbstractLinkage
from frictax.mechanism.lossy_gear import LossyGear as LossyGear
from frictax.mechanism.mechanism import Mechanism as Mechanism
from frictax.mechanism.system import AbstractHybridSystem as AbstractHybridSystem
from frictax.mechanism.thermal import HeatCapacitor as HeatCapacitor
from frictax.mechanism.thermal import ThermalConductor as ThermalConductor
