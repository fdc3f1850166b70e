"""A system of the user's own under a sampled drive, walked on samples."""

import inspect
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import frictax as fx
from checks import value_and_jacobian
from frictax.signals import as_signal
from sampled import PULL, TS


class Sledge(fx.AbstractHybridSystem):
    """A mass m with Coulomb friction F that `args["pull"]` moves; mode -1, 0, 1 as of a friction
    contact.
    """

    m: Any
    F: Any

    def flow(self, t: Any, y: Any, mode: Any, args: Any) -> Any:
        a = (args["pull"] - mode[0] * self.F) / self.m
        return jnp.stack([y[1], jnp.where(mode[0] == 0, 0.0, a)])

    def guard(self, t: Any, y: Any, mode: Any, args: Any) -> Any:
        stuck, eps = mode[0] == 0, 1e-13
        forward = jnp.where(stuck, self.F - args["pull"], mode[0] * y[1]) + eps
        return jnp.stack([forward, jnp.where(stuck, self.F + args["pull"] + eps, jnp.inf)])

    def jump(self, t: Any, y: Any, mode: Any, fired: Any, args: Any) -> Any:
        stuck, push = mode[0] == 0, args["pull"]
        left = jnp.where(fired == 0, 1, jnp.where(fired == 1, -1, 0))
        stopped = jnp.where(push > self.F, 1, jnp.where(push < -self.F, -1, 0))
        new = jnp.where(fired < 0, mode[0], jnp.where(stuck, left, stopped))
        v = jnp.where((fired < 0) | stuck, y[1], 0.0)
        return jnp.stack([y[0], v]), mode.at[0].set(new), jnp.array(0)


def walked(m: Any, F: Any, signal: Any, ts: Any, begins: int = 0) -> Any:
    driven = fx.Driven(Sledge(jnp.asarray(m), jnp.asarray(F)), pull=signal)
    y, mode = driven.with_pieces(jnp.zeros(2), jnp.full(1, begins), ts[0])
    return fx.walk(driven, y, mode, ts, options=fx.OnSamples())


@pytest.mark.slow
@pytest.mark.parametrize("hold", [False, True])
def test_it_equals_the_same_machine_of_elements(hold: bool) -> None:
    signal = fx.Sampled(TS, PULL, hold=hold)
    path = walked(1.2, 1.5, signal, TS, begins=1)
    machine = fx.Mechanism(
        mass=fx.Mass(m=1.2),
        friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=1.5)),
        drive=fx.Force("mass", signal),
    )
    run = fx.simulate(machine, TS, fx.OnSamples())
    # It breaks away at the start, which is not on the path.
    times = run.events.time[1 : int(run.events.count)]
    changed = np.flatnonzero(
        np.any(path.before[:, :1] != path.after[:, :1], axis=1)
        & (np.arange(1000) < int(path.count))
    )
    assert len(changed) == len(times) >= 4
    assert jnp.max(jnp.abs(path.ys - run.ys)) <= 1e-12
    assert jnp.max(jnp.abs(path.times[changed] - times)) <= 1e-11
    assert jnp.array_equal(path.modes[:, 0], run["friction"].mode)


@pytest.mark.slow
def test_a_sampled_ramp_breaks_it_away_at_the_closed_form_with_its_derivatives() -> None:
    ts = jnp.linspace(0.0, 2.0, 41)

    def end(p: jax.Array) -> jax.Array:
        path = walked(p[0], p[1], fx.Sampled(ts, 2.0 * ts), ts)
        return jnp.concatenate([path.ys[-1], path.times[:1]])

    def closed(p: jax.Array) -> jax.Array:
        since = 2.0 - p[1] / 2.0  # from 2 t = F on
        return jnp.stack([since**3 / (3 * p[0]), since**2 / p[0], p[1] / 2.0])

    at = jnp.array([1.3, 1.51])
    found, forward = value_and_jacobian(end)(at)
    assert np.allclose(found, closed(at), atol=1e-12)
    for slopes in (forward, jax.jit(jax.jacrev(end))(at)):
        assert np.allclose(slopes, jax.jacfwd(closed)(at), atol=1e-10)


