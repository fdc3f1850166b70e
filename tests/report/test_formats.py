"""A format's number rises with its fields, and files of older formats are read."""

import dataclasses
import enum
import hashlib
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

import frictax as fx
from formats import LISTED, check_fields, keys
from frictax.report.json_text import FORMAT as JSON_FORMAT
from frictax.report.saving import fit_file, things

from .saved_fits import SAVED

OLD = sorted(SAVED.parent.glob("format_*/*.fit"))
# What no fit holds: results that are computed from one, or beside one.
RESULTS = """
    Branch ComparedLaw ComparedStructure Comparison CycleEvent CycleNumbers Design Drift Filtered
    Finding Fleet LimitCycle Linearization Margins Missing MissingTerm Outlook Population Profile
    ProfilePair ResidualStudy StructureComparison Trajectory Verdicts
""".split()


def stored() -> dict[str, tuple[str, ...]]:
    """Each class whose name a fit file may hold, and its fields or members."""
    names = {*things._INSIDE, *(name for name in dir(fx) if things._known(name))} - {*RESULTS}
    out: dict[str, tuple[str, ...]] = {"answers of a fit": things._ANSWERS}
    for name in names:
        cls = things._known(name)
        is_enum = issubclass(cls, enum.Enum)
        out[name] = tuple(cls.__members__) if is_enum else things._fields(cls)
    return out


def test_the_format_of_saved_fits_rises_with_the_fields_of_all_that_they_hold() -> None:
    fields = {f"{name}.{field}" for name, inside in stored().items() for field in inside}
    check_fields("fit file", "report/saving/fit_file.py:FORMAT", fit_file.FORMAT, fields)


@pytest.mark.parametrize("name", ["huber_sweep", "tied_and_known_by_factors"])
def test_the_format_of_json_rises_with_its_keys(name: str) -> None:
    found = fx.load_fit(SAVED.parent / "format_1" / f"{name}.fit")
    kind = "JSON of a sweep" if name == "huber_sweep" else "JSON of a machine"
    content = keys(json.loads(found.to_json()))
    check_fields(kind, "report/json_text.py:FORMAT", JSON_FORMAT, content)


def test_a_field_that_is_added_without_a_rise_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FRICTAX_NEW_FORMATS", raising=False)
    kept = json.loads(LISTED.read_text())["fit file"]["fields"]
    check_fields("fit file", "X", fit_file.FORMAT, kept)
    with pytest.raises(AssertionError, match=r"other fields than format .: \+ Mass.colour. Set X"):
        check_fields("fit file", "X", fit_file.FORMAT, {*kept, "Mass.colour"})
    with pytest.raises(AssertionError, match=r": - Mass.m. Set X to"):
        check_fields("fit file", "X", fit_file.FORMAT, {*kept} - {"Mass.m"})
    with pytest.raises(AssertionError, match="Run this test with FRICTAX_NEW_FORMATS=1"):
        check_fields("fit file", "X", fit_file.FORMAT + 1, {*kept, "Mass.colour"})


@pytest.mark.parametrize("path", OLD, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_files_of_older_formats_are_read_with_the_numbers_that_they_hold(
    path: Path, tmp_path: Path
) -> None:
    found = fx.load_fit(path)
    with zipfile.ZipFile(path) as archive:
        head = json.loads(archive.read("fit.json"))
    estimates = head["thing"]["found"]["estimates"]
    assert [e["has"]["value"] for e in estimates] == [e.value for e in found.estimates]
    assert getattr(found.problem.engine, "tolerance", None) is None  # steps as they were
    again = fx.load_fit(found.save(tmp_path / "x.fit"))
    assert str(again) == str(found)
    assert again.save(tmp_path / "y.fit").read_bytes() == (tmp_path / "x.fit").read_bytes()


def older(path: Path, out: Path, cls: str, field: str, version: int) -> Path:
    """The file without a field of a class, as a version wrote it that did not know the field."""

    def strip(node: Any) -> None:
        if isinstance(node, dict):
            if node.get("is") == cls:
                node["has"].pop(field)
            for x in node.values():
                strip(x)
        elif isinstance(node, list):
            for x in node:
                strip(x)

    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    head = json.loads(members["fit.json"])
    strip(head)
    members["fit.json"] = json.dumps(head).encode()
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, whole in members.items():
            archive.writestr(name, whole)
        archive.comment = b"frictax, format %d, sha256 %s" % (version, b"0" * 64)
    body = content.getvalue()[:-64]
    out.write_bytes(body + hashlib.sha256(body).hexdigest().encode())
    return out


@pytest.mark.parametrize(
    ("cls", "field", "expected"),
    [("FitResult", "seconds", None), ("FitResult", "costs", None), ("OnSamples", "substeps", 1)],
)
def test_a_field_that_an_older_file_lacks_is_its_default_or_none(
    cls: str, field: str, expected: Any, tmp_path: Path
) -> None:
    path = SAVED.parent / "format_1" / "windows_with_priors.fit"
    found = fx.load_fit(older(path, tmp_path / "x.fit", cls, field, fit_file.FORMAT - 1))
    of = found if cls == "FitResult" else found.problem.engine
    assert getattr(of, field) == expected
    assert found.values.keys() == fx.load_fit(path).values.keys()
    if expected is None:  # a file of today that lacks a field was not written by `save`
        today = older(path, tmp_path / "y.fit", cls, field, fit_file.FORMAT)
        with pytest.raises(ValueError, match=f"Its {cls} lacks {field}, which the class here has"):
            fx.load_fit(today)


def test_what_a_field_meant_before_it_existed_goes_before_its_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(things.BEFORE, ("OnSamples", "substeps"), 3)
    path = SAVED.parent / "format_1" / "windows_with_priors.fit"
    for version, expected in ((fit_file.FORMAT - 1, 3), (fit_file.FORMAT, 1)):
        found = fx.load_fit(older(path, tmp_path / "x.fit", "OnSamples", "substeps", version))
        assert found.problem.engine.substeps == expected


def test_a_class_of_ones_own_that_has_another_field_is_refused_in_every_format() -> None:
    @dataclasses.dataclass
    class Mine:
        a: int
        b: int

    packed = {"is": 0, "has": {"a": 1}}
    for is_older in (False, True):
        with pytest.raises(ValueError, match="Its Mine lacks b"):
            things.Unpacked({}, [Mine], is_older).unpack(packed)
