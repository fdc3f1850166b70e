"""What `fit_many` is given: a record, or the numbers of one, for each fit."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from frictax.measurements import Record
from frictax.measurements.record import replace_fields
from frictax.parameters import UnknownName, get, parameters, replace
from frictax.text import suggestion


def records_of(data: Any, measured: Any) -> list[Record]:
    """One for each fit."""
    if isinstance(data, Record):
        if measured is None:
            raise ValueError(
                "`fit_many` needs what was `measured` under the inputs of the one record that it"
                f" was given: output -> (k, {data.n}). Give several records, or call `fit`."
            )
        return [replace_fields(data, outputs=values) for values in _each(data, measured)]
    records = list(data) if isinstance(data, Sequence) else [data]
    strangers = [type(r).__name__ for r in records if not isinstance(r, Record)]
    if strangers or not records:
        got = strangers[0] if strangers else "none"
        raise ValueError(f"`fit_many` needs a `Sweep`, a `Record` or a list of them, got {got}.")
    if measured is not None:
        raise ValueError(
            "`measured` goes with one record; several have outputs of their own. Leave it out."
        )
    first = records[0]
    for i, record in enumerate(records):
        for kind in ("inputs", "outputs"):
            wanted, got = list(getattr(first, kind)), list(getattr(record, kind))
            if set(wanted) != set(got):
                raise ValueError(
                    f"`fit_many` needs records of the same channels: record {i} ({record.name!r})"
                    f" has {kind} {', '.join(got) or 'none'}, the first {', '.join(wanted)}."
                )
    return records


def own_values(model: Any, values: Any, count: int) -> list[Any]:
    """The model of each fit, with its own values."""
    each = values_of_each(model, values, count)
    if not each:
        return [model] * count
    return [replace(model, {path: x[i] for path, x in each.items()}) for i in range(count)]


def values_of_each(model: Any, values: Any, count: int) -> dict[str, np.ndarray]:
    """Path -> a value for each fit, (count, ...) in SI."""
    if not values:
        return {}
    if not isinstance(values, Mapping):
        raise ValueError(
            f"`values` must be a mapping from paths to {count} numbers, got"
            f" {type(values).__name__}. Write {{'mass.m': [...]}}."
        )
    known, each = [p.path for p in parameters(model)], {}
    for path, given in values.items():
        if path not in known:
            raise UnknownName(
                f"`values` names {path!r}, which the machine does not have."
                f"{suggestion(path, known)} It has: {', '.join(known)}."
            )
        each[path] = np.asarray(given, dtype=float)
        shape = (count, *np.shape(get(model, path)))
        if each[path].shape != shape:
            raise ValueError(
                f"`values` must give {path!r} for each of the {count} fits, shape {shape}, got"
                f" {each[path].shape}."
            )
    return each


def numbers(values, n: int) -> Float[np.ndarray, "k n"] | None:
    """The rows of numbers, or None for what are none of that length."""
    try:
        x = np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        return None
    return x if x.ndim == 2 and x.size and x.shape[1] == n else None


def _each(record: Record, outputs) -> list[dict[str, np.ndarray]]:
    """The measurements one by one: output -> (n,)."""
    names = list(record.outputs)
    only = {names[0]: outputs} if len(names) == 1 else {}
    given = outputs if isinstance(outputs, Mapping) else only
    if set(given) != set(names):
        raise ValueError(
            f"`measured` must hold every output of record {record.name!r}: write"
            f" {{{', '.join(f'{n!r}: ...' for n in names)}}}, each of shape (k, {record.n})."
        )
    try:
        arrays = {name: np.asarray(given[name], dtype=float) for name in names}
    except (TypeError, ValueError):
        raise ValueError(
            f"`measured` must be numbers of shape (k, {record.n}), a row a measurement. Stack them"
            " with numpy."
        ) from None
    for name, x in arrays.items():
        if (
            x.ndim != 2
            or not x.size
            or x.shape[1] != record.n
            or x.shape[0] != len(arrays[names[0]])
        ):
            raise ValueError(
                f"`measured` must have shape (k, {record.n}) for {name!r}, a row a measurement, got"
                f" {x.shape}."
            )
    return [{name: x[i] for name, x in arrays.items()} for i in range(len(arrays[names[0]]))]
