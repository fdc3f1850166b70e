"""Types of arguments, for type checkers. At run time these types are `Any`, because the package
checks its arguments itself, with helpful messages.
"""

from typing import TYPE_CHECKING, Annotated, Any, TypeVar

if TYPE_CHECKING:
    import diffrax
    import equinox as eqx
    import numpy as np
    import optax
    from jax import Array
    from jax.typing import DTypeLike as DTypeLike
    from numpy.typing import ArrayLike as ArrayLike
    from pandas import DataFrame as DataFrame

    _T = TypeVar("_T")
    Checked = Annotated[_T, "in a sentence"]
    GradientTransformation = optax.GradientTransformation
    Part = eqx.Module
    Solver = diffrax.AbstractSolver
    StepSizeController = diffrax.AbstractStepSizeController
    Adjoint = diffrax.AbstractAdjoint
    ScalarLike = float | np.ndarray | Array
else:
    ArrayLike = DTypeLike = DataFrame = Any
    Adjoint = GradientTransformation = Part = ScalarLike = Solver = StepSizeController = Any

    class Checked:
        def __class_getitem__(cls, _: Any) -> Any:
            return Any
