"""The free decays of a servo's pendulum, and what its published parameters make of them."""

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from frictax.data import registry


@pytest.fixture(scope="module")
def records(root: Path) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(root / "identification" / "xl330_pendulum"))
        yield importlib.import_module("records")


@pytest.fixture
def raw(data_folder: Path) -> Path:
    return data_folder / "xl330_pendulum" / "raw"


def test_a_missing_folder_is_told_with_its_remedy(
    records: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "_places", lambda name: [tmp_path / name])
    with pytest.raises(
        FileNotFoundError,
        match=r"'xl330_pendulum' cannot be used: it is not here.*frictax data fetch xl330_pendulum",
    ):
        records.decays()


def test_the_decays_begin_at_torque_off_and_end_at_rest(records: Any, raw: Path) -> None:
    found, starts = records.decays(raw), records.starts(raw)
    assert list(found) == [100, 200, 400]
    for (kp, record), stop in zip(found.items(), (-0.02608, -0.02761, -0.03528), strict=True):
        assert record.t[0] == 0.0
        assert record.duration == pytest.approx(4.0, abs=0.01)
        assert record.rate == pytest.approx(284.5, abs=2.0)
        assert not record.inputs
        phi = record.outputs["phi"]
        assert phi[0] == starts[kp][0]
        assert np.all(phi[record.t > 3.0] == phi[-1])
        assert phi[-1] == pytest.approx(stop, abs=1e-5)
    np.testing.assert_allclose(
        [starts[k] for k in found],
        [(-0.34208, 0.024), (-0.59059, -0.336), (-0.65654, 0.024)],
        atol=2e-3,
    )


@pytest.mark.slow
def test_published_parameters_swing_too_far_and_an_offset_brings_the_dead_stops_into_the_band(
    records: Any, raw: Path
) -> None:
    plain, shifted = (
        [records.compared(r, records.starts(raw)[kp], o) for kp, r in records.decays(raw).items()]
        for o in (0.0, 0.03)
    )
    np.testing.assert_allclose([row.rms for row in plain], [0.0344, 0.0569, 0.0671], atol=2e-4)
    np.testing.assert_allclose([row.rms for row in shifted], [0.0268, 0.0359, 0.0483], atol=2e-4)
    assert [row.held for row in plain] == [True, False, False]
    assert all(row.held for row in shifted)
    for row in plain:
        assert row.phi.max() > row.record.outputs["phi"].max() + 0.05
        assert np.isfinite(row.stopped)
