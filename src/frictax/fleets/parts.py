"""What is done already: a file for each chunk beside the table that they become."""

import contextlib
import dataclasses
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from frictax import __version__
from frictax.files.locks import hold_lock
from frictax.files.replacing import check_target, finish_interrupted, write_whole

from .table import FORMAT, needs_pyarrow

_PLAN = "plan.json"


@dataclasses.dataclass(frozen=True)
class Parts:
    """The folder ``OUT.parts`` beside the table `out`."""

    out: Path

    @property
    def folder(self) -> Path:
        return self.out.with_name(f"{self.out.name}.parts")

    def begin(self, digest: str, chunks: int, *, resume: bool, overwrite: bool) -> set[int]:
        """Make the folder, or find what it holds; gives the numbers of the chunks that are done.

        **Raises:** `FileExistsError` where there is a table, or an unfinished one that is not to be
        resumed; `ValueError` where that is of another fleet.
        """
        if self.out.exists() and not overwrite:
            raise FileExistsError(
                f"{self.out} exists. Give overwrite=True to replace it, or another file as `out`."
            )
        plan = self.folder / _PLAN
        if self.folder.exists() and not resume and not overwrite:
            raise FileExistsError(
                f"{self.folder} holds what an earlier run has done. Give resume=True to go on with"
                " it, or overwrite=True to begin anew."
            )
        finish_interrupted(self.out.resolve().parent)
        finish_interrupted(self.folder)
        if resume and plan.is_file():
            before = json.loads(plan.read_text(encoding="utf-8"))
            if before.get("format", 1) > FORMAT:
                raise ValueError(
                    f"{self.folder} is of format {before['format']}, and frictax {__version__}"
                    f" knows up to {FORMAT}. Go on with a newer frictax, or give overwrite=True"
                    " to begin anew."
                )
            if before["digest"] != digest:
                raise ValueError(
                    f"{self.folder} holds what was done with other records, another problem or"
                    " another version of frictax. Give overwrite=True to begin anew, or put back"
                    " what was."
                )
            return {n for n in range(chunks) if self._file(n).is_file()}
        if self.folder.exists():
            shutil.rmtree(self.folder)
        self.folder.mkdir()
        write_whole(plan, json.dumps({"format": FORMAT, "digest": digest}), replace=True)
        return set()

    def keep(self, number: int, frame: Any) -> None:
        """The rows of a chunk, whole or not at all."""
        write_whole(self._file(number), frame.to_parquet(), replace=True)

    def read(self, number: int) -> Any:
        import pandas as pd

        return pd.read_parquet(self._file(number))

    def end(self, table: Any) -> None:
        """The whole table, in the place of its parts."""
        write_whole(self.out.resolve(), table.to_parquet(index=False), replace=True)
        shutil.rmtree(self.folder)

    def _file(self, number: int) -> Path:
        return self.folder / f"{number:06d}.parquet"

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """While this lasts, no other process works on this table, on any host."""
        target = check_target(self.out, "the table of the fleet")
        needs_pyarrow()
        lock = target.with_name(f".{target.name}.lock")
        with hold_lock(lock, str(self.out), "name another file as `out`"):
            yield
