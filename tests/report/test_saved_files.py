"""A file that is damaged, or is no fit, gives one sentence and never another number."""

import copy
import dataclasses
import hashlib
import io
import json
import os
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import frictax as fx
from frictax.report.saving.fit_file import FORMAT
from half_written import leave_half_written

from .saved_fits import SAVED, huber_sweep


@pytest.fixture(scope="module")
def sweep_fit() -> fx.FitResult:
    return huber_sweep()[0]


@pytest.fixture(scope="module")
def content(sweep_fit: fx.FitResult, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return sweep_fit.save(tmp_path_factory.mktemp("fit") / "sweep.fit").read_bytes()


def test_a_file_that_is_there_is_kept_unless_it_is_to_be_overwritten(
    sweep_fit: fx.FitResult, content: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "x.fit"
    path.write_text("precious")
    with pytest.raises(
        FileExistsError, match=r"x.fit exists. Write save\('.*x.fit', overwrite=Tru"
    ):
        sweep_fit.save(path)
    assert path.read_text() == "precious"
    assert sweep_fit.save(path, overwrite=True).read_bytes() == content
    with pytest.raises(FileNotFoundError, match="There is no folder .*nowhere for the fit"):
        sweep_fit.save(tmp_path / "nowhere" / "x.fit")
    assert [p.name for p in tmp_path.iterdir()] == ["x.fit"]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (b"", "is no fit file of frictax"),
        (b"v,f\n1,2\n", "is no fit file of frictax. Name one that `found.save` wrote."),
        (b"PK\x03\x04" + bytes(200), "is no fit file of frictax"),
    ],
    ids=["empty", "csv", "zip"],
)
def test_what_is_no_fit_file_is_told(given: bytes, says: str, tmp_path: Path) -> None:
    (tmp_path / "x.fit").write_bytes(given)
    with pytest.raises(ValueError, match=says):
        fx.load_fit(tmp_path / "x.fit")


def test_a_fit_whose_writer_was_killed_between_two_renames_is_the_new_one(
    content: bytes, sweep_fit: fx.FitResult, tmp_path: Path
) -> None:
    leave_half_written(tmp_path / "x.fit", content)
    assert fx.load_fit(tmp_path / "x.fit").values == sweep_fit.values
    assert [p.name for p in tmp_path.iterdir()] == ["x.fit"]


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="There is no file .*x.fit"):
        fx.load_fit(tmp_path / "x.fit")
    (tmp_path / "result.fit").write_bytes(b"")
    with pytest.raises(ValueError, match="is a folder, not a file: name the file. It holds result"):
        fx.load_fit(tmp_path)
    with pytest.raises(FileNotFoundError, match="Did you mean 'result.fit'?"):
        fx.load_fit(tmp_path / "resul.fit")


def refused(content: bytes, path: Path) -> str:
    """The sentence that a file with this content gives."""
    path.write_bytes(content)
    with pytest.raises(ValueError) as said:
        fx.load_fit(path)
    text = str(said.value)
    assert text.endswith(".")
    assert "\n" not in text
    assert path.name in text
    return text


def test_a_file_that_was_cut_or_of_which_bits_fell_over_is_always_noticed(
    content: bytes, tmp_path: Path
) -> None:
    rng, path = np.random.default_rng(0), tmp_path / "x.fit"
    for cut in rng.integers(0, len(content), 300):
        says = "is damaged: its end is missing" if cut > 60 else "is no fit file|is damaged"
        assert re.search(says, refused(content[:cut], path))
    for at, bit in zip(rng.integers(0, len(content), 300), rng.integers(0, 8, 300), strict=True):
        bent = bytearray(content)
        bent[at] ^= 1 << bit
        assert re.search("is damaged|is no fit file", refused(bytes(bent), path))
    assert "is damaged" in refused(content + b"\n", path)


