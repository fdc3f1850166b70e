"""Checks of the model and of the records of a fit."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from frictax.measurements import Record, Sweep
from frictax.mechanism import Machine
from frictax.notice import Notice
from frictax.text import brief

from .problem.priors import AbstractPrior, Smooth
from .problem.problem import Unknown
from .problem.readings import tick_noise
from .problem.setup import Instrument


def label_data(data: Any) -> dict[str, Any]:
    """Return a dict from label to record or sweep. A sweep's label is its contact's name."""
    if isinstance(data, Record | Sweep):
        data = [data]
    if isinstance(data, Mapping):
        wrong = next((label for label in data if not isinstance(label, str)), "")
        if wrong != "":
            raise ValueError(
                f"`fit`: records must be labelled by texts, got {wrong!r}. Write {{'run': record}}."
            )
        return dict(data)
    if isinstance(data, str) or not isinstance(data, Iterable):
        raise ValueError(
            f"`fit` takes a record, a list or a dict of records and sweeps, got {brief(data)}. Read"
            " one with Record.from_csv(...)."
        )
    out: dict[str, Any] = {}
    for item in data:
        if not isinstance(item, Record | Sweep):
            raise ValueError(
                f"`fit` takes records and sweeps, got {brief(item)} among the data. Read one with"
                " Record.from_csv(...)."
            )
        label = item.name if getattr(item, "name", "") else "record"
        if label in out:
            raise ValueError(
                f"`fit`: two records are called {label!r}. Give each a name of its own: Record(...,"
                " name='...')."
            )
        out[label] = item
    return out


def check_data(model: Any, records: Mapping[str, Any]) -> None:
    """Raise `ValueError` unless the model is a machine and the data contain at least one record."""
    if not isinstance(model, Machine):
        raise ValueError(
            f"A record is fitted by a `Mechanism` or a hybrid system of your own, got {model!r}. A"
            " law alone is fitted to a `Sweep`."
        )
    if not records or not any(isinstance(r, Record) for r in records.values()):
        raise ValueError(
            "`fit` needs at least one `Record`. Read one with Record.from_csv(path, time=...,"
            " inputs=..., outputs=...)."
        )
    for label, r in records.items():
        if not isinstance(r, Record | Sweep):
            raise ValueError(
                f"`fit` takes records and sweeps, got {r!r} under {label!r}. Read one with"
                " Record.from_csv(...)."
            )


def check_precision() -> None:
    """Raise `ValueError` unless JAX computes with 64 bits."""
    if jax.dtypes.canonicalize_dtype(float) != np.float64:
        raise ValueError(
            '`fit` needs 64 bit numbers, got 32. Write jax.config.update("jax_enable_x64",'
            " True) before the first computation."
        )


def check_delays(instruments: Mapping[str, Instrument], record: Record) -> None:
    """Raise `ValueError` for a delay as long as the record or longer."""
    for name, instrument in instruments.items():
        if abs(float(instrument.delay)) >= record.duration:
            raise ValueError(
                f"`instruments` {name!r} must have a delay shorter than record {record.name!r}"
                f" ({record.duration:g} s), got {float(instrument.delay):g} s. It is in seconds."
            )


def without_repeats(records: Mapping[str, Any]) -> tuple[dict[str, Any], list[Notice]]:
    """Return the records, and a notice for each record that is left out because its samples equal
    those of an earlier record. Using samples twice would make all standard errors too small.
    """
    kept, seen, notices = {}, {}, []
    for label, r in records.items():
        if isinstance(r, Record):
            channels = sorted({**r.inputs, **r.outputs}.items())
            samples = r.t.tobytes(), r.hold, *((name, x.tobytes()) for name, x in channels)
            first = seen.setdefault(samples, label)
            if first != label:
                notices.append(Notice("record-twice", label, {"first": first}))
                continue
        kept[label] = r
    return kept, notices


def check_deviations(records: Mapping[str, Any], of_outputs: bool = True) -> None:
    """Raise `ValueError` if outputs (only if `of_outputs`) or sweeps in a joint fit lack standard
    deviations.
    """
    motions = {label: r for label, r in records.items() if isinstance(r, Record)}
    if not motions:
        return
    kinds = {
        ("time" if name in tick_noise(r) else name.rpartition(".")[2], r.sd.get(name) is None)
        for r in motions.values()
        for name in r.outputs
    }
    many = (
        len(kinds) > 1
        or any(len(r.outputs) > 1 for r in motions.values())
        or len(motions) < len(records)
    )
    for label, r in records.items() if many else ():
        name = (
            next((n for n in r.outputs if r.sd.get(n) is None), None)
            if isinstance(r, Record) and of_outputs
            else None
        )
        if name is not None:
            raise ValueError(
                f"Record {label!r} is compared together with other outputs or sweeps, so each needs"
                f" a standard deviation: {name!r} has none. Give sd={{{name!r}: ...}}."
            )
        if isinstance(r, Sweep) and r.sigma is None:
            raise ValueError(
                f"Sweep {label!r} is fitted together with records, so it needs a standard"
                " deviation. Give sigma=... [N]."
            )


def check_priors(priors: Iterable[AbstractPrior], unknowns: Sequence[Unknown]) -> None:
    """Raise `ValueError` for a prior of a parameter that is not fitted or does not suit it."""
    fitted = {u.path: u for u in unknowns}
    for prior in priors:
        u = fitted.get(prior.path)
        if u is None:
            raise ValueError(
                f"`priors` names {prior.path!r}, which is not fitted. Free are:"
                f" {', '.join(u.path for u in unknowns)}."
            )
        if u.record is not None:
            raise ValueError(
                f"`priors` must name parameters that all records share, got {u.path!r}, which has a"
                " value for each record. Write it in `free` instead of `own`."
            )
        if isinstance(prior, Smooth) and (len(u.shape) != 1 or u.size < 3):
            raise ValueError(
                "`Smooth.path` must name the forces of a `Table` of at least 3 rows, got"
                f" {u.path!r}, which has {u.size}. Take `Normal` for a number."
            )
