"""Runs beside each other under vmap are the runs alone, in every order of transformations."""

import functools
from collections.abc import Callable
from typing import Any

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import frictax as fx
from checks import value_and_jacobian
from frictax.engine.on_samples import lanes
from machines import TIGHT, stop2
from sampled import PULL, STRUCTURES, TS, block, drawn, draws, drive

FEW = 11  # lanes: enough to go together
SHORT = TS[:61]
SCALES = draws(block(), FEW)


@pytest.mark.slow
def test_a_run_beside_others_is_the_run_alone_also_where_its_steps_run_out_at_a_rejected_one():
    # With samples a phase is cut after 64 steps; these have some 180, and with 60 lanes some are
    # cut while another meets its event.
    ts = jnp.array([0.0, 0.5, 1.2])

    def outcome(c: jax.Array) -> jax.Array:
        run = fx.simulate(fx.parameters.replace(stop2(), {"spring.c": c}), ts, TIGHT)
        return jnp.concatenate([jnp.ravel(run.ys[1:]), run.events.time[:8]])

    stiffness = jnp.linspace(498.0, 502.0, 60)
    beside = np.asarray(jax.jit(jax.vmap(outcome))(stiffness))
    alone = np.asarray(jax.jit(lambda c: jax.lax.map(outcome, c))(stiffness))
    assert np.max(np.abs(beside - alone)) <= 1e-10


def outputs(scale: jax.Array, engine: Any = None) -> jax.Array:
    engine = fx.OnSamples() if engine is None else engine
    return fx.simulate(drawn(block(), scale), SHORT, engine).ys


def cost(scale: jax.Array) -> jax.Array:
    return jnp.sum(jnp.sin(3.0 * outputs(scale)))


def in_turn(f: Callable[..., Any], *at: jax.Array) -> Any:
    """Of each lane alone."""
    return jax.jit(lambda *at: jax.lax.map(lambda row: f(*row), at))(*at)


@functools.cache
def alone(what: str) -> np.ndarray:
    of = {"values": outputs, "jacobian": jax.jacfwd(outputs), "gradient": jax.grad(cost)}
    return np.asarray(in_turn(of[what], SCALES))


