"""Check the unpacked size of compressed files before they are read: 3 MB can contain 6 GB."""

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

_COMPRESSED, _MATRIX = 15, 14  # type numbers of elements in a MAT-file


def check_size(path: Path, size: int | float, remedy: str) -> None:
    """Raise `ValueError` if the file `path` takes too much memory when it is unpacked.

    **Arguments:** `size`: unpacked size [bytes]; `remedy`: another way to read the file.
    """
    # 300 MB of numbers and texts take 1 GB of memory while they are read. A file of more than 75 MB
    # may grow by a factor of four.
    most = max(3e8, 4.0 * path.stat().st_size)
    if size > most:
        raise ValueError(
            f"{path.name} takes more than {most / 1e6:.0f} MB when it is unpacked, for"
            f" {path.stat().st_size / 1e6:.2g} MB on the disk. {remedy}"
        )


def check_mat(path: Path) -> None:
    """Raise `ValueError` if a MAT-file is too large unpacked, or has too many arrays and cells."""
    remedy = "If it is yours, read it by `scipy.io.loadmat` and hand its arrays to `Record`."
    # A matrix or cell takes up to 1 kB of memory in addition to its content.
    size, matrices, largest = 0, 0, 300_000
    for part in _mat_parts(path):
        size += len(part)
        check_size(path, size, remedy)
        words = np.frombuffer(part[: len(part) // 8 * 8], np.uint32)[::2]
        matrices += int(np.sum((words == _MATRIX) | (words == _MATRIX << 24)))
        if matrices > largest:
            raise ValueError(f"{path.name} has more than {largest} variables and cells. {remedy}")


def _mat_parts(path: Path) -> Iterator[bytes]:
    """Yield the unpacked content of a MAT-file of version 5 in parts of at most 1 MiB."""
    step = 1 << 20  # [bytes] largest part that is unpacked at once
    with path.open("rb") as file:
        head = file.read(128)
        order = "big" if head[126:128] == b"MI" else "little"
        while len(tag := file.read(8)) == 8:
            yield tag
            kind = int.from_bytes(tag[:4], order)
            left = int.from_bytes(tag[4:], order)
            stream = zlib.decompressobj() if kind == _COMPRESSED else None
            while left > 0 and (packed := file.read(min(left, step))):
                left -= len(packed)
                if stream is None:
                    yield packed
                    continue
                while packed:
                    try:
                        part = stream.decompress(packed, step)
                    except zlib.error:  # The error is reported when the file is read.
                        break
                    yield part
                    packed = stream.unconsumed_tail


def check_parquet(path: Path) -> None:
    """Raise `ValueError` if the columns of a Parquet file become too large in memory. The size of
    numeric columns follows from the number of values, that of text columns from the text lengths.
    """
    try:
        import pyarrow as pa  # pyright: ignore[reportMissingImports]
        import pyarrow.compute as pa_compute  # pyright: ignore[reportMissingImports]
        import pyarrow.parquet as parquet  # pyright: ignore[reportMissingImports]
    except ImportError:
        return  # The error is reported when the file is read.
    compute: Any = pa_compute
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
                    if not hasattr(chunk, "dictionary"):
                        size += float(chunk.nbytes)
                    else:  # Count each text as often as the column contains it.
                        lengths = compute.binary_length(chunk.dictionary)
                        lengths = compute.fill_null(lengths, 0).to_numpy()
                        used = chunk.indices.drop_null().to_numpy()
                        size += float(np.bincount(used, minlength=len(lengths)) @ lengths)
                    check_size(path, size, remedy)
    except (pa.ArrowException, OSError):
        return
