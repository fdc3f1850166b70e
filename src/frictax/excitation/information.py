"""The Fisher information of a run as a state of the run: `information`, `InformationSystem`."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypedDict, Unpack

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PyTree

from frictax.annotations import ArrayLike
from frictax.arguments import check_names, is_finite_number, lists_options
from frictax.engine import Adaptive, Engine, OnSamples, walk
from frictax.engine.sensitive import AbstractFamily, Sensitive, jvp_columns
from frictax.engine.system import DEADLINE
from frictax.fitting import Instrument
from frictax.fitting.build_problem import sensors
from frictax.fitting.problem.setup import Setup, driven, signal_at, variable_at, variable_names
from frictax.mechanism import AbstractHybridSystem, Machine, Mechanism
from frictax.parameters import Integer, Modes, Number, Numbers, State, get, replace, select
from frictax.parameters.arrays import constant
from frictax.parameters.declaration import is_traced
from frictax.signals import AbstractSignal
from frictax.text import suggestion


class InformationOptions(TypedDict, total=False):
    """The options of `information`; the docstring of `information` explains them."""

    free: str | Iterable[str] | None
    inputs: Mapping[str, ArrayLike] | None
    instruments: Mapping[str, Instrument] | None
    windows: float | None
    hold: bool
    engine: Engine | None


_DEFAULTS = {**dict.fromkeys(InformationOptions.__annotations__), "hold": False}


@lists_options(InformationOptions, _DEFAULTS)
def information(
    machine: Machine,
    ts: ArrayLike,
    outputs: Mapping[str, float],
    **options: Unpack[InformationOptions],
) -> Float[Array, "p p"]:
    """Return the Fisher information of a record of `outputs` on the parameters `free`.

    The information is the integral of ``rate/sd**2 * S' S`` over the run, summed over the outputs.
    S are the derivatives of an output with respect to the parameters. For a long record, the
    inverse of the information approximates the covariance of the estimates. The run integrates the
    information as a state. Therefore the derivatives of the information with respect to inputs and
    machine values, forward and reverse, are exact and include all events.

    The sum over samples ``J' J``, with the derivatives J of a simulation, has nearly the same value
    for dense samples. Do not differentiate this sum ``J' J``, because it jumps where an event
    passes a sample. Between the jumps, its derivative omits the effect of events, which can be half
    of the true derivative or more.

    **Arguments:**

    - `machine`, `free`, `instruments`: as for `fit`; a hybrid system of your own must define
      `start` and `variables`.
    - `ts` (n,): evenly spaced times [s] of the samples; `outputs`: variable -> standard deviation
      of the noise of a sample.
    - `inputs`: name of a driven part -> its input (n,) at the times `ts`; `hold`: whether inputs
      are constant between samples.
    - `windows`: length [s] of a later fit's windows, which start at true states; None for one run.
    - `engine`: by default `OnSamples()` with inputs, and `Adaptive()` without inputs.

    **Returns:** the information (p, p), with the parameters in the order of
    ``fx.parameters.select(machine, free)`` and one row for each entry of a table. The information
    is NaN if the run does not reach its end.

    A mass slides until it comes to rest, and the time of this event identifies its friction:

    >>> import frictax as fx, jax, jax.numpy as jnp, numpy as np
    >>> def slide_information(v):
    ...     block = fx.Mechanism(
    ...         mass=fx.Mass(m=1.0, v=v),
    ...         friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=2.0)),
    ...     )
    ...     ts = np.linspace(0.0, 1.0, 101)
    ...     return fx.information(block, ts, {"mass.v": 0.1}, free="friction.f_pos.F_Coulomb")[0, 0]
    >>> [
    ...     round(float(x), 6) for x in (slide_information(1.0), jax.grad(slide_information)(1.0))
    ... ]  # 1e4/3*(v/2)**3
    [416.666667, 1250.0]
    """
    check_names(information, options)
    windows, engine = options.get("windows"), options.get("engine")
    t = np.asarray(ts, dtype=float)
    if t.ndim != 1 or t.size < 2 or not np.all(np.diff(t) > 0):
        raise ValueError(
            "`information`: `ts` must be at least two times [s] that increase, got shape"
            f" {t.shape}."
        )
    step = (t[-1] - t[0]) / (t.size - 1)
    apart = float(np.max(np.abs(t - t[0] - step * np.arange(t.size))))
    if apart > step:
        raise ValueError(
            f"`information`: `ts` must be evenly spaced, to within one step of {step:.3g} s, got a"
            f" time that is {apart:.3g} s away. Write np.linspace(...)."
        )
    if windows is not None and not (is_finite_number(windows) and windows > 0):
        raise ValueError(
            f"`information`: `windows` must be a length [s] > 0, got {windows!r}. Leave it out for"
            " one run."
        )
    given = {name: jnp.asarray(u, dtype=float) for name, u in (options.get("inputs") or {}).items()}
    if not outputs:
        raise ValueError(
            '`information`: `outputs` must name what is measured, such as {"mass.v": 2e-3}.'
        )
    known = dict(options.get("instruments") or {})
    setup = checked_setup("information", machine, t, given, outputs, known)
    paths = tuple(p.path for p in select(setup, options.get("free")))
    hold, delayed = options.get("hold", False), delayed_channels(known, paths)
    under_test = MachineUnderTest(setup, t, given, paths, tuple(outputs), hold, delayed)
    check_instruments("information", under_test, known)
    weight = jnp.asarray([1.0 / (step * sd**2) for sd in outputs.values()])
    restarts = np.zeros(0) if windows is None else np.arange(t[0] + windows, t[-1], windows)
    if engine is None:
        engine = OnSamples() if given else Adaptive()
    system = build_information_system(under_test, under_test.values(), weight, restarts)
    path = walk(
        system,
        *system.start(jnp.asarray(t[0])),
        t if isinstance(engine, OnSamples) else t[[0, -1]],
        options=engine,
    )
    return system.matrix(path.ys[-1])


def checked_setup(
    asks: str,
    machine: Any,
    t: np.ndarray,
    inputs: Mapping[str, Array],
    outputs: Mapping[str, Any],
    instruments: Mapping[str, Instrument],
) -> Setup:
    """Return the machine with an `Instrument` for each channel. Raise `ValueError` for the wrong
    number of samples of an input, and for an invalid noise. `asks`: name of the user's function.
    """
    for name, u in inputs.items():
        if u.shape != t.shape:
            raise ValueError(
                f"`{asks}`: the input {name!r} must have a value at each of the {t.size} times, got"
                f" shape {u.shape}."
            )
    for name, sd in outputs.items():
        if not is_traced(sd) and not (is_finite_number(np.asarray(sd)[()]) and sd > 0):
            raise ValueError(
                f"`{asks}`: `outputs[{name!r}]` must be the standard deviation of its noise, a"
                f" number > 0, got {sd!r}."
            )
    return Setup(
        machine,
        sensors("inputs", tuple(inputs), instruments),
        sensors("outputs", tuple(outputs), instruments),
    )


def delayed_channels(instruments: Mapping[str, Instrument], paths: Iterable[str]) -> frozenset[str]:
    """Return the channels whose delay is not 0 or is one of the parameters `paths`."""
    late = [n for n, one in instruments.items() if is_traced(one.delay) or float(one.delay) != 0]
    return frozenset([*late, *(p.removesuffix(".delay") for p in paths if p.endswith(".delay"))])


def check_instruments(
    asks: str, under_test: "MachineUnderTest", instruments: Mapping[str, Instrument]
) -> None:
    """Raise `ValueError` for an instrument of a channel that the machine does not have."""
    channels = [*(f"inputs.{n}" for n in under_test.inputs)]
    channels += [f"outputs.{n}" for n in under_test.outputs]
    unknown = [name for name in instruments if name not in channels]
    if not unknown:
        return
    # Instruments of a fit may belong to other channels of the machine, which have no effect here.
    machine, system = under_test.setup.machine, under_test.system(under_test.values())
    others = [f"outputs.{n}" for n in variable_names(system, jnp.asarray(under_test.t[0]))]
    if isinstance(machine, Mechanism):
        others += [f"inputs.{n}" for n in machine.names]
    for name in unknown:
        if name not in others:
            raise ValueError(
                f"`{asks}`: `instruments` names {name!r}, which is not a"
                f" channel.{suggestion(name, channels)} Channels are: {', '.join(channels)}."
            )


class MachineUnderTest(AbstractFamily):
    """A machine with instruments and inputs (tables or signals) as a function of its parameters.
    `paths`: parameter paths; `outputs`: measured variables; `hold`: whether inputs are held;
    `delayed`: channels with a delay, as "inputs.drive".
    """

    setup: Setup
    t: Numbers
    inputs: Mapping[str, Any]
    paths: tuple[str, ...] = eqx.field(static=True)
    outputs: tuple[str, ...] = eqx.field(static=True)
    hold: bool = eqx.field(static=True)
    delayed: frozenset[str] = eqx.field(static=True, default=frozenset())

    def values(self) -> Float[Array, " p"]:
        """Return the values of the parameters as one vector."""
        return jnp.concatenate(
            [jnp.ravel(jnp.asarray(get(self.setup, path), dtype=float)) for path in self.paths]
        )

    def with_values(self, x: Float[Array, " p"]) -> Setup:
        """Return the `Setup` (machine and sensors) with the parameter values x."""
        values, first = {}, 0
        for path in self.paths:
            shape = jnp.shape(get(self.setup, path))
            size = int(np.prod(shape))
            values[path] = jnp.reshape(x[first : first + size], shape)
            first += size
        return replace(self.setup, values)

    def system(self, x: Float[Array, " p"]) -> AbstractHybridSystem:
        setup = self.with_values(x)
        t = jnp.asarray(self.t)
        acting = {
            name: u
            if isinstance(u, AbstractSignal)
            else setup.inputs.at(name)(t, u, t[0], f"inputs.{name}" in self.delayed)
            for name, u in self.inputs.items()
        }
        return driven(setup.machine, self.t, acting, self.hold)

    def staying(self, mode: Modes, args: PyTree) -> "MachineUnderTest":
        if any(path.startswith("inputs.") for path in self.paths):
            # If a parameter belongs to an input, this input must stay differentiable. Therefore the
            # inputs are not replaced by their segments in `mode`.
            return self
        system = self.system(self.values()).staying(mode, args)
        acting = {name: signal_at(system, name) for name in self.inputs}
        return dataclasses.replace(self, inputs=acting)

    def sensor_values(
        self, x: Float[Array, " p"], t: Number, y: State, mode: Modes
    ) -> Float[Array, " c"]:
        """Return the values that the sensors show of the motion at time t, after their delays."""
        system, setup = self.system(x), self.with_values(x)
        rate = None
        values = []
        for name in self.outputs:
            value = variable_at(system, name, t, y, mode)
            sensor = setup.outputs.at(name)
            late = constant(sensor.delay)
            if f"outputs.{name}.delay" in self.paths:
                if rate is None:
                    rate = system.flow(t, y, mode, None)
                _, speed = jax.jvp(
                    lambda t, y, name=name: variable_at(system, name, t, y, mode),
                    (t, y),
                    (jnp.ones_like(t), rate),
                )
                value = value - speed * (sensor.delay - late)
            since = t + late - self.t[0]
            values.append(sensor.gain * value + sensor.offset + sensor.drift * since)
        return jnp.stack(values)

    def shows_motion(self, t: Number, restarts: Float[Array, " k"]) -> Bool[Array, " c"]:
        """Return for each output whether its sensor shows the motion at time t before the end of
        the run or window. A fit does not count other samples of a delayed sensor.
        """
        ends = jnp.concatenate([jnp.asarray(self.t[:1]), restarts, jnp.asarray(self.t[-1:])])
        k = jnp.searchsorted(restarts, t, side="right")
        delays = jnp.stack([constant(self.setup.outputs.at(n).delay) for n in self.outputs])
        rounding = 1e-9 * (ends[-1] - ends[0])
        return (t + delays >= ends[k] - rounding) & (t + delays <= ends[k + 1] + rounding)


class InformationSystem(AbstractHybridSystem):
    """A `Sensitive` system with the Fisher information F of its sensors as a further state.

    F grows at the rate ``sum of w_o S_o S_o'`` over the outputs o, with the `weight` w_o. S_o are
    the derivatives of output o with respect to the parameters. The state vector is that of
    `Sensitive`, followed by the lower triangle of F, row by row.

    - `weight` (c,): rate/sd**2 of each output, its information per second for a derivative of 1.
    - `restarts` (k,): times [s] at which S is set to 0, because a window of the fit begins.
    """

    sensitive: Sensitive
    weight: Float[Array, " c"]
    restarts: Float[Array, " k"]

    @property
    def _under_test(self) -> MachineUnderTest:
        return self.sensitive.family  # pyright: ignore[reportReturnType]

    def matrix(self, y: State) -> Float[Array, "p p"]:
        """Return the matrix F that the state vector y contains."""
        p = self.sensitive.x.shape[0]
        lower = jnp.zeros((p, p), y.dtype).at[np.tril_indices(p)].set(y[self.sensitive.size :])
        return lower + jnp.tril(lower, -1).T

    def _own(self, mode: Int[Array, " k"]) -> tuple[Modes, Integer | None]:
        return (mode[:-1], mode[-1]) if self.restarts.shape[0] else (mode, None)

    def _restart(self, k: Integer | None) -> Number:
        times = jnp.concatenate([self.restarts, jnp.full(1, jnp.inf)])
        return jnp.asarray(jnp.inf) if k is None else times[k]

    def flow(self, t: Number, y: State, mode: Modes, args: PyTree) -> State:
        sensitive, (own, _) = self.sensitive, self._own(mode)
        state = y[: sensitive.size]
        return jnp.concatenate(
            [sensitive.flow(t, state, own, args), self.information_rates(t, state, own)]
        )

    def information_rates(self, t: Number, state: State, own: Modes) -> Float[Array, " k"]:
        """Return the rate of change of F (lower triangle) for a state and mode of `sensitive`."""
        sensitive = self.sensitive
        now, S = sensitive.parts(state)
        family, x = self._under_test, sensitive.x
        shown = lambda y, x: family.sensor_values(x, t, y, own)  # noqa: E731
        _, by_parameters = jvp_columns(shown, (now, x), (S, jnp.eye(x.shape[0], dtype=state.dtype)))
        weight = self.weight
        if any(name.startswith("outputs.") for name in family.delayed):
            weight = jnp.where(family.shows_motion(t, self.restarts), weight, 0.0)
        rate = jnp.einsum("c,ci,cj->ij", weight, by_parameters, by_parameters)
        return rate[np.tril_indices(x.shape[0])]

    def known_switches(self, args: PyTree, on_samples: bool) -> int:
        return self.sensitive.known_switches(args, on_samples) + self.restarts.shape[0]

    def guard(self, t: Number, y: State, mode: Modes, args: PyTree) -> Float[Array, " g"]:
        return self.sensitive.guard(t, y[: self.sensitive.size], self._own(mode)[0], args)

    def jump(
        self, t: Number, y: State, mode: Modes, fired: Integer, args: PyTree
    ) -> tuple[State, Modes, Integer]:
        sensitive, (own, k) = self.sensitive, self._own(mode)
        state = y[: sensitive.size]
        after, new, status = sensitive.jump(t, state, own, fired, args)
        if k is not None:
            n, end = sensitive.n, sensitive.size - 1
            restarted = (fired == DEADLINE) & (self._restart(k) <= sensitive.deadline(own, args))
            fresh = jnp.concatenate([state[:n], jnp.zeros(end - n, y.dtype), t[None]])
            after = jnp.where(restarted, fresh, after)
            new = jnp.concatenate(
                [jnp.where(restarted, own, new), (k + restarted.astype(k.dtype))[None]]
            ).astype(jnp.int32)
            status = jnp.where(restarted, 0, status)
        return jnp.concatenate([after, y[sensitive.size :]]), new, status

    def deadline(self, mode: Modes, args: PyTree) -> Number:
        own, k = self._own(mode)
        return jnp.minimum(self.sensitive.deadline(own, args), self._restart(k))

    def is_smooth(self, args: PyTree) -> bool:
        return self.sensitive.is_smooth(args)

    def is_stiff(self, args: PyTree) -> bool:
        return self.sensitive.is_stiff(args)

    def swings(self, args: PyTree) -> bool:
        return self.sensitive.swings(args)

    def implicit_step(
        self, t0: Number, t1: Number, y0: State, mode: Modes, args: PyTree
    ) -> State | None:
        return self._step_with_information(self.sensitive.implicit_step, t0, t1, y0, mode, args)

    def sound(
        self, t0: Number, y0: State, t1: Number, y1: State, mode: Modes, args: PyTree
    ) -> Bool[Array, ""]:
        size, own = self.sensitive.size, self._own(mode)[0]
        return self.sensitive.sound(t0, y0[:size], t1, y1[:size], own, args)

    def safe_step(self, t0: Number, t1: Number, y0: State, mode: Modes, args: PyTree) -> State:
        return self._step_with_information(self.sensitive.safe_step, t0, t1, y0, mode, args)

    def _step_with_information(
        self, step: Callable[..., Any], t0: Number, t1: Number, y0: State, mode: Modes, args: PyTree
    ) -> State:
        """Compute the motion by `step`, and integrate the information by the trapezoidal rule."""
        size, own = self.sensitive.size, self._own(mode)[0]
        after = step(t0, t1, y0[:size], own, args)
        rates = self.information_rates(t0, y0[:size], own) + self.information_rates(t1, after, own)
        return jnp.concatenate([after, y0[size:] + 0.5 * (t1 - t0) * rates])

    def longest_step_at(self, t: Number, mode: Modes, span: Number, args: PyTree) -> Number | None:
        return self.sensitive.longest_step_at(t, self._own(mode)[0], span, args)

    def staying(self, mode: Modes, args: PyTree) -> "InformationSystem":
        sensitive = self.sensitive.staying(self._own(mode)[0], args)
        return InformationSystem(sensitive, self.weight, self.restarts)

    def tick(self, t: Number, mode: Modes, args: PyTree) -> Modes:
        own, k = self._own(mode)
        own = self.sensitive.tick(t, own, args)
        return own if k is None else jnp.concatenate([own, k[None]])

    def start(self, t: Number) -> tuple[State, Modes]:
        y, mode = self.sensitive.start(t)
        p = self.sensitive.x.shape[0]
        y = jnp.concatenate([y, jnp.zeros(p * (p + 1) // 2, y.dtype)])
        if self.restarts.shape[0]:
            mode = jnp.concatenate([mode, jnp.zeros(1, jnp.int32)])
        return y, mode


def build_information_system(
    under_test: MachineUnderTest, x: Float[Array, " p"], weight: Any, restarts: Any
) -> InformationSystem:
    """Return the system of the machine with parameter values x and its information as a state."""
    n = under_test.system(x).start(jnp.asarray(under_test.t[0]))[0].shape[0]
    return InformationSystem(
        Sensitive(under_test, x, n), jnp.asarray(weight), jnp.asarray(restarts)
    )
