"""Bodies that rub on elements: derivatives, energy, other machines, other engines."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from diffrax import ForwardMode

import frictax as fx
from checks import value_and_jacobian
from rubbing import P1_LAW, STANDARD, lugre, rubbing

# yield lengths of 0.4 to 1.6 of their mean, equal shares
SHAPE = 1 / np.linspace(0.4, 1.6, 4)
SHAPE = SHAPE / SHAPE.sum()


def shaken(bristle: Any, law: Any, h: float | None, last: float = 10.0) -> tuple[Any, np.ndarray]:
    """P1's block, and times of samples `h` apart; without, the two ends."""
    ts = np.linspace(0.0, last, 2 if h is None else round(last / h) + 1)
    drive: Any = fx.Sine(amplitude=2.0, f=1.0)
    if h is not None:
        drive = fx.Sampled(ts, 2.0 * np.sin(2 * np.pi * ts))
    return rubbing(bristle, law, drive), ts


@pytest.mark.slow
def test_four_elements_take_few_steps_and_agree_on_samples() -> None:
    law, bristle = fx.Coulomb(F_Coulomb=1.2, F_prop=0.2), fx.MaxwellSlip(1e5 * SHAPE)
    machine, _ = shaken(bristle, law, None)
    run = fx.simulate(machine, [0.0, 2.0, 10.0], fx.Adaptive())
    assert int(run.steps) < 1600
    assert 180 < int(run.path.count) < 210
    ends = dict(zip((2.0, 10.0), run["mass"].s[1:].tolist(), strict=True))
    assert ends[10.0] == pytest.approx(2.71518e-3, abs=2e-8)  # at tolerances of 1e-9 and 1e-12
    for h, last, near in ((1e-3, 2.0, 2e-6), (5e-3, 10.0, 1e-4)):  # as many samples
        machine, ts = shaken(bristle, law, h, last)
        run = fx.simulate(machine, ts, fx.OnSamples())
        assert float(run["mass"].s[-1]) == pytest.approx(ends[last], abs=near)
        assert np.max(np.abs(run["friction"].f_z)) <= 1.2 + 1e-9


# Without error control, so that no number of steps changes between two runs of a difference
ON_SAMPLES, ACCURATE = fx.OnSamples(tolerance=None), fx.Adaptive(1e-10, 1e-13)
FORWARD = fx.OnSamples(tolerance=None, adjoint=ForwardMode())  # compiles three times as fast


@pytest.mark.slow
@pytest.mark.parametrize(
    ("engine", "C"), [(ON_SAMPLES, None), (ON_SAMPLES, 20.0), (ACCURATE, 20.0)], ids=str
)
def test_derivatives_through_all_events_are_those_of_the_run(engine: Any, C: float | None) -> None:
    h = 1e-3 if isinstance(engine, fx.OnSamples) else None
    alone = FORWARD if h else engine  # Reverse mode is compared with it.

    def end(x: Any, engine: Any = engine) -> Any:
        scale, first, *law = jnp.exp(x)
        names = dict(zip(P1_LAW, law, strict=True))
        bristle = fx.MaxwellSlip(1e4 * scale * SHAPE, jnp.stack([first, 1.0, 2.0, 3.0]), C)
        machine, ts = shaken(bristle, fx.Stribeck(**names), h, 1.5)
        return fx.simulate(machine, ts, engine)["mass"].s[-1]

    both = value_and_jacobian(lambda x: end(x, alone))
    x = jnp.log(jnp.array([1.0, 1.0, *P1_LAW.values()]))
    forward = np.asarray(both(x)[1])
    if C:
        assert np.asarray(jax.jit(jax.grad(end))(x)) == pytest.approx(forward, rel=1e-6, abs=1e-9)
    central = []
    for i in range(x.shape[0]):
        d = jnp.zeros_like(x).at[i].set(1e-5)
        central.append(float(both(x + d)[0] - both(x - d)[0]) / 2e-5)
    assert forward == pytest.approx(np.array(central), rel=1e-4, abs=1e-7)
    assert np.min(np.abs(forward)) > 1e-7


def balanced(machine: fx.Mechanism, ts: Any, engine: Any = None) -> fx.Trajectory:
    engine = fx.Adaptive(rtol=1e-9, atol=1e-12) if engine is None else engine
    run = fx.simulate(machine, ts, engine, energy=True)
    scale = float(np.max(np.abs(run.energy.kinetic)) + np.max(np.abs(run.energy.drive)))
    assert np.max(np.abs(run.energy.balance)) < 1e-7 * scale
    return run


