"""Small files that would become large, and shapes that would take long: each gives one sentence."""

import hashlib
import io
import json
import subprocess
import sys
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest
import scipy.io

import frictax as fx
from frictax.report.saving.fit_file import FORMAT

READS = """
import json, resource, sys, time
import jax
jax.config.update("jax_enable_x64", True)
import frictax as fx
from frictax.problems import read

def peak():
    # The system's own count begins at the memory of the process that started this one.
    try:
        with open("/proc/self/status") as status:
            return next(1024 * int(line.split()[1]) for line in status if "VmHWM" in line)
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

out = {"plain": peak()}
columns = {"time": "t", "outputs": {"mass.v": "v"}}
for path in sys.argv[1:]:
    began, kind = time.monotonic(), path.rpartition(".")[2]
    try:
        if kind == "fit":
            fx.load_fit(path)
        elif kind == "toml":
            read(path)
        else:
            named = {"csv": fx.Record.from_csv, "mat": fx.Record.from_mat}
            named.get(kind, fx.Record.from_parquet)(path, **columns)
        said = "nothing"
    except ValueError as error:
        said = str(error)
    out[path] = [said, time.monotonic() - began, peak()]
print(json.dumps(out))
"""
ZEROS = bytes(4_000_000)


def sealed(members: dict[str, bytes | int]) -> bytes:
    """A fit file with these members; a number stands for so many times `ZEROS`."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, content in members.items():
            if isinstance(content, bytes):
                archive.writestr(name, content)
                continue
            with archive.open(name, "w") as file:
                head = io.BytesIO()
                size = content * len(ZEROS) // 8
                about = {"descr": "<f8", "fortran_order": False, "shape": (size,)}
                np.lib.format.write_array_header_1_0(head, about)
                file.write(head.getvalue())
                for _ in range(content):
                    file.write(ZEROS)
        archive.comment = b"frictax, format %d, sha256 %s" % (FORMAT, b"0" * 64)
    body = out.getvalue()[:-64]
    return body + hashlib.sha256(body).hexdigest().encode()


def head(thing: object) -> bytes:
    return json.dumps({"kind": "FitResult", "own": [], "thing": thing}).encode()


def packed_mat(path: Path, content: bytes, count: int = 1) -> None:
    """A MAT-file whose one element is compressed from `count` times `content`."""
    scipy.io.savemat(path, {"t": np.zeros(3)})
    begin, stream = path.read_bytes()[:128], zlib.compressobj(1)
    size = count * len(content)
    packed = stream.compress(np.array([14, size], "<u4").tobytes())
    for _ in range(count):
        packed += stream.compress(content)
    packed += stream.flush()
    path.write_bytes(begin + np.array([15, len(packed)], "<u4").tobytes() + packed)


def bombs(folder: Path) -> dict[str, str]:
    """Files by name, and what is said of each."""
    (folder / "zeros.fit").write_bytes(sealed({"fit.json": head(0), "a.npy": 100}))
    named = [{"numpy": "a.npy"}] * 400
    (folder / "named.fit").write_bytes(sealed({"fit.json": head(named), "a.npy": 1}))
    (folder / "deep.fit").write_bytes(sealed({"fit.json": head(0)[:-2] + b"[" * 10**6}))
    (folder / "long.fit").write_bytes(sealed({"fit.json": head(0)[:-2] + b"[" + b"[]," * 10**7}))
    packed_mat(folder / "zeros.mat", ZEROS, 100)
    packed_mat(folder / "cells.mat", np.array([14, 0], "<u4").tobytes() * 500_000)
    (folder / "dots.toml").write_text("a" + ".a" * 50_000 + " = 1\n")
    (folder / "quoted.toml").write_text("['a'" + " . 'a'" * 50_000 + "]\n")
    (folder / "nested.toml").write_text("a = " + "[" * 400_000)
    (folder / "tables.toml").write_text("".join(f"[a{i}]\n" for i in range(80_000)))
    (folder / "commas.csv").write_text("t" + ",t" * 500_000 + "\n1,2\n")
    files = {
        "zeros.fit": "takes 400 MB when it is unpacked, more than 300 MB. If it is yours, give lar",
        "named.fit": "It names its arrays so often that",
        "deep.fit": "is no fit file that `found.save` wrote",
        "long.fit": "is packed in another way, or too long",
        "zeros.mat": "takes more than 300 MB when it is unpacked",
        "cells.mat": "has more than 300000 variables and cells. If it is yours, read it by `scipy",
        "dots.toml": "the key of line 1 has more than 50 parts",
        "quoted.toml": "the key of line 1 has more than 50 parts",
        "nested.toml": "is nested too deeply",
        "tables.toml": "title is missing",
        "commas.csv": "has 2 cells where the header names 500001",
    }
    try:
        import pyarrow as pa
        import pyarrow.parquet as parquet
    except ImportError:
        return files
    text = pa.DictionaryArray.from_arrays(np.zeros(100_000, np.int32), ["x" * 10_000])
    parquet.write_table(pa.table({"t": np.arange(100_000.0), "v": text}), folder / "text.parquet")
    return files | {"text.parquet": "takes more than 300 MB when it is unpacked"}


@pytest.mark.skipif(
    sys.platform == "win32",
    reason="limits of memory are measured by a module that Windows lacks (resource)",
)
def test_no_file_takes_20_seconds_or_1_gb_before_its_sentence(tmp_path: Path) -> None:
    expected = bombs(tmp_path)
    paths = [str(tmp_path / name) for name in expected]
    assert all(Path(path).stat().st_size < 35e6 for path in paths)
    done = subprocess.run(
        [sys.executable, "-c", READS, *paths], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    out = json.loads(done.stdout)
    for path, says in zip(paths, expected.values(), strict=True):
        said, seconds, peak = out[path]
        assert says in said, (path, said[:300])
        assert "\n" not in said
        assert seconds < 20.0, (path, seconds)
        assert peak < 1e9, (path, peak)


def test_files_of_ones_own_are_read_whatever_they_hold(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow", reason="needs the extra fleet")
    t = np.arange(1000.0)
    table = {"t": t, "v": np.sin(t), "note": ["a", None] * 500}
    pd.DataFrame(table).to_parquet(tmp_path / "a.parquet")
    cells = np.array([np.zeros(3), "text", [1, 2]], dtype=object)
    scipy.io.savemat(tmp_path / "a.mat", {"t": t, "v": np.sin(t), "cells": cells, "s": {"x": 1}},
                     do_compression=True)  # fmt: skip
    for read, name in ((fx.Record.from_parquet, "a.parquet"), (fx.Record.from_mat, "a.mat")):
        record = read(tmp_path / name, time="t", outputs={"mass.v": "v"})
        assert np.array_equal(record.outputs["mass.v"], np.sin(t))