def rewritten(
    content: bytes, change: Callable[[dict[str, bytes]], None], version: int = FORMAT
) -> bytes:
    """The file with other members, and the checksum that goes with them."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    change(members)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, whole in members.items():
            archive.writestr(name, whole)
        archive.comment = b"frictax, format %d, sha256 %s" % (version, b"0" * 64)
    body = out.getvalue()[:-64]
    return body + hashlib.sha256(body).hexdigest().encode()


def test_a_newer_format_is_told(content: bytes, tmp_path: Path) -> None:
    newer = rewritten(content, lambda members: None, 12)
    assert re.search(
        rf"is of format 12, and frictax \S+ knows up to {FORMAT}. Read it by a newer frictax.",
        refused(newer, tmp_path / "x.fit"),
    )


def test_a_member_that_is_missing_is_named(content: bytes, tmp_path: Path) -> None:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        names = archive.namelist()
    for name in names:

        def change(members: dict[str, bytes], name: str = name) -> None:
            del members[name]

        assert name in refused(rewritten(content, change), tmp_path / "x.fit")


def test_an_unknown_class_is_named(content: bytes, tmp_path: Path) -> None:
    def change(members: dict[str, bytes]) -> None:
        members["fit.json"] = members["fit.json"].replace(b'"Coulomb"', b'"os.system"')

    said = refused(rewritten(content, change), tmp_path / "x.fit")
    assert "cannot be read by 0.1.0. It holds a os.system, which this one does not have." in said


class Evil:
    def __reduce__(self) -> Any:
        return os.mkdir, ("evil",)


def test_nothing_in_a_file_is_run(
    content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    pickled = io.BytesIO()
    np.save(pickled, np.array([Evil()]), allow_pickle=True)

    def change(members: dict[str, bytes]) -> None:
        members[next(name for name in members if "costs" in name)] = pickled.getvalue()

    assert "allow_pickle=False" in refused(rewritten(content, change), tmp_path / "x.fit")
    assert not (tmp_path / "evil").exists()


def places(node: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inside = node.items() if isinstance(node, dict) else enumerate(node)
    out = [(*at, key) for key in (node if isinstance(node, dict) else range(len(node)))]
    for key, x in inside:
        if isinstance(x, dict | list):
            out += places(x, (*at, key))
    return out


@pytest.mark.parametrize("way", ["taken out", "replaced"])
def test_content_that_save_never_writes_raises_nothing_but_a_sentence(
    content: bytes, way: str, tmp_path: Path
) -> None:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        head = json.loads(archive.read("fit.json"))
    rng, everywhere = np.random.default_rng(1), places(head)
    path, sentences = tmp_path / "x.fit", []
    for k in rng.integers(0, len(everywhere), 60):
        changed = copy.deepcopy(head)
        *way_there, last = everywhere[k]
        node: Any = changed
        for step in way_there:
            node = node[step]
        if way == "taken out":
            del node[last]
        else:
            node[last] = [7, "x", None, {"jax": "y"}, [[]], {"is": "Mass", "has": {}}][k % 6]

        def change(members: dict[str, bytes], changed: Any = changed) -> None:
            members["fit.json"] = json.dumps(changed).encode()

        path.write_bytes(rewritten(content, change))
        try:
            fx.load_fit(path)
        except ValueError as why:
            sentences.append(str(why))
    assert len(sentences) > 20
    assert all(path.name in says and "\n" not in says for says in sentences)


WRONG = [7, "x", None, True, [], {"jax": 3.0, "dtype": "<f8"}, {"is": "Mass", "has": {}}]


def asked(found: fx.FitResult) -> None:
    """What a user asks of a fit that was loaded, without simulating anything."""
    _ = str(found), repr(found), found.values, found.intervals, found.to_json(), found.warnings
    _ = found.residuals, found.weighted_residuals, found.correlation, found.standard_errors
    _ = found.model, found.identifiability, str(found.uncertainty()), found._repr_html_()


@pytest.mark.slow
def test_a_fit_with_wrong_types_and_a_right_checksum_is_refused_when_it_is_loaded(
    tmp_path: Path,
) -> None:
    content = SAVED.read_bytes()
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        head = json.loads(archive.read("fit.json"))
    everywhere, path, sentences = places(head["thing"], ("thing",)), tmp_path / "x.fit", list[str]()
    every = [(at, value) for at in everywhere for value in WRONG]
    for (*way, last), value in every:
        changed = copy.deepcopy(head)
        node: Any = changed
        for step in way:
            node = node[step]
        node[last] = value

        def change(members: dict[str, bytes], changed: Any = changed) -> None:
            members["fit.json"] = json.dumps(changed).encode()

        path.write_bytes(rewritten(content, change))
        try:
            found = fx.load_fit(path)
        except ValueError as why:
            sentences.append(str(why))
        else:
            asked(found)
    assert len(sentences) > 0.7 * len(every)
    assert all(path.name in says and "\n" not in says for says in sentences)


def test_text_that_a_terminal_would_obey_is_refused(content: bytes, tmp_path: Path) -> None:
    def change(members: dict[str, bytes]) -> None:
        members["fit.json"] = members["fit.json"].replace(b"N.s/m", b"N\\u001b[2J")

    assert r"'N\x1b[2J', whose control" in refused(rewritten(content, change), tmp_path / "x.fit")


def test_with_numbers_of_32_bits_nothing_is_read(sweep_fit: fx.FitResult, tmp_path: Path) -> None:
    path = sweep_fit.save(tmp_path / "x.fit")
    with jax.enable_x64(False), pytest.raises(ValueError, match="`load_fit` needs 64 bit numbers"):
        fx.load_fit(path)


def test_what_no_file_can_hold_is_said_before_anything_is_written(
    sweep_fit: fx.FitResult, tmp_path: Path
) -> None:
    odd = copy.copy(sweep_fit)
    object.__setattr__(odd, "rms", {"sweep": object()})
    with pytest.raises(ValueError, match=r"rms\.sweep is a object, which no file can hold"):
        odd.save(tmp_path / "x.fit")
    objects = dataclasses.replace(sweep_fit, costs=np.array([{}, {}]))
    with pytest.raises(ValueError, match=r"costs is an array of object, which no file can hold"):
        objects.save(tmp_path / "x.fit")
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_the_first_saved_fit_has_a_report_and_lacks_no_term(tmp_path: Path) -> None:
    """An autoregression explains its residuals, a sine, except for rounding errors."""
    found = fx.load_fit(SAVED)
    assert not found.missing().found
    assert found.report(tmp_path / "axis.html").exists()