def together(f: Callable[..., Any], *at: Any) -> tuple[Any, str]:
    """`f` of all lanes, which must have gone together, and the text of its program."""
    lanes_made: list[int] = []
    march = lanes.march_lanes

    def seen(count: int, *rest: Any, **more: Any) -> Any:
        lanes_made.append(count)
        return march(count, *rest, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("frictax.engine.on_samples.operation.march_lanes", seen)
        program = jax.jit(f).lower(*at).compile()
    assert set(lanes_made) == {FEW}
    return jax.tree.map(np.asarray, program(*at)), program.as_text() or ""


def diagonal(jacobian: jax.Array) -> jax.Array:
    """Of the derivatives of all lanes by all lanes, those of each by its own."""
    return jnp.stack([jacobian[i, :, :, i] for i in range(FEW)])


ORDERS: dict[str, tuple[Callable[[jax.Array], Any], str]] = {
    "vmap": (jax.vmap(outputs), "values"),
    "grad of vmap": (jax.grad(lambda p: jnp.sum(jax.vmap(cost)(p))), "gradient"),
    "vmap of jacfwd": (jax.vmap(jax.jacfwd(outputs)), "jacobian"),
    "jacfwd of vmap": (lambda p: diagonal(jax.jacfwd(jax.vmap(outputs))(p)), "jacobian"),
    "vmap of grad": (jax.vmap(jax.grad(cost)), "gradient"),
    "vmap of jacrev": (jax.vmap(jax.jacrev(outputs)), "jacobian"),
    "linearize of vmap": (
        lambda p: jnp.moveaxis(
            jax.lax.map(
                jax.linearize(jax.vmap(outputs), p)[1],
                jnp.broadcast_to(jnp.eye(p.shape[1])[:, None], (p.shape[1], *p.shape)),
            ),
            0,
            -1,
        ),
        "jacobian",
    ),
    "vmap of vmap": (
        lambda p: jax.vmap(lambda q: jax.vmap(outputs)(q[None])[0])(p),
        "values",
    ),
    "vmap of checkpoint": (jax.vmap(jax.grad(jax.checkpoint(cost))), "gradient"),
    "lax.map by batches": (lambda p: jax.lax.map(outputs, p, batch_size=FEW), "values"),
    "vmap in a scan": (
        lambda p: jax.lax.scan(lambda c, _: (c, jax.vmap(outputs)(p)), 0.0, None, length=1)[1][0],
        "values",
    ),
    "vmap of jacfwd, forward mode alone": (
        jax.vmap(jax.jacfwd(lambda p: outputs(p, fx.OnSamples(adjoint=diffrax.ForwardMode())))),
        "jacobian",
    ),
}


@functools.cache
def ordered(order: str) -> tuple[np.ndarray, str]:
    return together(ORDERS[order][0], SCALES)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("order", ORDERS)
def test_each_order_of_transformations_goes_together_and_gives_what_each_lane_gives_alone(
    order: str,
) -> None:
    found, expected = ordered(order)[0], alone(ORDERS[order][1])
    assert np.max(np.abs(found - expected)) <= 1e-14 * np.max(np.abs(expected))


@pytest.mark.slow
def test_samples_that_nobody_asks_for_are_not_written() -> None:
    def modes(p: jax.Array) -> jax.Array:
        return fx.simulate(drawn(block(), p), SHORT, fx.OnSamples()).modes

    shape = jax.eval_shape(jax.vmap(outputs), SCALES).shape
    states, stuck = f"f64[{','.join(map(str, shape))}]", f"s32[{FEW},{shape[1]},"
    told = jax.jit(jax.vmap(modes)).lower(SCALES).compile().as_text() or ""
    values, jacobian = ordered("vmap")[1], ordered("vmap of jacfwd")[1]
    written = [[shape in text for shape in (states, stuck)] for text in (values, told, jacobian)]
    assert written == [[True, False], [False, True], [False, False]]
    assert f"{states[:-1]}," in jacobian


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "hold"), [(name, name in ("block", "braked")) for name in STRUCTURES]
)
def test_random_machines_beside_each_other_are_those_alone(name: str, hold: bool) -> None:
    machine = STRUCTURES[name](hold)
    scales = draws(machine, 140, hold + 10)  # more than a block

    def everything(scale: jax.Array) -> Any:
        run = fx.simulate(drawn(machine, scale), TS, fx.OnSamples())
        floats = run.ys, run.path.times, run.error
        return floats, (run.path.count, run.path.fired, run.modes, run.steps, run.finest)

    floats, whole = jax.jit(jax.vmap(everything))(scales)
    floats_alone, whole_alone = in_turn(everything, scales)
    assert int(jnp.max(whole[0])) > 2
    for beside, alone in zip(whole, whole_alone, strict=True):
        assert np.array_equal(beside, alone)
    for beside, alone in zip(floats, floats_alone, strict=True):
        assert np.allclose(beside, alone, rtol=0, atol=1e-12)


@pytest.mark.slow
def test_records_and_times_of_each_lane_are_its_own_and_so_are_derivatives() -> None:
    pulls = jnp.linspace(0.8, 1.2, FEW)
    late = jnp.linspace(0.0, 0.3, FEW)

    def run(pull: jax.Array, late: jax.Array) -> jax.Array:
        times = late + SHORT
        pulled = drive(times=times, values=pull * PULL[:61])
        parts = {name: block()[name] for name in ("mass", "friction")}
        machine = fx.Mechanism(**parts, drive=fx.Force("mass", pulled))
        return fx.simulate(machine, times, fx.OnSamples()).ys

    def both(pull: jax.Array, late: jax.Array) -> tuple[jax.Array, jax.Array]:
        return jax.jvp(lambda pull: run(pull, late), (pull,), (jnp.ones_like(pull),))

    beside, apart = together(jax.vmap(both), pulls, late)[0], in_turn(both, pulls, late)
    for found, expected in zip(beside, apart, strict=True):
        assert np.max(np.abs(found - expected)) <= 1e-14 * np.max(np.abs(expected))
        assert np.max(np.abs(expected[0] - expected[-1])) > 1e-3


