"""`Rodas4`: a Rosenbrock method of order 4, with which `Adaptive` solves stiff motions."""

from typing import Any, ClassVar

import diffrax
import jax.flatten_util
import jax.numpy as jnp

from .implicit import factorize, shift_matrix, slopes

# Coefficients of RODAS: E. Hairer, G. Wanner, Solving Ordinary Differential Equations II, section
# IV.7 (code RODAS, method 1). The method has order 4, and its error estimate has order 3. The
# method is stiffly accurate and L-stable.
_GAMMA = 0.25
_AT = (0.0, 0.386, 0.21, 0.63, 1.0, 1.0)  # times of the stages, as fractions of the step
_DRIFT = (0.25, -0.1043, 0.1035, -0.0362, 0.0, 0.0)
_A = (
    (),
    (1.544,),
    (0.9466785280815826, 0.2557011698983284),
    (3.314825187068521, 2.896124015972201, 0.9986419139977817),
    (1.221224509226641, 6.019134481288629, 12.53708332932087, -0.6878860361058950),
)
_C = (
    (),
    (-5.6688,),
    (-2.430093356833875, -0.2063599157091915),
    (-0.1073529058151375, -9.594562251023355, -20.47028614809616),
    (7.496443313967647, -10.24680431464352, -33.99990352819905, 11.70890893206160),
    (
        8.083246795921522,
        -7.981132988064893,
        -31.52159432874371,
        16.31930543123136,
        -6.058818238834054,
    ),
)
_DENSE = (
    (10.12623508344586, -7.487995877610167, -34.80091861555747, -7.992771707568823,
     1.025137723295662),
    (-0.6762803392801253, 6.087714651680015, 16.43084320892478, 24.76722511418386,
     -6.594389125716872),
)  # fmt: skip


class _Between(diffrax.AbstractLocalInterpolation):
    """The interpolation of `Rodas4` within a step, a polynomial of order 3. The polynomial does not
    use dy/dt: in a stiff motion a small error of the state causes a large error of dy/dt.
    """

    t0: Any
    t1: Any
    y0: Any
    y1: Any
    first: Any
    second: Any

    def evaluate(self, t0: Any, t1: Any = None, left: bool = True) -> Any:
        if t1 is not None:
            return jax.tree.map(jnp.subtract, self.evaluate(t1), self.evaluate(t0))
        h = self.t1 - self.t0
        s = jnp.where(h == 0, 0.0, (t0 - self.t0) / jnp.where(h == 0, 1.0, h))
        at = lambda a, b, c, d: a * (1 - s) + s * (b + (1 - s) * (c + s * d))  # noqa: E731
        return jax.tree.map(at, self.y0, self.y1, self.first, self.second)


class Rodas4(diffrax.AbstractAdaptiveSolver):
    """A diffrax solver for stiff motion: each stage solves one linear system, without iteration. At
    kinks of the motion, such as the reversal of a bristle, the Newton iteration of other implicit
    methods rejects steps that this method accepts.
    """

    term_structure: ClassVar[Any] = diffrax.AbstractTerm
    interpolation_cls: ClassVar[Any] = _Between

    def order(self, terms: Any) -> int:
        return 4

    def init(self, terms: Any, t0: Any, t1: Any, y0: Any, args: Any) -> None:
        return None

    def func(self, terms: Any, t0: Any, y0: Any, args: Any) -> Any:
        return terms.vf(t0, y0, args)

    def step(
        self, terms: Any, t0: Any, t1: Any, y0: Any, args: Any, solver_state: None, made_jump: Any
    ) -> Any:
        flat, put = jax.flatten_util.ravel_pytree(y0)
        h = t1 - t0

        def flow(t: Any, y: Any) -> Any:
            return jax.flatten_util.ravel_pytree(terms.vf(t, put(y), args))[0]

        rate, at_t, by_y = slopes(flow, t0, flat)
        solve = factorize(shift_matrix(by_y, _GAMMA * h))
        stages: list[Any] = []
        y = flat
        for i, row in enumerate(_C):
            if i in (0, *range(1, 5)):
                y = flat + _weighted_sum(_A[i], stages)
            else:
                y = y + stages[-1]
            f = rate if i == 0 else flow(t0 + _AT[i] * h, y)
            right = h * (f + _DRIFT[i] * h * at_t)
            right = right + _weighted_sum(row, stages)
            stages.append(solve(_GAMMA * right))
        y1 = y + stages[-1]
        first, second = (_weighted_sum(row, stages) for row in _DENSE)
        dense = {"y0": y0, "y1": put(y1), "first": put(first), "second": put(second)}
        return put(y1), put(stages[-1]), dense, None, diffrax.RESULTS.successful


def _weighted_sum(weights: tuple[float, ...], stages: list[Any]) -> Any:
    return sum((w * u for w, u in zip(weights, stages, strict=False)), 0.0)
