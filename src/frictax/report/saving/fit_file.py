"""Save a fit in one file: a zip archive of `fit.json` and arrays (`.npy`) with a checksum.

The archive's comment contains the format and the SHA-256 of all bytes before the checksum. A
damaged file is therefore detected before its content is read.
"""

import hashlib
import io
import json
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np

import frictax
from frictax.analysis import Posterior
from frictax.files.replacing import check_target, finish_interrupted, write_whole
from frictax.fitting import FitResult
from frictax.measurements import Record, Sweep
from frictax.measurements.reading.columns import existing_file
from frictax.parameters import check

from .things import Packed, Unpacked, name_of, own_code_of

# Version of the file format. The version increases by 1 when a stored class gets, loses or renames
# a field. tests/report/test_formats.py checks this rule.
FORMAT = 7
_HEAD = "fit.json"
_END = re.compile(rb"frictax, format (\d+), sha256 ([0-9a-f]{64})\Z")
_READ_BY = {"FitResult": "load_fit", "Posterior": "load_posterior"}
_LARGEST = 3e8  # [bytes] default of `largest`; reading such a file takes at most 1 GB of memory


def save_fit(found: FitResult, path: str | Path, *, overwrite: bool = False) -> Path:
    """Write the fit to one file, from which `load_fit` restores every number bit for bit.

    The file is a zip archive: `fit.json` and arrays that numpy reads (``np.load(path)``). The file
    contains the machine, the records, the estimates and their errors. It does not contain code,
    only the names of classes and functions of the user. Therefore a file from an unknown source can
    be opened safely.

    **Raises:** `FileExistsError` for an existing file, unless `overwrite`; `OSError` if the file
    cannot be written; `ValueError` for an object that cannot be stored. An existing file is
    replaced only when the new file is complete.

    **Example:** at `load_fit`.
    """
    return _write(found, path, overwrite)


def save_posterior(drawn: Posterior, path: str | Path, *, overwrite: bool = False) -> Path:
    """Write posterior samples and their fit to a file. `load_posterior` reads this file."""
    return _write(drawn, path, overwrite)


def load_fit(path: str | Path, *, known: Any = (), largest: int | float = _LARGEST) -> FitResult:
    """Read a fit that `found.save(path)` wrote. The result has all methods of a fit.

    Estimates, standard errors, intervals and notices are read from the file. The installed version
    of frictax computes all further results, such as `predicted` and `profile`.

    Reading does not run code of the file. The function finds your own classes and functions by name
    in `known`. It computes residuals with this code and compares them with the stored residuals.

    **Arguments:**

    - `known`: a list of your own classes and functions in the fit, or a machine that contains them.
      Functions without a name (``lambda``) must occur in `known` in the same order as in the fit.
    - `largest`: allowed size of all arrays of the file [bytes]. Increase this limit for a large fit
      of your own.

    **Raises:** `FileNotFoundError`, or `ValueError` with one sentence:

    - The file is not a fit file, is damaged, or has a newer format.
    - Code of your own is missing, or has changed since the fit was saved.
    - JAX uses 32-bit numbers.

    >>> import frictax as fx
    >>> v = [0.5, 1.0, 2.0, 4.0, 8.0]
    >>> f = [6.12, 6.19, 6.41, 6.78, 7.61]

    >>> found = fx.fit(fx.Coulomb, fx.Sweep(v, f, velocity_unit="m/s", force_unit="N"))
    >>> print(found.save("bench.fit"))
    bench.fit
    >>> again = fx.load_fit("bench.fit")
    >>> again.values == found.values, again.intervals == found.intervals
    (True, True)
    """
    return _read(path, known, FitResult, largest)


def load_posterior(
    path: str | Path, *, known: Any = (), largest: int | float = _LARGEST
) -> Posterior:
    """Read posterior samples that `drawn.save(path)` wrote. The arguments are those of `load_fit`.

    **Example:** `load_fit` has an example for a fit.
    """
    return _read(path, known, Posterior, largest)