@pytest.mark.slow
def test_a_lane_that_fails_fails_alone_and_so_do_its_derivatives() -> None:
    def run(F_Coulomb: jax.Array, mass: jax.Array) -> Any:
        changed = {"friction.f_pos.F_Coulomb": F_Coulomb, "mass.m": mass}
        machine = fx.parameters.replace(block(), changed)
        run = fx.simulate(machine, TS, fx.OnSamples(max_events=6))
        return run.ys[-1], (run.result == fx.Result.successful, run.path.count)

    def both(F_Coulomb: jax.Array, mass: jax.Array) -> Any:
        by_mass = lambda mass: run(F_Coulomb, mass)  # noqa: E731
        return jax.jvp(by_mass, (mass,), (jnp.ones_like(mass),), has_aux=True)

    friction = jnp.linspace(0.7, 9.0, FEW)  # little friction: more events than there is room for
    mass = jnp.ones(FEW).at[3].set(jnp.nan)
    end, slope, (fine, count) = jax.jit(jax.vmap(both))(friction, mass)
    end1, (fine1, count1) = in_turn(run, friction, mass)
    assert 1 < int(jnp.sum(fine)) < FEW - 1
    assert not fine[3]
    assert np.array_equal(fine, fine1)
    assert np.array_equal(count, count1)
    assert np.allclose(end, end1, rtol=0, atol=1e-13, equal_nan=True)
    for x in (end, slope):
        assert bool(jnp.all(jnp.isfinite(x[fine])))
        assert bool(jnp.all(jnp.isnan(x[~fine])))


@pytest.mark.slow
def test_adaptive_runs_beside_each_other_are_those_alone_and_so_are_their_derivatives() -> None:
    def end(scale: jax.Array) -> jax.Array:
        engine = fx.Adaptive(rtol=1e-9, atol=1e-11)
        return fx.simulate(drawn(block(), scale), SHORT[::30], engine).ys[-1]

    value, jacobian = in_turn(value_and_jacobian(end), SCALES)
    reverse = jax.jit(jax.vmap(jax.jacrev(end)))(SCALES)
    # Each direction moves one parameter of all lanes.
    along = jax.vmap(
        lambda d: jax.jvp(jax.vmap(end), (SCALES,), (jnp.broadcast_to(d, SCALES.shape),)),
        out_axes=(None, -1),
    )
    values, forward = jax.jit(along)(jnp.eye(SCALES.shape[1]))
    cases = (("values", values, value), ("jvp", forward, jacobian), ("jacrev", reverse, jacobian))
    for name, beside, expected in cases:
        assert np.max(np.abs(beside - expected)) <= 1e-12 * np.max(np.abs(expected)), name


@pytest.mark.parametrize(
    "of", [lambda run: run, pytest.param(jax.jacfwd, marks=pytest.mark.slow)], ids=["run", "jacfwd"]
)
def test_machines_without_modes_go_together(of: Callable) -> None:
    def run(stiffness: jax.Array) -> jax.Array:
        machine = fx.Mechanism(
            wall=fx.Fixed(), mass=fx.Mass(m=1.0, s=1.0), spring=fx.Spring("wall", "mass", stiffness)
        )
        return fx.simulate(machine, SHORT, fx.OnSamples()).ys

    stiffness = jnp.linspace(1.0, 9.0, FEW)
    f = of(run)
    beside, apart = together(jax.vmap(f), stiffness)[0], in_turn(f, stiffness)
    assert np.max(np.abs(beside - apart)) <= 1e-14 * np.max(np.abs(apart))
