"""From the tables of a problem file to the parts, laws, signals and objectives that they name."""

import inspect
import json
from collections.abc import Iterable, Mapping
from typing import Any

import frictax as fx
from frictax.mechanism import Mechanism
from frictax.parameters.modelica_names import modelica_advice
from frictax.text import brief, suggestion

PARTS = (
    "Mass Inertia Fixed MassWithStopAndFriction SupportFriction BearingFriction Brake Clutch "
    "OneWayClutch Spring Damper SpringDamper RotationalSpring RotationalDamper "
    "RotationalSpringDamper ElastoGap ElastoBacklash IdealGear IdealPlanetary LossyGear Force "
    "Torque LinearPositionDependentForce PeriodicPositionDependentForce "
    "QuadraticSpeedDependentForce QuadraticSpeedDependentTorque Position PositionController "
    "HeatCapacitor ThermalConductor"
).split()
LAWS = ("Coulomb", "Stribeck", "Table", "TemperatureDependent")
BRISTLES = ("LuGre", "Dahl", "ElastoPlastic", "MaxwellSlip")
SIGNALS = ("Constant", "Sine", "Step", "Ramp", "Pulse", "Trapezoid")
OBJECTIVES = ("FreeRun", "Windows", "ClosedLoop", "InverseDynamics")
PRIORS = ("Normal", "Smooth")
ERRORS = ("Guarded", "Autoregression", "Clustered", "White", "HAC", "BlockBootstrap", "Jackknife")
LOSSES = ("Squares", "Huber")
CONTROLLERS = ("PositionController",)
_INSIDE = (*LAWS, *BRISTLES, *SIGNALS, *CONTROLLERS)


class ProblemError(ValueError):
    """One sentence on what is wrong with a problem file: file, key, rule, value, remedy."""


class Place:
    """Where in which file something stands, for sentences."""

    def __init__(self, file: str, key: str = "") -> None:
        self.file, self.key = file, key

    def below(self, *keys: str) -> "Place":
        return Place(self.file, ".".join(filter(None, (self.key, *map(quoted, keys)))))

    def error(self, says: str) -> ProblemError:
        return ProblemError(f"{self.file}: {self.key}{' ' if self.key else ''}{says}")


def quoted(key: str) -> str:
    """`key` as TOML writes it."""
    return (
        key
        if key.replace("_", "").replace("-", "").isalnum()
        else json.dumps(key, ensure_ascii=not key.isprintable())
    )


def each_built(tables: Iterable[Any], kinds: Iterable[str], place: Place) -> list[Any]:
    """What the tables of a list name."""
    return [build(table, kinds, place.below(str(i))) for i, table in enumerate(tables)]


def build(table: Any, kinds: Iterable[str], place: Place, **known: Any) -> Any:
    """The object that a table names by its `kind`, all other keys being its arguments.

    **Arguments:** `kinds` that may stand here; `known`: arguments that are not the file's to say.
    """
    kinds = tuple(kinds)
    if isinstance(table, str):
        table = {"kind": table}
    if not isinstance(table, Mapping) or "kind" not in table:
        raise place.error(
            f'must be a table with a `kind`, got {brief(table, 80)}. Write {{ kind = "{kinds[0]}",'
            " ... }."
        )
    kind = table["kind"]
    if not isinstance(kind, str) or kind not in kinds:
        raise place.below("kind").error(
            f"must be one of {', '.join(kinds)}, got {kind!r}.{suggestion(kind, kinds)}"
        )
    build: Any = getattr(fx, kind)
    fields = [p for p in inspect.signature(build).parameters.values() if p.name not in known]
    names = [p.name for p in fields]
    answered = getattr(build, "refused", ())  # by the class itself, in a sentence
    for key in table:
        if key != "kind" and key not in (*names, *answered):
            instead = modelica_advice(key, names) or suggestion(key, names)
            raise place.below(key).error(
                f"is no argument of {kind}.{instead} It has: {', '.join(names)}."
            )
    missing = [
        p.name
        for p in fields
        if p.default is p.empty and p.kind is not p.VAR_KEYWORD and p.name not in table
    ]
    if missing:
        raise place.error(
            f"needs {missing[0]!r}, an argument of {kind} without a default. Add {missing[0]} = ..."
        )
    for p in fields:
        is_asked = "bool" in str(p.annotation) or isinstance(p.default, bool)
        if p.name in table and not is_asked and _has_truth(table[p.name]):
            raise place.below(p.name).error(
                f"must not contain true or false, got {brief(table[p.name], 80)}. Write a number."
            )
    given = {key: inner(value, place.below(key)) for key, value in table.items() if key != "kind"}
    return checked(lambda: build(**given, **known), place)


def _has_truth(value: Any) -> bool:
    """Return whether a value is true or false, or a list that holds such: Python counts with
    them.
    """
    return isinstance(value, bool) or (isinstance(value, list) and any(map(_has_truth, value)))


def inner(value: Any, place: Place) -> Any:
    """A value inside a table: a law, signal or controller where it names a kind."""
    if isinstance(value, Mapping):
        if "kind" in value:
            return build(value, _INSIDE, place)
        return {key: inner(v, place.below(key)) for key, v in value.items()}
    return value


def machine(parts: Mapping[str, Any], place: Place) -> Mechanism:
    """The mechanism that a table of parts describes, in the order written."""
    if "cls" in parts:
        raise place.below("cls").error("cannot be the name of a part. Choose another name.")
    built = {name: build(table, PARTS, place.below(name)) for name, table in parts.items()}
    return checked(lambda: Mechanism(**built), place)


def computed(build: Any, place: Place) -> Any:
    """The same of what does not make something of the file's values as they stand, so that a wrong
    type is no mistake in it.
    """
    return checked(build, place, values=False)


def checked(build: Any, place: Place, *, values: bool = True) -> Any:
    """What `build` returns; its complaint with the place in front.

    `values`: whether it makes something of the file's values as they stand, which may be of a wrong
    type.
    """
    try:
        return build()
    except ProblemError:
        raise
    except (ValueError, KeyError) as error:
        raise place.error(
            f"cannot be: {error.args[0] if error.args else type(error).__name__}"
        ) from error
    except (TypeError, AttributeError, IndexError, ArithmeticError) as error:
        if not values:
            raise
        raise place.error(
            f"cannot be: {' '.join(str(error).split())[:300]} Check the kind of its values."
        ) from error