def fit_bytes(thing: FitResult | Posterior) -> bytes:
    packed = Packed()
    inside = packed.pack(thing, "")
    own = [
        {"name": name_of(x), "module": getattr(x, "__module__", None), "class": isinstance(x, type)}
        for x in packed.own
    ]
    head = {"kind": type(thing).__name__, "frictax": frictax.__version__, "own": own}
    whole, out = json.dumps(head | {"thing": inside}, indent=1, allow_nan=False), io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        _put(archive, _HEAD, whole.encode("ascii"))
        for member, array in packed.arrays.items():
            content = io.BytesIO()
            np.save(content, array, allow_pickle=False)
            _put(archive, member, content.getvalue())
        archive.comment = b"frictax, format %d, sha256 %s" % (FORMAT, b"0" * 64)
    body = out.getvalue()[:-64]
    return body + hashlib.sha256(body).hexdigest().encode("ascii")


def _put(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    # `ZipInfo` without a date uses 1980-01-01, so equal fits give equal bytes.
    entry = zipfile.ZipInfo(name)
    entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
    archive.writestr(entry, content)


def _write(thing: FitResult | Posterior, path: str | Path, overwrite: bool) -> Path:
    target = check_target(path, "the fit")
    if target.exists() and not overwrite:
        raise FileExistsError(
            f"{path} exists. Write save({str(path)!r}, overwrite=True) to replace it, or name"
            " another file."
        )
    write_whole(target, fit_bytes(thing), replace=overwrite)
    return Path(path)


def _read(path: str | Path, known: Any, kind: type, largest: int | float) -> Any:
    if jax.dtypes.canonicalize_dtype(float) != np.float64:
        raise ValueError(
            f"`{_READ_BY[kind.__name__]}` needs 64 bit numbers, got 32: the fit would not be the"
            ' same. Write jax.config.update("jax_enable_x64", True) before the first computation.'
        )
    finish_interrupted(Path(path).parent, reading=True)
    head, arrays, of_format = _read_sealed(existing_file(path, ".fit"), largest)
    if (is_a := head.get("kind")) != kind.__name__:
        if is_a not in _READ_BY:
            raise ValueError(f"{path} holds no fit, but a {is_a}. It was not written by `save`.")
        raise ValueError(f"{path} holds a {is_a}: read it by `fx.{_READ_BY[is_a]}`.")
    thing, off = None, 0.0
    try:
        # `own`: code in `known` that the file needs; `lacking`: needed code not in `known`.
        left, own, lacking = own_code_of(known), [], []
        for need in head["own"]:
            kind_and_name = need["class"], need["name"]
            fits = [x for x in left if (isinstance(x, type), name_of(x)) == kind_and_name]
            own += fits[:1]
            lacking += [] if fits else [need]
            left = [x for x in left if not fits or x is not fits[0]]
        if not lacking:
            unpacked = Unpacked(arrays, own, of_format < FORMAT, largest)
            thing, off = _restore(unpacked, head["thing"])
    except Exception as why:  # A file of another program can cause any error.
        says = str(why) if isinstance(why, ValueError) else f"({type(why).__name__}: {why})"
        raise ValueError(
            f"{path}, written by frictax {head.get('frictax')}, cannot be read by"
            f" {frictax.__version__}. {' '.join(says.split()).rstrip('.')}."
        ) from why
    if lacking:
        names = ", ".join(f"{n['name']} of {n['module']}" for n in lacking)
        plain = all(n["name"].isidentifier() for n in lacking)
        hand = f"[{', '.join(n['name'] for n in lacking)}]" if plain else "<the machine fitted>"
        raise ValueError(
            f"{path} needs code that is not part of frictax: {names}. Pass it:"
            f" {_READ_BY[kind.__name__]}({str(path)!r}, known={hand})."
        )
    # `off`: rms of (stored residuals - residuals of the user's code) / noise.
    if not off <= 0.02:
        names = " or ".join(map(name_of, own))
        raise ValueError(
            f"{path} was fitted with another {names} than you passed: the residuals differ by"
            f" {off:.2g} times the noise. Pass the code that was fitted."
        )
    return thing


def _read_sealed(
    path: Path, largest: int | float
) -> tuple[dict[str, Any], Mapping[str, np.ndarray], int]:
    """Check size and checksum of a file; return `fit.json`, name -> array, and format number."""
    _check_size(path, path.stat().st_size, largest)
    body, again = path.read_bytes(), "Take the file again from where it came."
    end = _END.search(body[-120:])
    if end is None:
        if _HEAD.encode() in body[:60]:
            raise ValueError(f"{path} is damaged: its end is missing. {again}")
        raise ValueError(f"{path} is no fit file of frictax. Name one that `found.save` wrote.")
    if hashlib.sha256(body[:-64]).hexdigest().encode() != end[2]:
        raise ValueError(f"{path} is damaged: its checksum is not that of its content. {again}")
    if int(end[1]) > FORMAT:
        raise ValueError(
            f"{path} is of format {int(end[1])}, and frictax {frictax.__version__} knows up to"
            f" {FORMAT}. Read it by a newer frictax."
        )
    try:
        with zipfile.ZipFile(io.BytesIO(body)) as archive:
            members = archive.infolist()
            _check_size(path, sum(one.file_size for one in members), largest)
            arrays = {
                one.filename: np.load(io.BytesIO(_content(archive, one)), allow_pickle=False)
                for one in members
                if one.filename != _HEAD
            }
            # The largest known `fit.json` has 1 MB, so a limit of 16 MB is enough.
            head = json.loads(_content(archive, archive.getinfo(_HEAD), most=16_000_000))
        own = [
            {"name": str(n["name"]), "module": n["module"], "class": n["class"]}
            for n in head["own"]
        ]
        return {**head, "kind": str(head["kind"]), "own": own}, arrays, int(end[1])
    except _TooLarge:
        raise
    except Exception as why:  # The checksum is right, but `save` did not write it.
        says = " ".join(str(why).split())
        raise ValueError(f"{path} is no fit file that `found.save` wrote: {says}.") from why


class _TooLarge(ValueError):
    """Exception for a file whose content is larger than `largest`."""


def _check_size(path: Path, size: int | float, largest: int | float) -> None:
    if not size <= largest:
        raise _TooLarge(
            f"{path} takes {size / 1e6:.0f} MB when it is unpacked, more than {largest / 1e6:.0f}"
            f" MB. If it is yours, give largest={1.1 * size:.1e}."
        )


def _content(
    archive: zipfile.ZipFile, member: zipfile.ZipInfo, most: int | float = np.inf
) -> bytes:
    """Return the content of a member of the archive; raise `ValueError` if its length is wrong."""
    methods = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # unpacking can stop at `file_size` bytes
    if member.compress_type not in methods or member.file_size > most:
        raise ValueError(f"its {member.filename} is packed in another way, or too long")
    with archive.open(member) as file:
        whole = file.read(member.file_size)
        if len(whole) < member.file_size or file.read(1):
            raise ValueError(f"its {member.filename} is not as long as it says")
    return whole


def _restore(unpacked: Unpacked, packed: Any) -> tuple[Any, float]:
    """Restore the object of a file. Also return the rms difference between the file's residuals and
    residuals computed by the user's code, divided by the noise; 0 without user's code.
    """
    thing = unpacked.unpack(packed)
    found = thing if isinstance(thing, FitResult) else thing.found
    check(found.start)
    _ = found.warnings, thing.warnings  # raises an exception for a notice with an unknown code
    if not unpacked.is_older:  # An older file may lack a field that printing needs.
        for label, x in found.records.items():
            if not isinstance(x, Record | Sweep):
                raise ValueError(f"Its record {label!r} is a {type(x).__name__}")
        # An inconsistent fit raises an exception here, and not in a later print or export.
        _ = str(found), found.to_json(), found.correlation, found.residuals, str(thing)
    if not unpacked.own:
        return thing, 0.0
    left, size = [], []
    for label, one in zip(found.records, found.problem.prepared, strict=True):
        w, measured = np.asarray(one.weight), np.asarray(one.measured)
        left.append(np.ravel(np.where(w > 0, w * (found.predicted(label) - measured), 0.0)))
        size.append(np.ravel(w * measured))
    off, whole = (
        float(np.sqrt(np.mean(np.square(x))))
        for x in (np.concatenate(left) - found.full_residuals, np.concatenate(size))
    )
    # The second term of the divisor prevents a division by 0 if a fit is exact.
    return thing, off / (found.noise_scale + 1e-4 * whole)