class Kicked(fx.AbstractHybridSystem):
    """A mass that every jump of its drive kicks by 1 m/s."""

    def flow(self, t: Any, y: Any, mode: Any, args: Any) -> Any:
        return jnp.stack([y[1], 0.0 * y[1]])

    def guard(self, t: Any, y: Any, mode: Any, args: Any) -> Any:
        return jnp.ones(1)

    def jump(self, t: Any, y: Any, mode: Any, fired: Any, args: Any) -> Any:
        return y.at[1].add(1.0), mode, jnp.array(0)


@pytest.mark.slow
def test_at_a_sample_at_which_a_switch_changes_the_state_the_state_after_it_is_reported() -> None:
    ts = jnp.linspace(0.0, 1.0, 5)

    def states(start: Any) -> jax.Array:
        driven = fx.Driven(Kicked(), pull=fx.Step(startTime=start))
        y, mode = driven.with_pieces(jnp.zeros(2), jnp.zeros(1, int), ts[0])
        return fx.walk(driven, y, mode, ts, options=fx.OnSamples()).ys

    start = jnp.array([0.5])
    ys, forward = value_and_jacobian(lambda start: states(start[0]))(start)
    assert np.allclose(ys[:, 1], [0, 0, 1, 1, 1])
    # s = t - start from the kick on; also at the sample of the kick.
    for slopes in (forward[..., 0], jax.jit(jax.jacrev(states))(0.5)):
        assert np.allclose(slopes[:, 0], [0, 0, -1, -1, -1])


class Cart(fx.AbstractAxis):
    """1 kg that a motor drives."""

    friction: fx.SupportFriction

    def inertia(self, t: Any, y: Any, args: Any) -> Any:
        return 1.0

    def load(self, t: Any, y: Any, args: Any) -> Any:
        return args["motor"]

    def states(self) -> tuple[str, ...]:
        return ("s", "v")


@pytest.mark.slow
def test_the_mode_of_the_inner_machine_is_taken_and_another_is_refused_in_one_sentence() -> None:
    cart = Cart(fx.SupportFriction("cart", f_pos=fx.Coulomb(F_Coulomb=1.0)))
    driven = fx.Driven(cart, motor=fx.Step(height=2.0, startTime=1.0))
    ts = jnp.array([0.0, 2.0])
    (y, own), whole = cart.begin(0.0, [0.0, 0.0]), driven.begin(0.0, [0.0, 0.0])[1]
    for mode in (own, whole):
        # From the step on 1 N is left of the motor's 2 N.
        np.testing.assert_allclose(fx.walk(driven, y, mode, ts).ys[-1], [0.5, 1.0], atol=1e-9)
    twice = driven.with_pieces(y, whole, ts[0])[1]
    with pytest.raises(ValueError, match=r"`mode` must hold the mode of `Cart` .*, got 3 entries"):
        fx.walk(driven, y, twice, ts)
    sledge = fx.Driven(Sledge(jnp.array(1.0), jnp.array(1.0)), pull=0.5)
    with pytest.raises(ValueError, match=r"the mode of `Sledge` .* \(pull\), got 1 entry\. Write"):
        fx.walk(sledge, y, jnp.zeros(1, int), ts)


def test_a_pulse_of_a_function_is_not_stepped_over() -> None:
    pulse = fx.Function(lambda t: 10.0 * jnp.exp(-(((t - 5.3) / 0.05) ** 2)), dtmax=0.02)
    driven = fx.Driven(Sledge(jnp.array(1.0), jnp.array(1.0)), pull=pulse)
    y, mode = driven.with_pieces(jnp.zeros(2), jnp.zeros(1, int), jnp.array(0.0))
    path = fx.walk(driven, y, mode, jnp.array([0.0, 10.0]))
    assert int(path.count) >= 2  # It breaks away and stops again.
    assert float(path.ys[-1, 0]) == pytest.approx(0.31286, abs=1e-5)


