"""Derived quantities of a problem file, computed from the fitted parameters."""

from collections.abc import Iterable, Mapping
from typing import Any

import frictax as fx
from frictax.analysis.derived.derived import common, common_estimates, expression, is_title
from frictax.parameters import parameters
from frictax.text import suggestion

from .building import Place, call_checked
from .schema import DerivedEntry

Asked = Mapping[str, str | DerivedEntry]


def check_derived(
    asked: Asked,
    place: Place,
    records: Iterable[str] = (),
    known: Iterable[str] | None = None,
    titles: Iterable[str] = (),
) -> None:
    """Raise `ProblemError` for text that is not arithmetic, and for paths that are not in `known`.

    `known`: None if it is not decided yet; `titles`: the common quantities of the machine.
    """
    known, titles = None if known is None else list(known), list(titles)
    for name, entry in asked.items():
        here, (value, _, record) = place.below(name), _parts(entry)
        if record is not None and record not in records:
            raise here.error(
                f"names the record {record!r}, which is not"
                f" fitted.{suggestion(record, records)} There are: {', '.join(records)}."
            )
        if is_title(value):
            if known is not None and value not in titles:
                raise here.error(
                    f"names {value!r}, which is no common quantity of this"
                    f" machine.{suggestion(value, titles)} It has: {', '.join(titles) or 'none'}."
                )
            continue
        for path in call_checked(lambda value=value: expression(value), here, values=True).paths:
            if known is not None and path not in known:
                raise here.error(
                    f"names {path!r}, which the machine does not have.{suggestion(path, known)}"
                )


def derive(
    asked: Asked, found: fx.FitResult, uncertainty: Any, place: Place
) -> tuple[fx.Estimate, ...]:
    """Return the quantities of the file whose parameters the chosen structure has; if the file does
    not name any, the common ones.
    """
    if not asked:
        return common_estimates(found, uncertainty)
    sweep = found.sweep if found.of_sweep else None
    titles = [title for title, *_ in common(found.model, sweep)]
    known, out = {p.path for p in parameters(found.problem.setup)}, []
    for name, entry in asked.items():
        value, unit, record = _parts(entry)
        if value not in titles if is_title(value) else not known >= set(expression(value).paths):
            continue
        options = {"name": name, "by": uncertainty, "label": record}
        options |= {} if is_title(value) else {"unit": unit}
        made = call_checked(lambda v=value, o=options: found.derived(v, **o), place.below(name))
        out += made.estimates
    return tuple(out)


def _parts(entry: str | DerivedEntry) -> tuple[str, str, str | None]:
    if isinstance(entry, str):
        return entry, "", None
    return entry.value, entry.unit, entry.record
