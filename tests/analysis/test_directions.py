"""Sweeps of both directions: an offset, a law for each direction, or neither."""

import numpy as np
import pytest

import frictax as fx

CODES = {"offset-missing", "directions-differ"}


def sweep_of(
    seed: int, *, rows: int = 12, noise: float = 0.05, offset: float = 0.0, backward: float = 1.0
) -> fx.Sweep:
    """Rows forward, then backward; `backward`: the viscous friction there over that forward."""
    a = np.linspace(0.2, 3.0, rows)
    v, e = np.r_[a, -a], np.random.default_rng(seed).standard_normal(2 * rows)
    viscous = 0.8 * np.where(v < 0, backward, 1.0)
    force = np.sign(v) * 5.0 + viscous * v + offset + noise * e
    return fx.Sweep(v, force, velocity_unit="m/s", force_unit="N")


def named(found: fx.FitResult) -> dict[str, fx.Notice]:
    return {notice.code: notice for notice in found.notices if notice.code in CODES}


def test_an_offset_is_named_with_its_size_and_the_call_that_fits_it() -> None:
    found = fx.fit(fx.Coulomb, sweep_of(0, offset=0.4))
    notice = named(found)["offset-missing"]
    numbers = notice.numbers
    assert float(numbers["lower"]) < 0.4 < float(numbers["upper"])
    again = eval(str(numbers["call"]), {"fx": fx, "found": found})
    assert again.values["offset"] == pytest.approx(numbers["size"])
    assert not named(again)
    assert not {n.code for n in found.notices} & {"memory-as-long", "memory-long"}


@pytest.mark.slow
def test_a_law_for_each_direction_is_named_with_the_term_that_differs() -> None:
    found = fx.fit(fx.Coulomb, sweep_of(0, backward=0.6), loss=fx.Huber())
    numbers = named(found)["directions-differ"].numbers
    assert "F_prop" in str(numbers["difference"])
    assert float(numbers["lower"]) < 0.32 < float(numbers["upper"])
    again = eval(str(numbers["call"]), {"fx": fx, "found": found})
    assert {"f_pos.F_prop", "f_neg.F_prop"} <= set(again.names)
    assert isinstance(again.loss, fx.Huber)


def test_symmetric_sweeps_and_sweeps_of_one_direction_are_not_named() -> None:
    assert not any(named(fx.fit(fx.Coulomb, sweep_of(seed))) for seed in range(5))
    assert not named(fx.fit(fx.Coulomb, sweep_of(0, offset=0.4).positive()))


def test_compare_has_the_offset_as_a_candidate_and_chooses_it() -> None:
    sweep = sweep_of(1, offset=0.4)
    made = fx.compare(sweep, {"Coulomb": fx.Coulomb(F_Coulomb=4.0, F_prop=1.0)})
    assert [row.name for row in made.rows] == ["Coulomb", "Coulomb, offset"]
    assert made.best.name == "Coulomb, offset"
    assert made.autocorrelation == 0.0
    assert "the offset is" in made.reason


def test_a_residual_study_of_both_directions_names_both() -> None:
    study = fx.fit(fx.Coulomb, sweep_of(0, offset=0.4)).residual_study()
    assert study["direction"].strong
    assert "forward and" in study["direction"].sentence
    assert "only one direction" not in str(study)


@pytest.mark.slow
def test_laws_whose_parameters_the_rows_hardly_tell_differ_by_their_forces() -> None:
    sweep = sweep_of(10, rows=8, noise=0.02, backward=1.24)  # no dip, so no F_Stribeck and no fexp
    found = fx.fit(fx.Stribeck, sweep)
    numbers = named(found)["directions-differ"].numbers
    words = str(numbers["difference"])
    assert " m/s friction forward is larger than backward by -" in words
    speed = float(words.split()[1])
    assert float(numbers["lower"]) < -0.24 * 0.8 * speed < float(numbers["upper"]) < 0
    assert numbers["unit"] == "N"


@pytest.mark.slow
@pytest.mark.parametrize("law", [fx.Coulomb, fx.Stribeck])
@pytest.mark.parametrize(("rows", "noise"), [(8, 0.02), (15, 0.1), (40, 0.2)])
def test_differences_of_directions_are_found_in_19_of_20_and_none_is_invented(
    rows: int, noise: float, law: type[fx.Coulomb | fx.Stribeck]
) -> None:
    how, offsets, laws = {"rows": rows, "noise": noise}, 0, 0
    for seed in range(20):
        offset = fx.fit(law, sweep_of(seed, offset=8.0 * noise, **how))
        offsets += set(named(offset)) == {"offset-missing"}
        each = fx.fit(law, sweep_of(seed, backward=1.0 + 12.0 * noise, **how))
        laws += bool(named(each))
        assert not named(fx.fit(law, sweep_of(seed, **how)))
    assert offsets >= 19
    assert laws >= 19
