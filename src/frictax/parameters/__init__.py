"""Declare domains and units of parameters at the fields of classes; find parameters by paths.

A model contains physical values of parameters. A fit transforms physical values to unconstrained
values by `to_unconstrained` and back by `from_unconstrained`. Paths such as ``"friction.peak"``
name the parameters of a fit.
"""

from .arrays import (
    Integer as Integer,
    Modes as Modes,
    Number as Number,
    State as State,
    Values as Values,
)
from .checks import CheckedModule as CheckedModule, check as check, check_value as check_value
from .declaration import (
    Declaration as Declaration,
    Scalar as Scalar,
    Vector as Vector,
    as_array as as_array,
    as_seconds as as_seconds,
    is_not_numeric as is_not_numeric,
    is_traced as is_traced,
    parameter as parameter,
    rotational_unit as rotational_unit,
)
from .domains import (
    AbstractDomain as AbstractDomain,
    AtLeast as AtLeast,
    Between as Between,
    Increasing as Increasing,
    LogScale as LogScale,
    Numbers as Numbers,
    Positive as Positive,
    Real as Real,
)
from .paths import (
    Parameter as Parameter,
    UnknownName as UnknownName,
    children as children,
    field_children as field_children,
    get as get,
    parameters as parameters,
    replace as replace,
    select as select,
)
from .unconstrained import (
    check_not_on_edge as check_not_on_edge,
    from_unconstrained as from_unconstrained,
    on_edge_unasked as on_edge_unasked,
    to_unconstrained as to_unconstrained,
)