# -- what a `Driven` passes on to its system
# --------------------------------------------------------------------------------------------------


class Timer(fx.AbstractHybridSystem):
    """y' = mode + u. The system's own deadline sets the mode to 1 at 1 s."""

    def flow(self, t: Any, y: Any, mode: Any, args: Any) -> Any:
        return jnp.stack([mode[0] + args["u"] + args.get("more", 0.0)])

    def guard(self, t: Any, y: Any, mode: Any, args: Any) -> Any:
        return jnp.ones(1)

    def deadline(self, mode: Any, args: Any) -> Any:
        return jnp.where(mode[0] == 0, 1.0, jnp.inf)

    def jump(self, t: Any, y: Any, mode: Any, fired: Any, args: Any) -> Any:
        return y, jnp.where(fired < 0, jnp.ones_like(mode), mode), jnp.array(0)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("engine", [fx.Adaptive(), fx.OnSamples()], ids=["adaptive", "on samples"])
def test_the_deadline_of_the_system_and_the_arguments_of_a_run_are_kept(engine: Any) -> None:
    ts = jnp.linspace(0.0, 3.0, 7)

    @jax.jit
    def end(start: Any, more: Any) -> Any:
        driven = fx.Driven(Timer(), u=fx.Step(startTime=start))
        begun = driven.with_pieces(jnp.zeros(1), jnp.zeros(1, int), ts[0])
        return fx.walk(driven, *begun, ts, {"more": more}, engine).ys[-1, 0]

    # The mode gives 2, the step 3 - start, and `more` 3*more.
    for start, more in ((0.5, 0.0), (1.0, 0.0), (2.0, 5.0)):
        assert float(end(start, more)) == pytest.approx(2.0 + 3.0 - start + 3 * more, abs=1e-9)


METHODS = {
    name
    for name, value in inspect.getmembers(fx.AbstractHybridSystem)
    if name in vars(fx.AbstractHybridSystem) and not name.startswith("_")
    if callable(value) or isinstance(value, property)
}


def test_every_method_of_a_system_is_passed_on() -> None:
    called: list[str] = []

    def spy(name: str) -> Any:
        shown = {"mode_size": 1, "prepare_start": "start", "start": "start", "begin": "start"}
        shown |= {"jump": "jump", "variables": {}, "states": (), "judged_states": 1}
        shown |= {"known_switches": 0, "tick": "mode", "deadline": 1.0, "staying": "self"}
        shown |= dict.fromkeys(("is_smooth", "is_stiff", "swings"), True)
        shown |= {"sound": jnp.array(True), "longest_step_at": jnp.array(1.0)}

        def method(self: Any, *at: Any) -> Any:
            called.append(name)
            y, mode = jnp.zeros(2), jnp.zeros(1, jnp.int32)
            found = {"start": (y, mode), "jump": (y, mode, jnp.array(0)), "mode": mode}
            found["self"] = self
            return found.get(value, value) if isinstance(value, str) else value

        value = shown.get(name, jnp.ones(2))
        return property(method) if name == "mode_size" else method

    own = {name: spy(name) for name in METHODS if name != "longest_step"}
    driven = fx.Driven(type("Spy", (fx.AbstractHybridSystem,), own)(), u=1.0)
    t, y, mode = jnp.array(0.0), jnp.zeros(2), jnp.zeros(2, jnp.int32)
    given = {"t": t, "t0": t, "t1": t, "y": y, "y0": y, "y1": y, "mode": mode, "args": None}
    given |= {"fired": jnp.array(0), "span": t, "on_samples": False}
    for name in own:
        called.clear()
        method = getattr(driven, name)
        if callable(method):
            method(*(given[p] for p in inspect.signature(method).parameters))
        assert name in called, name
    # The engines call `longest_step_at`, which includes `longest_step`.
    assert METHODS - set(own) <= {"longest_step"}