@pytest.mark.slow
def test_two_bodies_a_belt_heat_and_friction_of_every_kind() -> None:
    law = fx.Stribeck(F_prop=0.3, F_Coulomb=1.0, F_Stribeck=0.4, fexp=5.0)
    hot = fx.TemperatureDependent(law, beta=0.02, T_ref=300.0)
    elements = fx.MaxwellSlip([4e3, 2e3, 1e3], [1, 1, 2], C=30.0)
    machine = fx.Mechanism(
        belt=fx.Mass(m=1.0),
        mass=fx.Mass(m=2.0),
        second=fx.Mass(m=1.0),
        wall=fx.Fixed(),
        spring=fx.Spring("mass", "wall", c=20.0),
        link=fx.SpringDamper("second", "mass", c=50.0, d=0.5),
        turn=fx.Position("belt", lambda t: 0.3 * jnp.sin(2 * t)),
        below=fx.SupportFriction("mass", f_pos=hot, support="belt", bristle=elements),
        guide=fx.SupportFriction("second", f_pos=fx.Coulomb(0.2), bristle=fx.LuGre(1e3, 20.0)),
        rail=fx.SupportFriction("second", f_pos=fx.Coulomb(0.3), bristle=fx.MaxwellSlip([1e3])),
        seal=fx.SupportFriction("second", f_pos=fx.Coulomb(0.1), support="mass"),
        oil=fx.HeatCapacitor(("below", "rail"), C=1.0, T=300.0),
        air=fx.ThermalConductor("oil", G=0.1, T_ambient=290.0),
    )
    run = balanced(machine, np.linspace(0.0, 5.0, 11))
    assert np.max(np.abs(run.energy.heat_balance)) < 1e-9
    assert set(run.events.names) == {"seal"}
    assert int(run.path.count) > 20
    fine = fx.simulate(machine, np.linspace(0.0, 5.0, 5001), fx.OnSamples())
    assert np.asarray(fine["mass"].s)[::500] == pytest.approx(np.asarray(run["mass"].s), abs=2e-4)


@pytest.mark.slow
def test_one_stiff_element_tends_to_friction_that_sticks() -> None:
    law = fx.Stribeck(**P1_LAW)
    machine, ts = shaken(None, law, None)
    end = float(fx.simulate(machine, ts)["mass"].s[-1])
    for k, near in ((1e5, 3e-4), (1e7, 3e-6)):
        machine, ts = shaken(fx.MaxwellSlip([k]), law, 4e-4)
        run = fx.simulate(machine, ts, ON_SAMPLES)
        assert float(run["mass"].s[-1]) == pytest.approx(end, abs=near)


@pytest.mark.slow
def test_beside_a_bristle_that_a_step_cannot_resolve_it_stays_bounded() -> None:
    ts = 5e-3 * np.arange(401)
    drive = fx.Sampled(ts, 3.0 * np.sin(2 * np.pi * ts))
    beside = fx.SupportFriction("mass", f_pos=fx.Coulomb(0.3), bristle=lugre(1e7, v_d=None))
    machine = rubbing(fx.MaxwellSlip([4e6, 2e6, 1e3]), STANDARD, drive, beside=beside)
    run = fx.simulate(machine, ts, fx.OnSamples())
    assert np.max(np.abs(run["friction"].f_z)) <= 1.5 * (1 + 1e-6)
    assert np.max(np.abs(run["beside"].f_z)) <= 0.3 * 1.05
    assert np.max(np.abs(run["mass"].s)) < 1.0


