"""What a user may get wrong in the file of a motion record; each is told in a sentence or two with
object, rule, value and remedy.
"""

import builtins
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.io import savemat

import frictax as fx
from wrong_records import FRAME, GOOD, Case, F, Q, T, assert_told

pytestmark = pytest.mark.usefixtures("as_a_user_runs_it")


def csv(text: str = GOOD, **changes: Any) -> Case:
    def read(folder: Path) -> object:
        (folder / "run.csv").write_text(text, encoding="utf-8")
        given: dict[str, Any] = {"time": "t", "inputs": {"drive": "F"}, "outputs": {"mass.s": "q"}}
        return fx.Record.from_csv(folder / "run.csv", **given | changes)

    return read


def mat(content: dict[str, Any] | bytes, **changes: Any) -> Case:
    def read(folder: Path) -> object:
        path = folder / "run.mat"
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            savemat(path, content)
        given: dict[str, Any] = {"time": "t", "outputs": {"mass.s": "q"}}
        return fx.Record.from_mat(path, **given | changes)

    return read


def parquet_without_pyarrow(folder: Path) -> object:
    FRAME.to_parquet(folder / "run.parquet")
    found = builtins.__import__

    def missing(name: str, *rest: Any) -> Any:
        if name.split(".")[0] in ("pyarrow", "fastparquet"):
            raise ImportError(name)
        return found(name, *rest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(builtins, "__import__", missing)
        return fx.Record.from_parquet(folder / "run.parquet", time="t", outputs={"mass.s": "q"})


def bytes_as(name: str, content: bytes, read: Callable[..., object]) -> Case:
    def act(folder: Path) -> object:
        (folder / name).write_bytes(content)
        return read(folder / name, time="t", outputs={"mass.s": "q"})

    return act


HDF5 = (
    b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(124)
    + b"\x00\x02IM"
    + b"\x89HDF\r\n\x1a\n"
    + bytes(512)
)
VARIABLES = {"t": T, "q": Q}

# What is done, and the pieces of what must be said.
CASES: dict[str, tuple[Case, list[str]]] = {
    # text files
    "a file that is not there": (
        lambda p: (csv()(p), fx.Record.from_csv(p / "runs.csv", time="t", outputs={"mass.s": "q"})),
        ["no file", "Did you mean 'run.csv'"],
    ),  # fmt: skip
    "a folder": (
        lambda p: fx.Record.from_csv(p, time="t", outputs={"mass.s": "q"}),
        ["is a folder", "name the file"],
    ),
    "an empty file": (csv(""), ["run.csv is empty", "line of column names"]),
    "a header alone": (csv("t,F,q\n"), ["run.csv", "no rows", "exported"]),
    "semicolons": (csv(GOOD.replace(",", ";")), ["run.csv", 'delimiter=";"']),
    "a row of units": (
        csv(GOOD.replace("\n", "\ns,N,m\n", 1)),
        ["run.csv, line 2", "'t'", "'s'", "holds units", "begin it with #"],
    ),
    "a value that a spreadsheet lacks": (
        csv(GOOD + "#N/A,1.0,0.5\n"),
        ["line 13", "'t'", "no number ('#N/A')", "Delete the row"],
    ),
    "a number as Python writes it": (
        csv(GOOD + "1.1,1_000,0.5\n"),
        ["line 13", "'F'", "'1_000'", "Correct the cell"],
    ),
    "spaces between the columns": (
        csv(GOOD.replace(",", " ")),
        ["run.csv", "separated by spaces", 'delimiter=" "'],
    ),
    "a word for the delimiter": (
        csv(delimiter="tab"),
        ["`delimiter`", "one character", "'tab'", "pandas.read_csv"],
    ),
    "no decimal sign": (csv(decimal=""), ["`decimal` must be", "''", "Leave it out"]),
    "a number for a path": (
        lambda _: fx.Record.from_csv(3, time="t", outputs={"mass.s": "q"}),  # pyright: ignore
        ["by its path", "got 3", "'run.csv'"],
    ),
    "a path of no length": (
        lambda _: fx.Record.from_csv("", time="t", outputs={"mass.s": "q"}),
        ["by its path", "got ''", "'run.csv'"],
    ),
    "a name that no file can have": (
        lambda _: fx.Record.from_csv("a" * 200 + ".csv" * 20, time="t", outputs={"mass.s": "q"}),
        ["no file aaa"],
    ),
    "dates in a text file": (
        csv(GOOD.replace("\n0.0,", "\n2026-01-15 10:28,", 1)),
        ["line 2", "'t'", "2026-01-15 10:28", "Write seconds"],
    ),
    "an empty cell": (
        csv(GOOD + "1.1,,0.5\n"),
        ["run.csv, line 13", "'F'", "no number", "Delete the row"],
    ),
    "a repeated line": (
        csv(GOOD + GOOD.splitlines()[-1] + "\n"),
        ["1 s twice", "line 13 of run.csv", "Drop them"],
    ),
    "an unsorted file": (
        csv(GOOD + "0.55,1,2\n"),
        ["0.55 s after 1 s", "line 13 of run.csv", "Sort the rows"],
    ),
    # MAT and Parquet
    "a MAT-file of version 7.3": (mat(HDF5), ["run.mat", "version 7.3", "save('run.mat', '-v7')"]),
    "an empty MAT-file": (mat(b""), ["run.mat", "not a MAT-file", "'-v7'"]),
    "text called .mat": (mat(b"t,q\n1,2\n" * 100), ["run.mat", "not a MAT-file", "'-v7'"]),
    "a MAT-file cut short": (
        lambda p: (mat(VARIABLES)(p), mat((p / "run.mat").read_bytes()[:200])(p)),
        ["run.mat", "not a MAT-file"],
    ),
    "a MAT-file without variables": (mat({}), ["run.mat holds no variables", "how it was saved"]),
    "a variable that is not there": (
        mat(VARIABLES, outputs={"mass.s": "Qm"}),
        ["run.mat has no column 'Qm'", "It has: t, q"],
    ),
    "variables of two lengths": (
        mat({**VARIABLES, "q": Q[:5]}),
        ["'q' of run.mat", "time (11)", "got 5", "Drop the rows"],
    ),
    "a single value": (
        mat({**VARIABLES, "q": 35.15}),
        ["'q' of run.mat", "time (11)", "got 1", "`gain`"],
    ),
    "a matrix": (
        mat({**VARIABLES, "q": np.stack([Q, F, Q])}),
        ["'q' of run.mat", "'mass.s'", "3 columns", "q(1,:), q(2,:), q(3,:)", "Choose one column"],
    ),
    "a text in a MAT-file": (
        mat({**VARIABLES, "q": "position"}),
        ["'q' of run.mat", "numbers", "Convert"],
    ),
    "a cell in a MAT-file": (
        mat({**VARIABLES, "q": np.array([Q, "x"], dtype=object)}),
        ["'q' of run.mat", "'mass.s'", "2 columns", "q{1}, q{2}", "Choose one column"],
    ),
    "a text in a cell of a MAT-file": (
        mat({**VARIABLES, "q": np.array([Q, "x"], dtype=object)}, outputs={"mass.s": "q{2}"}),
        ["'q{2}' of run.mat", "numbers", "Convert"],
    ),
    "text called .parquet": (
        bytes_as("run.parquet", b"t,q\n", fx.Record.from_parquet),
        ["run.parquet", "not a Parquet file", "to_parquet"],
    ),
    "Parquet without pyarrow": (
        parquet_without_pyarrow,
        ["run.parquet", "pyarrow", "pip install pyarrow", "CSV"],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_mistake_is_told_with_object_rule_value_and_remedy(name: str, tmp_path: Path) -> None:
    assert_told(CASES[name], tmp_path)