def test_a_mode_of_another_time_is_corrected_at_the_start() -> None:
    times = np.linspace(0.0, 10.0, 101)
    signals = {
        "line": fx.Sampled(times, times),
        "held": fx.Sampled(times, times, hold=True),
        "sine": fx.Sine(f=1.0, startTime=0.2),
        "pulse": fx.Pulse(period=1.0),
        "step": fx.Step(startTime=4.9),
        "function": lambda t: t,
    }
    driven = fx.Driven(Timer(), u=0.0, **signals)
    at = {t: driven.with_pieces(jnp.zeros(1), jnp.zeros(1, int), jnp.array(t)) for t in (0, 5, 9)}
    for begun in at.values():
        y, mode = driven.prepare_start(jnp.array(5.0), *begun, None)
        values = driven._values(jnp.array(5.0), mode)
        assert [float(values[n]) for n in signals] == pytest.approx(
            [float(as_signal(s)(5.0)) for s in signals.values()]
        )
    # A run that starts at the end of a segment begins with the event there.
    mode = driven.prepare_start(jnp.array(4.9), *at[0], None)[1]
    assert float(driven.deadline(mode, None)) == 1.0  # the deadline of the system
    assert int(mode[-2]) == 0  # the step is due


def test_a_driven_without_signals_and_one_in_another_are_the_same_machine() -> None:
    cart = Cart(fx.SupportFriction("cart", f_pos=fx.Coulomb(F_Coulomb=1.0)))
    twice = fx.Driven(fx.Driven(cart, motor=2.0, load=1.0), motor=3.0)
    assert twice.system is cart
    assert {n: float(s(0.0)) for n, s in zip(twice.names, twice.signals, strict=True)} == {
        "motor": 3.0,
        "load": 1.0,
    }
    bare = fx.Driven(cart)
    y, mode = bare.prepare_start(jnp.array(0.0), *bare.begin(0.0, [0.0, 1.0]), {"motor": 3.0})
    assert mode.tolist() == [1]
    assert bare.flow(jnp.array(0.0), y, mode, {"motor": 3.0}).tolist() == [1.0, 2.0]
    assert float(bare.deadline(mode, None)) == np.inf


def test_wrong_systems_and_arguments_are_refused_in_one_sentence() -> None:
    cart = Cart(fx.SupportFriction("cart", f_pos=fx.Coulomb(F_Coulomb=1.0)))
    driven = fx.Driven(cart, motor=2.0)
    start = jnp.array(0.0), *driven.begin(0.0, [0.0, 0.0])
    with pytest.raises(ValueError, match=r"`args` of a run must be a dict, got a float\. Write"):
        driven.prepare_start(*start, 9.81)
    with pytest.raises(ValueError, match=r"must not have the name of a signal, got 'motor'\."):
        driven.prepare_start(*start, {"motor": 1.0})
    with pytest.raises((ValueError, TypeError), match="AbstractHybridSystem"):
        fx.Driven(fx.Mechanism(mass=fx.Mass(m=1.0)), motor=1.0)  # type: ignore[arg-type]


def test_extrema_of_a_signal_are_events_only_while_an_axis_is_stuck() -> None:
    cart = Cart(fx.SupportFriction("cart", f_pos=fx.Coulomb(F_Coulomb=1.0)))
    driven = fx.Driven(cart, motor=fx.Sine(amplitude=2.0, f=10.0, startTime=0.0))
    for speed, end in ((0.0, 0.025), (1.0, np.inf)):
        mode = driven.begin(0.0, [0.0, speed])[1]
        assert float(driven.deadline(mode, None)) == pytest.approx(end)
    # The event that ends the motion also reads the segment at its time.
    y, mode = driven.begin(0.0, [0.0, 1.0])
    mode = driven.jump(jnp.array(0.56), y, mode, jnp.array(0), None)[1]
    assert int(mode[-1]) == int(driven.signals[0].piece(jnp.array(0.56)))
