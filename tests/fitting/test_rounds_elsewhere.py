"""Rounds where SEARCH2's study did not look: several records and outputs, standard deviations,
priors, and six to eight unknowns.
"""

import numpy as np
import pytest

import frictax as fx
from rigs import T, U, block, motion

FORCES = [U, 2.5 * np.sin(2 * np.pi * 0.31 * T + 1) + 1.8 * np.sin(2 * np.pi * 0.9 * T)]
FREE = ["mass.m", "friction.f_pos", "friction.peak"]
SD = {"mass.v": 0.01, "mass.s": 0.002}
BOTH = ("mass.v", "mass.s")


def recorded(seed: int, count: int, outputs: tuple[str, ...], offset: float) -> list[fx.Record]:
    rng, out = np.random.default_rng(seed), []
    for k, force in enumerate(FORCES[:count]):
        run = motion(block(), u=force + offset * (k + 1))["mass"]
        y = {n: np.asarray(getattr(run, n[-1])) for n in outputs}
        y = {n: x + SD[n] * rng.standard_normal(T.size) for n, x in y.items()}
        sd = {n: SD[n] for n in outputs} if len(outputs) > 1 else None
        out.append(fx.Record(T, {"drive": force}, y, sd=sd, name=f"run {k}"))
    return out


def far_off(seed: int) -> fx.Mechanism:
    """Each number a third or three times what it should be."""
    f = 3.0 ** np.random.default_rng(seed + 1000).choice([-1.0, 1.0], 6)
    law = {"F_prop": 0.2 * f[2], "F_Coulomb": f[3], "F_Stribeck": 0.4 * f[4], "fexp": 5.0 * f[5]}
    return block(m=f[0], peak=1.0 + 0.2 * f[1], **law)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("count", "outputs", "more"),
    [
        pytest.param(1, BOTH, {}, id="two outputs"),
        pytest.param(2, ("mass.v",), {"own": ["inputs.drive.offset"]}, id="two records"),
        pytest.param(2, BOTH, {"own": ["inputs.drive.offset"]}, id="two of each"),
        pytest.param(1, ("mass.v",), {"priors": [fx.Normal("mass.m", 1.0, 0.05)]}, id="a prior"),
    ],
)
def test_fits_from_three_times_off_arrive_and_say_so(count, outputs, more) -> None:
    for seed in range(6):
        records = recorded(seed, count, outputs, 0.05 if "own" in more else 0.0)
        right = fx.fit(block(), records, free=FREE, rounds=0, **more)
        found = fx.fit(far_off(seed), records, free=FREE, **more)
        least = np.sum(right.full_residuals**2)
        above = (np.sum(found.full_residuals**2) / least - 1.0) * right.n
        assert (found.at_noise, above < 10.0) == (True, True), seed


@pytest.mark.slow
def test_a_fleet_which_searches_no_rounds_says_which_rows_are_not_at_the_noise() -> None:
    """A row at the noise has the right mass; one that is not may have another."""
    at_noise = []
    for seed in range(6):
        records = recorded(seed, 2, ("mass.v",), 0.0)
        table = fx.fleet(far_off(seed), records, free=FREE, jobs=1).table
        for mass, ok in zip(table["mass.m"], table["at_noise"], strict=True):
            assert abs(mass - 1.0) < 0.05 or not ok
            at_noise.append(bool(ok))
    assert 0 < sum(at_noise) < len(at_noise)
