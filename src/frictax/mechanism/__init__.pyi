from frictax.engine.system import AbstractHybridSystem as AbstractHybridSystem
from frictax.mechanism.axis import AbstractAxis as AbstractAxis
from frictax.mechanism.bodies import Fixed as Fixed, Inertia as Inertia, Mass as Mass
from frictax.mechanism.driven import Driven as Driven
from frictax.mechanism.forces import (
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
from frictax.mechanism.gaps import ElastoBacklash as ElastoBacklash, ElastoGap as ElastoGap
from frictax.mechanism.gears import IdealGear as IdealGear, IdealPlanetary as IdealPlanetary
from frictax.mechanism.hybrid import MechanicalSystem as MechanicalSystem
from frictax.mechanism.linkage import AbstractLinkage as AbstractLinkage
from frictax.mechanism.lossy_gear import LossyGear as LossyGear
from frictax.mechanism.mechanism import Machine as Machine, Mechanism as Mechanism
from frictax.mechanism.state_forces import (
    LinearPositionDependentForce as LinearPositionDependentForce,
    PeriodicPositionDependentForce as PeriodicPositionDependentForce,
    QuadraticSpeedDependentForce as QuadraticSpeedDependentForce,
    QuadraticSpeedDependentTorque as QuadraticSpeedDependentTorque,
)
from frictax.mechanism.thermal import (
    HeatCapacitor as HeatCapacitor,
    ThermalConductor as ThermalConductor,
)
