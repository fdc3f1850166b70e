"""Many records, each with inputs and times of its own, are fitted as `fit` fits each."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import frictax as fx
import frictax.fitting.many_search as many_search
import frictax.programs.executables as programs
from frictax.fitting import FitOptions
from frictax.fitting.fit_many import fit_each
from frictax.parameters import replace

LAW = ["friction.f_pos"]


def machine(F_Coulomb: float = 1.0, F_prop: float = 0.2) -> fx.Mechanism:
    law = fx.Coulomb(F_Coulomb=F_Coulomb, F_prop=F_prop)
    return fx.Mechanism(
        mass=fx.Mass(m=1.0),
        friction=fx.SupportFriction("mass", f_pos=law),
        drive=fx.Force("mass", 0.0),
    )


def record(i: int) -> fx.Record:
    """Each with a length, a force and a friction of its own."""
    rng = np.random.default_rng(i)
    t = np.linspace(0.0, 2.0, 81 if i % 3 else 101)
    push = rng.uniform(2.0, 3.0) * np.sin(rng.uniform(3.0, 5.0) * t + rng.uniform(0.0, 6.0))
    true = machine(*rng.uniform((0.7, 0.1), (1.1, 0.3)))
    parts = {name: true[name] for name in ("mass", "friction")}
    run = fx.simulate(fx.Mechanism(**parts, drive=fx.Force("mass", fx.Sampled(t, push))), t)
    seen = np.asarray(run["mass"].v) + 0.003 * rng.standard_normal(t.size)
    return fx.Record(t, {"drive": push}, {"mass.v": seen}, name=f"run {i}")


@pytest.fixture(scope="module")
def records() -> list[fx.Record]:
    return [record(i) for i in range(5)]


# of one length, and of two
@pytest.mark.parametrize("which", [slice(1, 3), pytest.param(slice(5), marks=pytest.mark.slow)])
def test_each_is_what_fit_finds_and_one_more_compiles_nothing(
    records: list[fx.Record], which: slice, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = records[which]
    more_records = [*records, record(7), record(8)]
    many = fx.fit_many(machine(), records, free=LAW)
    assert many.converged.all()
    for i, one in enumerate(records):
        found = fx.fit(machine(), one, free=LAW, rounds=0)
        assert many.names == tuple(found.values)
        off = np.abs(many.values[i] - np.asarray(list(found.values.values())))
        errors = np.asarray(list(found.standard_errors.values()))
        assert np.max(off / errors) < 1e-6
        assert np.allclose(many.standard_errors[i], errors, rtol=1e-6)
    assert np.ptp(many.values[:, 1]) > 0.01
    monkeypatch.setattr(programs, "_lower", lambda *_: pytest.fail("compiled"))
    more = fx.fit_many(machine(0.9), more_records, free=LAW)
    off = np.abs(more.values[: len(records)] - many.values) / many.standard_errors
    assert np.max(off) < 1e-2  # from another start, to the tolerance


@pytest.mark.slow
def test_a_whole_exponent_is_no_power(
    records: list[fx.Record], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a number of the program it was, and a fit took twice as long."""
    law = fx.Stribeck(F_Coulomb=0.8, F_prop=0.2, F_Stribeck=0.2, fexp=5.0)
    stribeck = fx.Mechanism(
        mass=fx.Mass(m=1.0),
        friction=fx.SupportFriction("mass", f_pos=law),
        drive=fx.Force("mass", 0.0),
    )

    def shown(static: Any, *_: Any) -> Any:
        raise RuntimeError(type(static.setup.machine["friction"].f_pos.exponent).__name__)

    monkeypatch.setattr(many_search, "_all", shown)
    with pytest.raises(RuntimeError, match="^float$"):
        fx.fit_many(stribeck, records[1:3], free=["friction.f_pos.F_Coulomb"])


@pytest.mark.parametrize(
    ("data", "measured", "words"),
    [
        (lambda of: of[0], None, ["needs what was `measured`", "(k, 101)"]),
        (lambda of: of[:2], np.zeros((2, 81)), ["`measured` goes with one record", "Leave it out"]),
        (lambda of: [], None, ["`Sweep`, a `Record` or a list", "got none"]),
        (lambda of: [of[0], "run.csv"], None, ["a list of them", "got str"]),
        (lambda of: 7.0, None, ["a list of them", "got float"]),
        (
            lambda of: [
                of[0],
                fx.Record(
                    of[1].t,
                    {"drive": of[1].inputs["drive"]},
                    {"mass.s": np.cumsum(of[1].outputs["mass.v"])},
                    name="other",
                ),
            ],
            None,
            ["record 1 ('other') has outputs mass.s", "the first mass.v"],
        ),
    ],
)
def test_what_cannot_be_fitted_is_refused(
    data: Callable[[list[fx.Record]], Any], measured, words: list[str], records: list[fx.Record]
) -> None:
    with pytest.raises(ValueError) as error:
        fx.fit_many(machine(), data(records), measured, free=LAW)
    for word in words:
        assert word in str(error.value)


