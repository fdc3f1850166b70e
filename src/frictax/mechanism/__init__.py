"""Bodies, what acts between them, and their assembly to a hybrid system."""

from frictax.mechanism.axis import AbstractAxis as AbstractAxis
from frictax.mechanism.bodies import Fixed as Fixed
from frictax.mechanism.bodies import Mass as Mass
from frictax.mechanism.driven import Driven as Driven
from frictax.mechanism.forces import Damper as Damper
from frictax.mechanism.forces import Force as Force
from frictax.mechanism.forces import LinearPositionDependentForce as LinearPositionDependentForce
from frictax.mechanism.forces import PositionController as PositionController
from frictax.mechanism.forces import Spring as Spring
from frictax.mechanism.forces import SpringDamper as SpringDamper
from frictax.mechanism.hybrid import MechanicalSystem as MechanicalSystem
from frictax.mechanism.mechanism import Mechanism as Mechanism
from frictax.mechanism.system import AbstractHybridSystem as AbstractHybridSystem
