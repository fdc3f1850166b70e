"""Bounds of parameters that the user knows."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from frictax.parameters import Between, Declaration, Increasing, Parameter, parameters, replace


def inside(model: Any, limits: Any) -> Any:
    """`model` with values that the data gave brought between the bounds that the user knows."""
    moved = {}
    for path, pair in limits.items() if isinstance(limits, Mapping) else ():
        (low, high), here = _two_numbers(pair), {p.path: p.value for p in parameters(model)}
        if path in here and low < high:
            room = 0.01 * (high - low)
            moved[path] = np.clip(np.asarray(here[path]), low + room, high - room)
    return replace(model, moved)


def _two_numbers(pair) -> tuple[float, float]:
    """A least and a most value, or two that bound nothing."""
    try:
        low, high = (float(x) for x in pair)
    except (TypeError, ValueError):
        return np.nan, np.nan
    return low, high


def shared_limits(limits: Any, own: Any) -> Any:
    """The bounds of a fit that has no values of each record's own."""
    return (
        {path: pair for path, pair in limits.items() if path not in own}
        if isinstance(limits, Mapping)
        else limits
    )


def narrowed(chosen: Sequence[Parameter], limits) -> dict[str, Declaration]:
    """The declarations of parameters for which the user knows narrower bounds than their
    kind has.
    """
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