@pytest.mark.slow
def test_each_has_values_of_its_own_known_or_as_a_start(records: list[fx.Record]) -> None:
    one, masses = records[1:3], [1.0, 1.2]
    own = {"mass.m": masses, "friction.f_pos.F_Coulomb": [0.9, 0.7]}
    many = fx.fit_many(machine(), one, values=own, free=LAW)
    for i, m in enumerate(masses):
        found = fx.fit(replace(machine(), {"mass.m": m}), one[i], free=LAW)
        off = np.abs(many.values[i] - np.asarray(list(found.values.values())))
        assert np.max(off / np.asarray(list(found.standard_errors.values()))) < 1e-2


@pytest.mark.slow
def test_each_begins_where_its_own_record_does() -> None:
    t = np.linspace(0.0, 1.0, 81)
    rng = np.random.default_rng(0)
    records = [
        fx.Record(
            t,
            {"drive": np.full(81, 2.0)},
            {"mass.v": v + 0.75 * t + 0.002 * rng.standard_normal(81)},
            name=f"from {v}",
        )
        for v in (0.5, 2.0)
    ]
    many = fx.fit_many(machine(0.8, 0.0), records, free=["mass.v", "friction.f_pos.F_Coulomb"])
    assert many.converged.all()
    column = many.names.index("mass.v")
    assert np.allclose(many.values[:, column], [0.5, 2.0], atol=0.01)


@pytest.mark.parametrize(
    ("own", "words"),
    [
        ({"mass.n": [1.0, 1.0]}, ["`values` names 'mass.n'", "does not have"]),
        ({"mass.m": [1.0]}, ["each of the 2 fits", "shape (2,)", "got (1,)"]),
        (7.0, ["a mapping from paths", "got float"]),
    ],
)
def test_wrong_values_are_told(records: list[fx.Record], own, words: list[str]) -> None:
    with pytest.raises((ValueError, KeyError)) as error:
        fx.fit_many(machine(), records[1:3], values=own, free=LAW)
    for word in words:
        assert word in str(error.value)


@pytest.mark.slow
def test_first_steps_are_as_long_as_the_values_of_each_start(records: list[fx.Record]) -> None:
    """Of a number that may be negative; longer ones lead elsewhere, or take longer."""

    def tilted(k: float) -> fx.Mechanism:
        parts = {name: machine()[name] for name in ("mass", "friction", "drive")}
        return fx.Mechanism(**parts, tilt=fx.Force("mass", k))

    models, free = [tilted(0.02), tilted(-1.5)], [*LAW, "tilt.f.k"]
    alike = [records[0], records[3]]
    many = fit_each(models, alike, FitOptions(free=free))
    for model, one, found in zip(models, alike, many, strict=True):
        assert isinstance(found, fx.FitResult)
        alone = fx.fit(model, one, free=free)
        assert found.iterations == alone.iterations
        assert np.allclose(found.x, alone.x, rtol=1e-12)


def test_intervals_of_sweeps_end_at_upper_bounds_too() -> None:
    class Mixed(fx.AbstractLaw, fx.parameters.CheckedModule):
        """A law with a fraction between 0 and 1."""

        share: fx.parameters.Scalar = fx.parameters.parameter(fx.parameters.Between(0.0, 1.0), "1")

        def __call__(self, v: Any) -> Any:
            return 1.0 + self.share * v

    v, noise = np.linspace(0.1, 1.0, 12), np.random.default_rng(0)
    forces = 1.0 + 0.97 * v + 0.2 * noise.standard_normal((4, v.size))
    many = fx.fit_many(Mixed(0.9), fx.Sweep(v, forces[0]), forces, free="share")
    assert np.all(many.upper[np.isfinite(many.upper)] <= 1.0)
    assert np.any(many.upper == 1.0)
    for f, upper in zip(forces, many.upper[:, 0], strict=True):
        alone = fx.fit(Mixed(0.9), fx.Sweep(v, f), free="share").estimates[0]
        assert not np.isfinite(upper) or alone.upper == pytest.approx(upper)


def test_free_runs_that_end_above_the_noise_are_counted(records: list[fx.Record]) -> None:
    masses = {"mass.m": [1.0, 2.0]}  # the second is wrong
    many = fx.fit_many(machine(), [records[1]] * 2, values=masses, free=LAW)
    (notice,) = [n for n in many.notices if n.code == "fits-above-noise"]
    assert notice.numbers == {"above": 1, "count": 2, "first": 1}


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"sd": {}}, ["needs a standard deviation", "'mass.s'"]),
        (
            {"units": {"mass.s": "rad", "mass.v": "rad/s"}},
            ["must be a force [N]", "got one in N.m"],
        ),
    ],
)
def test_each_record_is_checked(changed: dict[str, Any], words: list[str]) -> None:
    t, sd = np.linspace(0.0, 2.0, 41), {"mass.s": 1e-3, "mass.v": 0.05}
    given: dict[str, Any] = {
        "inputs": {"drive": np.full(41, 2.0)},
        "outputs": {"mass.s": 0.4 * t**2, "mass.v": 0.8 * t},
        "sd": sd,
    }
    records = [fx.Record(t, **given, name="a"), fx.Record(t, **{**given, **changed}, name="b")]
    with pytest.raises(ValueError) as error:
        fx.fit_many(machine(), records, free=LAW)
    for word in words:
        assert word in str(error.value)
