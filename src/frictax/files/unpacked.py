"""Size of compressed files, counted before they are unpacked: 3 MB can contain 6 GB."""

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

_LARGEST = 3e8  # [bytes] of numbers and texts, which take 1 GB while they are read
_TIMES = 4.0  # [size of the file] largest unpacked size of a larger file
_MATRICES = 300_000  # variables, cells and fields of a MAT-file, each of which takes up to 1 kB
_STEP = 1 << 20  # [bytes] that are unpacked at a time
_HEAD, _COMPRESSED, _MATRIX = (
    128,
    15,
    14,
)  # format of MAT-files: bytes of the head, types of elements


def check_size(path: Path, size: int | float, remedy: str) -> None:
    """Raise `ValueError` if a file of this name takes too much memory when it is unpacked.

    **Arguments:** `size` [bytes] that it takes; `remedy`: how it can be read nevertheless.
    """
    most = max(_LARGEST, _TIMES * path.stat().st_size)
    if size > most:
        raise ValueError(
            f"{path.name} takes more than {most / 1e6:.0f} MB when it is unpacked, for"
            f" {path.stat().st_size / 1e6:.2g} MB on the disk. {remedy}"
        )


def check_mat(path: Path) -> None:
    """Raise `ValueError` if a MAT-file becomes too large, or has too many variables and cells."""
    remedy = "If it is yours, read it by `scipy.io.loadmat` and hand its arrays to `Record`."
    size, matrices = 0, 0
    for part in _mat_parts(path):
        size += len(part)
        check_size(path, size, remedy)
        words = np.frombuffer(part[: len(part) // 8 * 8], np.uint32)[::2]
        matrices += int(np.sum((words == _MATRIX) | (words == _MATRIX << 24)))
        if matrices > _MATRICES:
            raise ValueError(f"{path.name} has more than {_MATRICES} variables and cells. {remedy}")


def _mat_parts(path: Path) -> Iterator[bytes]:
    """Yield the unpacked content of a MAT-file of version 5, in parts aligned to 8 bytes."""
    with path.open("rb") as file:
        head = file.read(_HEAD)
        order = "big" if head[126:128] == b"MI" else "little"
        while len(tag := file.read(8)) == 8:
            yield tag
            kind = int.from_bytes(tag[:4], order)
            left = int.from_bytes(tag[4:], order)
            stream = zlib.decompressobj() if kind == _COMPRESSED else None
            while left > 0 and (packed := file.read(min(left, _STEP))):
                left -= len(packed)
                yield from [packed] if stream is None else _inflate(stream, packed)


def _inflate(stream: Any, packed: bytes) -> Iterator[bytes]:
    while packed:
        try:
            yield stream.decompress(packed, _STEP)
        except zlib.error:  # said when it is read
            return
        packed = stream.unconsumed_tail


def check_parquet(path: Path) -> None:
    """Raise `ValueError` if the columns of a Parquet file become too large: numbers by their count,
    texts by their lengths.
    """
    try:
        import pyarrow as pa  # pyright: ignore[reportMissingImports]
        import pyarrow.parquet as parquet  # pyright: ignore[reportMissingImports]
    except ImportError:
        return  # said when it is read
    remedy = "If it is yours, read it by `pandas.read_parquet` and hand over the table."
    try:
        file = parquet.ParquetFile(path)
    except (pa.ArrowException, OSError):
        return
    about, size, texts = file.metadata, 0.0, list[str]()
    for i in range(about.num_columns):
        column = file.schema.column(i)
        is_text = column.physical_type == "BYTE_ARRAY"
        width = max(8, column.length or 0)
        for group in range(about.num_row_groups):
            of = about.row_group(group).column(i)
            size += width * of.num_values + (of.total_uncompressed_size if is_text else 0)
        if is_text and column.max_repetition_level == 0 and column.path == column.name:
            texts.append(column.name)
    check_size(path, size, remedy)
    if not texts:
        return
    try:
        file = parquet.ParquetFile(path, read_dictionary=texts)
        for group in range(about.num_row_groups):
            for column in file.read_row_group(group, texts).columns:
                for chunk in column.chunks:
                    size += _length(chunk)
                    check_size(path, size, remedy)
    except (pa.ArrowException, OSError):
        return


def _length(texts: Any) -> float:
    """Return the length [bytes] of all texts of an array that is kept as a dictionary."""
    import pyarrow.compute  # pyright: ignore[reportMissingImports]

    compute: Any = pyarrow.compute

    if not hasattr(texts, "dictionary"):
        return float(texts.nbytes)
    lengths = compute.fill_null(compute.binary_length(texts.dictionary), 0).to_numpy()
    counts = np.bincount(texts.indices.drop_null().to_numpy(), minlength=len(lengths))
    return float(counts @ lengths)
