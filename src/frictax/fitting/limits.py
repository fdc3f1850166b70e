"""Bounds and scales of parameters that the user gives."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from frictax.parameters import (
    Between,
    Declaration,
    Increasing,
    LogScale,
    Parameter,
    parameters,
    replace,
)


def move_inside(model: Any, limits: Any) -> Any:
    """Return the model with start values from the data moved between the bounds of the user."""
    moved = {}
    for path, pair in limits.items() if isinstance(limits, Mapping) else ():
        (low, high), here = _two_numbers(pair), {p.path: p.value for p in parameters(model)}
        if path in here and low < high:
            room = 0.01 * (high - low)
            moved[path] = np.clip(np.asarray(here[path]), low + room, high - room)
    return replace(model, moved)


def _two_numbers(pair) -> tuple[float, float]:
    """Return the two numbers of a pair, or two nan."""
    try:
        low, high = (float(x) for x in pair)
    except (TypeError, ValueError):
        return np.nan, np.nan
    return low, high


def shared_limits(limits: Any, own: Any) -> Any:
    """Return the bounds of a fit without the parameters in `own`."""
    return (
        {path: pair for path, pair in limits.items() if path not in own}
        if isinstance(limits, Mapping)
        else limits
    )


def on_log_scale(
    chosen: Sequence[Parameter], asked: Any, declared: Mapping[str, Declaration]
) -> dict[str, Declaration]:
    """Return `declared` with a logarithmic scale for the parameters in `asked`."""
    known, out = {p.path: p for p in chosen}, dict(declared)
    for name in [asked] if isinstance(asked, str) else asked:
        below = [p for path, p in known.items() if path == name or path.startswith(f"{name}.")]
        if not below:
            raise ValueError(
                f"`log_scale` names {name!r}, which is not fitted. Free are: {', '.join(known)}."
            )
        for p in below:
            domain = p.declaration.domain
            if p.path in declared:
                raise ValueError(
                    f"{p.path!r} is in `bounds` and in `log_scale`: between two bounds it has"
                    " another scale. Name it in one of the two."
                )
            if not (domain.entry_by_entry and domain.bound() == 0.0 and domain.upper() == np.inf):
                raise ValueError(
                    f"`log_scale` of {p.path!r} must be a number > 0, and it may be any that is"
                    f" {domain.rule()}. Leave it out of `log_scale`."
                )
            out[p.path] = dataclasses.replace(p.declaration, domain=LogScale())
    return out


def narrow_domains(chosen: Sequence[Parameter], limits) -> dict[str, Declaration]:
    """Return the declarations of parameters with bounds of the user."""
    if not isinstance(limits, Mapping):
        raise ValueError(
            f"`bounds` must be a dict of path -> (least, most), got {limits!r}. Write"
            " bounds={'mass.m': (50, 150)}."
        )
    known, out = {p.path: p for p in chosen}, {}
    for path, pair in limits.items():
        if path not in known:
            raise ValueError(
                f"`bounds` names {path!r}, which is not fitted. Free are: {', '.join(known)}."
            )
        low, high = _two_numbers(pair)
        if not (np.isfinite(low) and np.isfinite(high) and low < high):
            raise ValueError(
                f"`bounds` of {path!r} must be two numbers, the least first, got {pair!r}. Write"
                f" bounds={{{path!r}: (50, 150)}}, say."
            )
        declaration = known[path].declaration
        domain = declaration.domain
        for end in (low, high):
            if isinstance(domain, Increasing) or not (
                end == domain.bound() or domain.contains(np.asarray(end))
            ):
                raise ValueError(
                    f"`bounds` of {path!r} must lie in its domain, {domain.rule()}, got {pair!r}."
                )
        out[path] = dataclasses.replace(declaration, domain=Between(low, high))
    return out
