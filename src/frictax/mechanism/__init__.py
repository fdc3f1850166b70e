"""Bodies, what acts between them, and their assembly to a hybrid system."""

from frictax.engine.system import AbstractHybridSystem as AbstractHybridSystem

from .axis import AbstractAxis as AbstractAxis
from .bodies import Fixed as Fixed, Inertia as Inertia, Mass as Mass
from .driven import Driven as Driven
from .forces import (
    Damper as Damper,
    Force as Force,
    Position as Position,
    PositionController as PositionController,
    RotationalDamper as RotationalDamper,
    RotationalSpring as RotationalSpring,
    RotationalSpringDamper as RotationalSpringDamper,
    Spring as Spring,
    SpringDamper as SpringDamper,
    Torque as Torque,
)
from .gaps import ElastoBacklash as ElastoBacklash, ElastoGap as ElastoGap
from .gears import IdealGear as IdealGear, IdealPlanetary as IdealPlanetary
from .hybrid import MechanicalSystem as MechanicalSystem
from .linkage import AbstractLinkage as AbstractLinkage
from .lossy_gear import LossyGear as LossyGear
from .mechanism import Machine as Machine, Mechanism as Mechanism
from .state_forces import (
    LinearPositionDependentForce as LinearPositionDependentForce,
    PeriodicPositionDependentForce as PeriodicPositionDependentForce,
    QuadraticSpeedDependentForce as QuadraticSpeedDependentForce,
    QuadraticSpeedDependentTorque as QuadraticSpeedDependentTorque,
)
from .thermal import HeatCapacitor as HeatCapacitor, ThermalConductor as ThermalConductor