def drawn(seed: int, n: int, C: bool) -> fx.Mechanism:
    """A machine of one body, or without `C` of two, of which one rubs on `n` elements under a law
    that is kinked or rises and one that falls or is flat.
    """
    draw = np.random.default_rng(seed)
    k, shares = 10 ** draw.uniform(2.5, 4.5, n), draw.uniform(0.1, 1.0, n)
    bristle = fx.MaxwellSlip(k, shares, C=float(10 ** draw.uniform(0, 2)) if C else None)
    rows = [[0, 0.5], [0.1, 0.6], [1, 1.5]] if seed % 2 else [[0, 1.2], [0.1, 1.0], [1, 2.0]]
    x, falls = draw.uniform(), 0.5 * (seed // 2 % 2)
    forward, backward = fx.Table(rows), fx.Stribeck(0.3, 1.0, falls, fexp=100**x, exponent=2.0)
    ts = np.linspace(0.0, 4.0, 81)
    force = np.sin(np.outer(ts, draw.uniform(1, 9, 3)) + draw.uniform(0, 6, 3))
    parts: dict[str, Any] = {
        "mass": fx.Mass(m=draw.uniform(0.5, 2.0), v=draw.choice([0.0, draw.normal()])),
        "push": fx.Force("mass", fx.Sampled(ts, force @ draw.uniform(0.2, 1.5, 3))),
    }
    if not C:
        parts["cart"] = fx.Mass(m=1.0)
        parts["spring"] = fx.SpringDamper("cart", "mass", c=draw.uniform(10, 200), d=0.3)
        parts["seal"] = fx.SupportFriction("cart", f_pos=fx.Coulomb(F_Coulomb=0.2))
    guide = fx.SupportFriction("mass", f_pos=forward, f_neg=backward, bristle=bristle)
    return fx.Mechanism(**parts, guide=guide)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Shorter steps change", "ignore:.* is extrapolated")
@pytest.mark.parametrize(("n", "C"), [(1, False), (4, False), (3, True)])
def test_machines_that_are_drawn_keep_their_energy_and_their_limits(n: int, C: bool) -> None:
    ts = np.linspace(0.0, 4.0, 2001)
    for seed in range(8):
        machine = drawn(seed, n, C)
        exact = balanced(machine, ts[::25], fx.Adaptive(1e-8, 1e-11, max_events=4000))
        run = fx.simulate(machine, ts, fx.OnSamples(max_events=4000))
        size = np.max(np.abs(exact["mass"].s)) + 1e-3
        gap = np.max(np.abs(np.asarray(run["mass"].s)[::25] - np.asarray(exact["mass"].s)))
        assert gap < 0.02 * size, seed
        if not C:
            guide: Any = machine["guide"]
            first = exact.system.layout.first_bristle
            forces = np.asarray(exact.ys)[:, first : first + n] / np.asarray(guide.bristle.share)
            top = max(float(guide.law(m)(jnp.array(v))) for m in (1, -1) for v in (0.0, 20.0))
            assert np.max(np.abs(forces)) <= top * (1 + 1e-9)


@pytest.mark.slow
def test_a_fit_finds_the_stiffness_of_each_element() -> None:
    law = fx.Coulomb(F_Coulomb=1.0, F_prop=2.0)
    ts = np.linspace(0.0, 1.0, 1001)
    u = 0.9 * np.sin(2 * np.pi * 5 * ts) * ts
    machine = rubbing(fx.MaxwellSlip([2e4, 1e4]), law, fx.Sampled(ts, u))
    s = np.asarray(fx.simulate(machine, ts, fx.OnSamples())["mass"].s)
    noise = np.random.default_rng(1).normal(size=s.size) * 1e-7
    record = fx.Record(
        ts, inputs={"push": u}, outputs={"mass.s": s + noise}, sd={"mass.s": 1e-7}, name="shaken"
    )
    start = rubbing(fx.MaxwellSlip([2.5e4, 0.8e4]), law, 0.0)
    found = fx.fit(start, record, free="friction.bristle")
    assert found.names == ("friction.bristle.k[0]", "friction.bristle.k[1]")
    for estimate, true in zip(found.estimates, (2e4, 1e4), strict=True):
        assert abs(estimate.value - true) < 4 * estimate.standard_error
        assert estimate.standard_error < 0.05 * true


@pytest.mark.slow
def test_it_is_drawn_told_written_and_refused_as_other_bristles() -> None:
    from frictax.export.modelica_machine import machine_text
    from frictax.problems.building import Place, build_machine as built

    # The run shares programs with `test_four_elements_take_few_steps_and_agree_on_samples`.
    machine, ts = shaken(fx.MaxwellSlip(1e3 * SHAPE), fx.Coulomb(F_Coulomb=1.0), 1e-3, 2.0)
    run = fx.simulate(machine, ts, fx.OnSamples())
    assert run.plot() is not None
    assert run.to_pandas().attrs["units"]["friction.f_z"] == "N"
    assert "stuck" in run._repr_html_()
    with pytest.raises(
        ValueError, match=r"`friction.bristle` is MaxwellSlip.*for which the export has no"
    ):
        machine_text(machine)
    table = {"kind": "MaxwellSlip", "k": [2e4, 1e4], "share": [0.25, 0.75], "C": 9.0}
    parts = {
        "mass": {"kind": "Mass", "m": 1.0},
        "guide": {"kind": "SupportFriction", "body": "mass", "bristle": table},
    }
    guide: Any = built(parts, Place("file"))["guide"]
    assert guide.bristle.share.tolist() == pytest.approx([0.25, 0.75])
