"""What the fits of a fleet come to."""

import dataclasses
import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from frictax import __version__
from frictax.files.replacing import finish_interrupted
from frictax.files.unpacked import check_parquet

from .table import FORMAT, META, needs_pyarrow


@dataclasses.dataclass(frozen=True, eq=False)
class Fleet:
    """What the fits of a fleet come to: a `table` with a row for each record, in their order.

    Its columns, in SI units:

    - `record`, `machine`, `date`, `temperature` [degC], and what else was told about the records;
    - of each fitted number its name, and with ``.standard_error``, ``.lower``, ``.upper`` behind
      it its errors by the account of a single fit, nan where there are none;
      ``correlation:A:B`` of two estimates;
    - `converged`; `at_noise`: whether the residuals of a free run are white noise, empty where
      nothing tells; `reason`: why a record has no numbers, else empty; `notices`: codes, see
      the list of notices (no first look for a missing term, which takes some 15 simulations: ask
      `fit(...).missing()` of the records that stand out);
    - ``rms.OUTPUT`` of what is left, and ``lag1.OUTPUT``, the correlation of residuals with those
      before them; `condition`; `samples`, `seconds`, `version`.

    `names` of the fitted numbers, their `units`; `failed`: the rows without numbers.

    **Example:** at `fleet`.
    """

    table: Any

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.table.attrs[META]["names"])

    @property
    def units(self) -> Mapping[str, str]:
        return dict(self.table.attrs[META]["units"])

    @functools.cached_property
    def failed(self) -> Any:
        return self.table[self.table["reason"] != ""]

    @classmethod
    def read(cls, path: str | Path) -> "Fleet":
        """The fleet whose table is in the Parquet file `path`."""
        import pandas as pd

        path = Path(path)
        finish_interrupted(path.parent, reading=True)
        if not path.is_file():
            raise FileNotFoundError(f"There is no file {path} with the table of a fleet.")
        needs_pyarrow()
        check_parquet(path)
        try:
            table = pd.read_parquet(path)
            table.attrs[META]["names"]
        except Exception:  # of pyarrow, or a table of something else
            raise ValueError(
                f"{path.name} is not the table of a fleet. Name the file that `fleet` has written."
            ) from None
        if (of := table.attrs[META].get("format", 1)) > FORMAT:
            raise ValueError(
                f"{path} is of format {of}, and frictax {__version__} knows up to {FORMAT}. Read it"
                " by a newer frictax."
            )
        return cls(table)

    def __repr__(self) -> str:
        failed, open_ = len(self.failed), int(np.sum(~self.table["converged"])) - len(self.failed)
        says = f"{len(self.table)} records, {len(self.table) - failed - open_} fitted"
        says += f", {open_} not converged" if open_ else ""
        says += f", {failed} without numbers" if failed else ""
        return f"Fleet({says}: {', '.join(self.names)})"
