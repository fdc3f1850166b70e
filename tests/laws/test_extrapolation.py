"""What a table is beyond its last row, and that friction never drives."""

import itertools
import warnings
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import frictax as fx
from checks import value_and_jacobian
from frictax.contacts.contact import law_value, piece_at

FALLING = [[0.0, 10.0], [1.0, 5.0]]  # the line through its rows reaches 0 at 2 m/s


def sliding(law, v: float = 4.0, force: float = 0.0) -> fx.Mechanism:
    """A block of 1 kg that slides on `law`."""
    return fx.Mechanism(
        mass=fx.Mass(m=1.0, v=v),
        friction=fx.SupportFriction("mass", f_pos=law),
        drive=fx.Force("mass", force),
    )


def quiet(machine: fx.Mechanism, ts, engine=None) -> fx.Trajectory:
    """A run whose warnings are read from its notices."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fx.simulate(machine, ts, engine)


@pytest.mark.parametrize(
    ("how", "value"), [("linear", 0.0), ("hold", 5.0), ("error", float("nan"))]
)
def test_beyond_its_last_row_a_table_that_falls_is_0_or_held_or_not_a_number(how, value) -> None:
    table = fx.Table(FALLING, extrapolation=how)
    inside = [float(table(v)) for v in (0.0, 0.5, 1.0)]
    assert inside == [10.0, 7.5, 5.0]
    assert float(table(4.0)) == pytest.approx(value, nan_ok=True)


def test_another_word_for_the_extrapolation_is_refused() -> None:
    with pytest.raises(ValueError, match=r"`Table.extrapolation` must be one of 'linear', 'hold'"):
        fx.Table(FALLING, extrapolation="constant")  # pyright: ignore[reportArgumentType]


@pytest.mark.slow
@pytest.mark.parametrize("engine", [fx.Adaptive(), fx.OnSamples()], ids=["adaptive", "samples"])
def test_a_block_beyond_where_its_table_reaches_0_keeps_its_speed_and_is_told_of(engine) -> None:
    run = quiet(sliding(FALLING), jnp.linspace(0.0, 2.0, 41), engine)
    assert np.asarray(run["mass"].v) == pytest.approx(4.0, abs=1e-12)
    assert np.asarray(run["friction"].lossPower) == pytest.approx(0.0, abs=1e-12)
    (notice,) = run.notices
    assert (notice.code, notice.subject) == ("table-left", "friction.f_pos")
    assert notice.numbers["reached"] == pytest.approx(4.0)


@pytest.mark.slow
def test_a_run_within_a_tenth_beyond_its_table_is_not_told_of() -> None:
    assert quiet(sliding(FALLING, v=1.09), jnp.linspace(0.0, 2.0, 41)).notices == ()


def test_simulate_warns_of_a_table_that_the_motion_leaves() -> None:
    with pytest.warns(UserWarning, match=r"friction.f_pos has rows from 0 to 1 m/s, and the"):
        fx.simulate(sliding(FALLING), jnp.linspace(0.0, 2.0, 41))


@pytest.mark.parametrize("engine", [fx.Adaptive(), fx.OnSamples()], ids=["adaptive", "samples"])
def test_a_run_that_passes_the_last_row_of_a_table_without_extrapolation_ends_there(
    engine,
) -> None:
    machine = sliding(fx.Table(FALLING, extrapolation="error"), v=0.5, force=8.0)
    with pytest.raises(fx.SimulationError, match="table from 0 to 1 m/s with") as told:
        fx.simulate(machine, jnp.linspace(0.0, 2.0, 41), engine)
    assert told.value.run.result == fx.Result.nonfinite
    v = np.asarray(told.value.run["mass"].v)
    assert np.nanmax(v) <= 1.0
    assert np.isnan(v[-1])


def test_a_run_may_begin_at_the_last_row_of_a_table_without_extrapolation() -> None:
    machine = sliding(fx.Table([[0.0, 5.0], [1.0, 5.0]], extrapolation="error"), v=1.0)
    run = fx.simulate(machine, jnp.linspace(0.0, 0.1, 3))
    assert float(run["mass"].v[-1]) == pytest.approx(0.5)


# Closed form of a block of 1 kg that slides from v0 = 4 with f = 5 held down to 1 m/s, then with
# f = 10 - 5 v: t1 = 0.6, v = 2 - exp(5 (t - t1)).
@pytest.mark.slow
def test_a_held_table_brakes_as_in_closed_form() -> None:
    law = fx.Table(FALLING, extrapolation="hold")
    for engine in (fx.Adaptive(rtol=1e-10, atol=1e-12), fx.OnSamples()):
        run = quiet(sliding(law), jnp.linspace(0.0, 0.7, 141), engine)
        assert float(run["mass"].v[-1]) == pytest.approx(2 - np.exp(0.5), abs=1e-6)


@pytest.mark.slow
def test_derivatives_through_the_kink_beyond_the_last_row_equal_central_differences() -> None:
    ts = jnp.linspace(0.0, 1.2, 61)
    for engine in (fx.Adaptive(rtol=1e-11, atol=1e-12), fx.OnSamples(substeps=4)):

        def ends(x, engine=engine):
            rows = jnp.stack([jnp.array([0.0, 1.0]), x[:2]], axis=1)
            parts = {}
            for how in ("linear", "hold"):
                law = fx.Table(rows, extrapolation=how)
                drive = fx.Force(how, fx.Sine(amplitude=30.0 * x[2], f=0.8))
                friction = fx.SupportFriction(how, f_pos=law)
                mass = fx.Mass(m=1.0, v=0.2)
                parts |= {how: mass, f"{how}_friction": friction, f"{how}_drive": drive}
            run = fx.simulate(fx.Mechanism(**parts), ts, engine)
            masses = run["linear"], run["hold"]
            return jnp.stack([x for mass in masses for x in (mass.v[40], mass.s[-1])])

        both, x, h = value_and_jacobian(ends), jnp.array([10.0, 5.0, 1.0]), 1e-5
        value, forward = map(np.asarray, both(x))
        assert np.all(np.abs(value[:2] - value[2:]) > 1e-3)  # the two laws differ
        moved = [(both(x + h * e)[0] - both(x - h * e)[0]) / (2 * h) for e in np.eye(3)]
        assert forward == pytest.approx(np.stack(moved, axis=1), rel=1e-5, abs=1e-7)
        if isinstance(engine, fx.Adaptive):
            assert np.asarray(jax.jit(jax.jacrev(ends))(x)) == pytest.approx(forward, rel=1e-8)


def test_a_law_of_the_users_own_below_0_brakes_no_more_and_is_told_of() -> None:
    class Falling(fx.AbstractLaw):
        slope: float

        def __call__(self, v):
            return 3.0 - self.slope * v

    run = quiet(sliding(Falling(1.0)), jnp.linspace(0.0, 2.0, 11))
    assert np.asarray(run["mass"].v) == pytest.approx(4.0)
    (notice,) = run.notices
    assert (notice.code, notice.numbers["least"]) == ("law-below-zero", -1.0)


def test_a_bristle_is_refused_where_its_table_reaches_0() -> None:
    with pytest.raises(ValueError, match=r"got one that is 0 at a speed of 2\. Leave out"):
        fx.SupportFriction("mass", f_pos=FALLING, bristle=fx.LuGre(sigma_0=1e4))


class Polynomial(fx.AbstractLaw):
    c: jax.Array

    def __call__(self, v):
        return self.c[0] + self.c[1] * v + self.c[2] * v**2


def random_law(rng: np.random.Generator, kind: int | None = None, exponent: Any = None):
    """A law of any kind, or of the kind with this number."""
    rows = np.stack([np.cumsum(rng.uniform(0.1, 1.0, 3)) - 0.1, rng.uniform(0.0, 9.0, 3)], axis=1)
    rows[0, 0] = 0.0

    kinds = [
        fx.Table(rows),
        fx.Table(rows, extrapolation="hold"),
        fx.Stribeck(
            *rng.uniform(0.0, 5.0, 4),
            exponent=float(rng.choice([1.0, 2.0, 0.7])) if exponent is None else exponent,
        ),
        fx.Coulomb(*rng.uniform(0.0, 5.0, 2)),
        Polynomial(jnp.asarray(rng.normal(size=3) * 3)),
        fx.TemperatureDependent(fx.Table(rows), beta=float(rng.normal() * 0.05)),
    ]
    return kinds[rng.integers(len(kinds)) if kind is None else kind]


def random_machine(seed: int) -> fx.Mechanism:
    """Bodies that slide and turn with every kind of contact, and both on every kind of law: one
    program for all seeds.
    """
    rng = np.random.default_rng(seed)
    kinds, any_exponent = itertools.count(), jnp.asarray(rng.choice([1.0, 2.0, 0.7]))

    def laws(*names: str) -> dict[str, Any]:
        return {name: random_law(rng, next(kinds) % 6, any_exponent) for name in names}

    def pushed(top: float) -> fx.Sine:
        return fx.Sine(amplitude=float(rng.uniform(1.0, top)), f=float(rng.uniform(0.2, 1.0)))

    a, b = rng.uniform(0.3, 0.99, 2), rng.uniform(0.0, 1.0, 4)
    loss = [[0.0, a[0], a[1], b[0], b[1]], [3.0, a[1], a[0], b[2], b[3]]]
    sliding = {}
    for name in ("x", "y", "z"):
        sliding |= {
            name: fx.Mass(m=1.0, v=float(rng.normal() * 5)),
            f"guide_{name}": fx.SupportFriction(name, **laws("f_pos", "f_neg")),
            f"push_{name}": fx.Force(name, pushed(40.0)),
        }
    return fx.Mechanism(
        **sliding,
        rotor=fx.Inertia(J=1.0, w=float(rng.normal() * 5)),
        bearing=fx.BearingFriction("rotor", **laws("tau_pos", "tau_neg")),
        brake=fx.Brake("rotor", **laws("mu_pos", "mu_neg"), fn_max=2.0, f_normalized=pushed(1.5)),
        twist=fx.Torque("rotor", pushed(40.0)),
        disc=fx.Inertia(J=0.5),
        clutch=fx.Clutch("rotor", "disc", **laws("mu_pos", "mu_neg"), fn_max=3.0),
        drum=fx.Inertia(J=0.4),
        gear=fx.LossyGear("disc", "drum", ratio=2.0, lossTable=loss),
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
def test_no_contact_of_any_law_ever_drives(seed: int) -> None:
    run = quiet(random_machine(seed), jnp.linspace(0.0, 5.0, 251))
    for name in ("guide_x", "guide_y", "guide_z", "bearing", "brake", "clutch", "gear"):
        assert np.min(np.asarray(run[name].lossPower)) >= -1e-9


@eqx.filter_jit
def friction(contact: fx.SupportFriction, way: jax.Array, speeds: jax.Array) -> jax.Array:
    return jax.vmap(lambda v: law_value(contact, way, v, None))(speeds)


@pytest.mark.parametrize("seed", range(30))
def test_friction_of_any_law_opposes_the_motion_at_every_speed(seed: int) -> None:
    rng = np.random.default_rng(seed)
    law, other = random_law(rng), random_law(rng)
    contact = fx.SupportFriction("mass", f_pos=law, f_neg=other)
    speeds = jnp.linspace(0.0, 50.0, 401)
    for way, own in ((1, law), (-1, other)):
        alone = fx.SupportFriction("mass", f_pos=own, f_neg=own)  # a program for each kind of law
        assert float(jnp.min(friction(alone, jnp.array(way), speeds))) >= 0.0
        assert float(contact.holds(way, 1.0)) >= 0.0


@jax.jit
def larger_of_both_lines(gear: fx.LossyGear, speeds: jax.Array, torques: jax.Array) -> jax.Array:
    def at(w, torque):
        (k1, d1), (k2, d2) = gear.lines(w, piece_at(gear, jnp.array(1), w))
        return jnp.maximum(k1 * torque + d1, k2 * torque + d2)

    return jax.vmap(jax.vmap(at, (None, 0)), (0, None))(speeds, torques)


@pytest.mark.parametrize("seed", range(20))
def test_the_losses_of_a_gear_brake_at_every_speed(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = np.column_stack(
        [[0.0, 1.0, 2.5], rng.uniform(0.2, 1.0, (3, 2)), rng.uniform(0.0, 2.0, (3, 2))]
    )
    gear = fx.LossyGear("a", "b", ratio=2.0, lossTable=rows)
    torques = jnp.array([-3.0, 0.0, 3.0])
    larger = larger_of_both_lines(gear, jnp.linspace(0.0, 40.0, 41), torques)
    assert larger.shape == (41, 3)
    assert float(jnp.min(larger)) >= -1e-12


def test_a_gear_whose_efficiencies_lie_on_both_sides_of_1_is_refused() -> None:
    with pytest.raises(ValueError, match=r"eta_mf1` must be between 1e-06 and 1, got \[1\.2\]"):
        fx.LossyGear("a", "b", ratio=1.0, lossTable=[[0, 1.2, 0.9, 0, 0]])


@pytest.mark.parametrize("how", ["linear", "hold"])
@pytest.mark.parametrize("rows", [FALLING, [[0, 9], [2, 4], [3, 0]], [[0, 1], [1, 2], [2, 4]]])
def test_rows_for_other_programs_are_the_same_law_where_these_extend_the_last_line(
    how, rows
) -> None:
    table = fx.Table(rows, extrapolation=how)
    plain = table.extended_rows()
    v = np.linspace(0.0, 30.0, 301)
    (va, fa), (vb, fb) = plain[-2:]
    line = fb + (fb - fa) / (vb - va) * (v - vb)
    extended = np.where(v > vb, line, np.interp(v, plain[:, 0], plain[:, 1]))
    assert extended == pytest.approx(np.asarray(table(jnp.asarray(v))), abs=1e-12)
