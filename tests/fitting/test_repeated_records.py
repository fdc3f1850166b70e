"""The same samples given as two records of one fit count once."""

import jax
import numpy as np
import pytest

import frictax as fx
from frictax.measurements.record import replace_fields

T = np.linspace(0.0, 2.0, 201)


@pytest.mark.slow
def test_the_same_samples_given_twice_count_once():
    noise = 0.01 * np.random.default_rng(0).standard_normal(T.size)
    one = fx.Record(T, outputs={"mass.v": 1.0 - 0.4 * T + noise}, name="one")
    other = fx.Record(T, outputs={"mass.v": 1.0 - 0.4 * T + noise[::-1]}, name="other")
    block = fx.Mechanism(
        mass=fx.Mass(m=1.0, v=1.0),
        friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=0.3)),
    )
    own = {"mass.v": [1.0, 0.9, 1.1]}
    free = ["friction.f_pos.F_Coulomb"]
    found = fx.fit(block, [one, replace_fields(one, name="again"), other], free=free, own=own)
    once = fx.fit(block, [one, other], free=free, own={"mass.v": [1.0, 1.1]})
    (notice,) = [n for n in found.notices_at_hand if n.code == "record-twice"]
    assert (notice.subject, notice.numbers["first"]) == ("again", "one")
    assert list(found.records) == ["one", "other"]
    assert found.standard_errors == pytest.approx(once.standard_errors, rel=1e-6)


def test_records_that_lack_samples_at_different_places_share_one_program():
    block = fx.Mechanism(mass=fx.Mass(m=1.0, v=1.0))
    shapes = set()
    for seed in range(3):
        dropped = np.random.default_rng(seed).choice(np.arange(1, T.size - 1), 40, replace=False)
        t = np.delete(T, dropped)
        assert np.diff(t).max() > 2.5 * np.median(np.diff(t))
        prepared = fx.FreeRun().prepare(block, fx.Record(t, outputs={"mass.v": 1.0 - 0.4 * t}))
        shapes.add(jax.tree.structure(prepared))
    assert len(shapes) == 1
