"""A parameter's domain and unit, declared on the field that holds it.

Physical values live in the model; only a fit leaves them for unconstrained space, through
`to_unconstrained` and `from_unconstrained`. A fit may move what its user names by path, such as
``"friction.peak"``.
"""

from frictax.parameters.checks import check as check
from frictax.parameters.checks import check_value as check_value
from frictax.parameters.declaration import Declaration as Declaration
from frictax.parameters.declaration import Scalar as Scalar
from frictax.parameters.declaration import Vector as Vector
from frictax.parameters.declaration import as_array as as_array
from frictax.parameters.declaration import is_traced as is_traced
from frictax.parameters.declaration import parameter as parameter
from frictax.parameters.declaration import rotational_unit as rotational_unit
from frictax.parameters.domains import AbstractDomain as AbstractDomain
from frictax.parameters.domains import AtLeast as AtLeast
from frictax.parameters.domains import Between as Between
from frictax.parameters.domains import Increasing as Increasing
from frictax.parameters.domains import Numbers as Numbers
from frictax.parameters.domains import Positive as Positive
from frictax.parameters.domains import Real as Real
from frictax.parameters.paths import Parameter as Parameter
from frictax.parameters.paths import UnknownName as UnknownName
from frictax.parameters.paths import children as children
from frictax.parameters.paths import get as get
from frictax.parameters.paths import parameters as parameters
from frictax.parameters.paths import replace as replace
from frictax.parameters.paths import select as select
from frictax.parameters.unconstrained import check_not_on_edge as check_not_on_edge
from frictax.parameters.unconstrained import from_unconstrained as from_unconstrained
from frictax.parameters.unconstrained import to_unconstrained as to_unconstrained
