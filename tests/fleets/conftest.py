"""A fleet of blocks pushed to and fro, each over a friction of its own, as records and as files."""

from pathlib import Path

import numpy as np
import pytest

import frictax as fx
from blocks import PROBLEM, block
from frictax.fleets import chunks


@pytest.fixture(scope="session")
def friction() -> np.ndarray:
    """The truth of each."""
    return np.random.default_rng(0).uniform(0.7, 1.2, 10)


@pytest.fixture(scope="session")
def records(friction: np.ndarray) -> list[fx.Record]:
    t, rng = np.linspace(0.0, 2.0, 101), np.random.default_rng(1)
    out = []
    for i, F in enumerate(friction):
        force = rng.uniform(2.0, 3.0) * np.sin(rng.uniform(3.0, 5.0) * t + rng.uniform(0.0, 6.0))
        v = np.asarray(fx.simulate(block(F, 1.0, fx.Sampled(t, force)), t)["mass"].v)
        v = v + 0.003 * rng.standard_normal(t.size)
        out.append(fx.Record(t, {"drive": force}, {"mass.v": v}, name=f"b{i + 1}"))
    return out


@pytest.fixture
def chunks_of_four(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "_CHUNK_SIZE", 4)


@pytest.fixture
def folder(tmp_path: Path, records: list[fx.Record]) -> Path:
    """A problem file beside a folder with a file for each record."""
    (tmp_path / "problem.toml").write_text(PROBLEM)
    (tmp_path / "records").mkdir()
    for record in records:
        table = np.column_stack([record.t, record.inputs["drive"], 1e3 * record.outputs["mass.v"]])
        path = tmp_path / "records" / f"{record.name}.csv"
        np.savetxt(path, table, delimiter=",", header="t,F,v", comments="", fmt="%.12g")
    return tmp_path
