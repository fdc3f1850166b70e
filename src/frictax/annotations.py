"""Types of arguments, for type checkers. While the package runs they are `Any`: its own checks
answer what does not fit, in a sentence.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import diffrax
    import equinox as eqx
    import numpy as np
    import optax
    from jax import Array
    from jax.typing import DTypeLike as DTypeLike
    from numpy.typing import ArrayLike as ArrayLike
    from pandas import DataFrame as DataFrame

    GradientTransformation = optax.GradientTransformation
    Integer = int
    Part = eqx.Module
    Real = float
    Solver = diffrax.AbstractSolver
    StepSizeController = diffrax.AbstractStepSizeController
    Adjoint = diffrax.AbstractAdjoint
    ScalarLike = float | np.ndarray | Array
else:
    ArrayLike = DTypeLike = DataFrame = Any
    Adjoint = GradientTransformation = Integer = Part = Real = ScalarLike = Solver = Any
    StepSizeController = Any
