from frictax.engine.system import AbstractHybridSystem as AbstractHybridSystem
from frictax.mechanism.bodies import Fixed as Fixed, Inertia as Inertia, Mass as Mass
from frictax.mechanism.forces import (
    Damper as Damper,
    Force as Force,
    LinearPositionDependentForce as LinearPositionDependentForce,
    PeriodicPositionDependentForce as PeriodicPositionDependentForce,
    Position as Position,
    PositionController as PositionController,
    QuadraticSpeedDependentForce as QuadraticSpeedDependentForce,
    QuadraticSpeedDependentTorque as QuadraticSpeedDependentTorque,
    RotationalDamper as RotationalDamper,
    RotationalSpring as RotationalSpring,
    RotationalSpringDamper as RotationalSpringDamper,
    Spring as Spring,
    SpringDamper as SpringDamper,
    Torque as Torque,
)
from frictax.mechanism.gaps import ElastoBacklash as ElastoBacklash, ElastoGap as ElastoGap
from frictax.mechanism.gears import (
    IdealGear as IdealGear,
    IdealPlanetary as IdealPlanetary,
    LossyGear as LossyGear,
)
from frictax.mechanism.hybrid import MechanicalSystem as MechanicalSystem
from frictax.mechanism.mechanism import Machine as Machine, Mechanism as Mechanism
from frictax.mechanism.thermal import (
    HeatCapacitor as HeatCapacitor,
    ThermalConductor as ThermalConductor,
)
from frictax.mechanism.user_machines import (
    AbstractAxis as AbstractAxis,
    AbstractLinkage as AbstractLinkage,
    Driven as Driven,
)
