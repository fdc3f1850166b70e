"""Build the parts, laws, signals and objectives that the tables of a problem file describe."""

import inspect
import json
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import frictax as fx
from frictax import laws
from frictax.bristles import AbstractBristle
from frictax.mechanism import Mechanism
from frictax.parameters.modelica_names import modelica_advice
from frictax.signals import AbstractSignal
from frictax.text import brief, suggestion

PARTS = (
    "Mass Inertia Fixed MassWithStopAndFriction SupportFriction BearingFriction Brake Clutch "
    "OneWayClutch Spring Damper SpringDamper RotationalSpring RotationalDamper "
    "RotationalSpringDamper ElastoGap ElastoBacklash IdealGear IdealPlanetary LossyGear Force "
    "Torque LinearPositionDependentForce PeriodicPositionDependentForce "
    "QuadraticSpeedDependentForce QuadraticSpeedDependentTorque Position PositionController "
    "HeatCapacitor ThermalConductor"
).split()
LAWS = tuple(law.__name__ for law in laws.LAWS)
LAWS_WITH_START = tuple(law.__name__ for law in laws.LAWS_WITH_START)
BRISTLES = ("LuGre", "Dahl", "ElastoPlastic", "MaxwellSlip")
SIGNALS = ("Constant", "Sine", "Step", "Ramp", "Pulse", "Trapezoid")
OBJECTIVES = ("FreeRun", "Windows", "ClosedLoop", "InverseDynamics")
PRIORS = ("Normal", "Smooth")
ERRORS = ("Guarded", "Autoregression", "Clustered", "White", "HAC", "BlockBootstrap", "Jackknife")
LOSSES = ("Squares", "Huber")
CONTROLLERS = ("PositionController",)
# Type of a field -> names of the classes (`kind`) that a table for this field may have.
_INSIDE: Mapping[type, tuple[str, ...]] = {
    laws.AbstractLaw: LAWS,
    AbstractBristle: BRISTLES,
    AbstractSignal: SIGNALS,
    fx.PositionController: CONTROLLERS,
}


class ProblemError(ValueError):
    """An error in a problem file. The message gives file, key, rule, value and remedy."""


class Place:
    """A file and a key in this file. An error message begins with the names of file and key."""

    def __init__(self, file: str, key: str = "") -> None:
        self.file, self.key = file, key

    def below(self, *keys: str) -> "Place":
        return Place(self.file, ".".join(filter(None, (self.key, *map(toml_key, keys)))))

    def error(self, says: str) -> ProblemError:
        return ProblemError(f"{self.file}: {self.key}{' ' if self.key else ''}{says}")

    def invalid(self, says: object) -> ProblemError:
        """Return an error for an invalid object at this key; `says` is the reason."""
        return self.error(f"{'is not valid: ' if self.key else ''}{says}")


def toml_text(text: str) -> str:
    """Return `text` as a TOML string in quotes."""
    return json.dumps(text, ensure_ascii=False)


def toml_key(key: str) -> str:
    """Return `key` as a TOML key, in quotes if necessary."""
    if key.replace("_", "").replace("-", "").isalnum():
        return key
    return json.dumps(key, ensure_ascii=not key.isprintable())


def build_each(tables: Iterable[Any], kinds: Iterable[str], place: Place) -> list[Any]:
    """Build the objects that a list of tables describes."""
    return [build(table, kinds, place.below(str(i))) for i, table in enumerate(tables)]


def build(table: Any, kinds: Iterable[str], place: Place) -> Any:
    """Build the object that a table describes. The key `kind` names the class, which must be one of
    `kinds`. All other keys of the table are arguments of the class.
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
    maker = getattr(fx, kind)
    fields = list(inspect.signature(maker).parameters.values())
    names = [p.name for p in fields]
    # Accept the arguments in `refused`, because the class rejects them with a better message.
    known = {"kind", *names, *getattr(maker, "refused", ())}
    for word in table:
        if word not in known:
            instead = modelica_advice(word, names) or suggestion(word, names)
            raise place.below(word).error(
                f"is no argument of {kind}.{instead} It has: {', '.join(names)}."
            )
    for p in fields:
        if p.default is p.empty and p.kind is not p.VAR_KEYWORD and p.name not in table:
            raise place.error(
                f"needs {p.name!r}, an argument of {kind} without a default. Add {p.name} = ..."
            )
    for p in fields:
        takes_truth = "bool" in str(p.annotation) or isinstance(p.default, bool)
        if p.name in table and not takes_truth and _has_truth(table[p.name]):
            raise place.below(p.name).error(
                f"must not contain true or false, got {brief(table[p.name], 80)}. Write a number."
            )
    given = {}
    for key in [key for key in table if key != "kind"]:
        field = getattr(maker, "__dataclass_fields__", {}).get(key)
        types = (field.type, *typing.get_args(field.type)) if field else ()
        inside = [kind for base in _INSIDE if base in types for kind in _INSIDE[base]]
        given[key] = build_inside(table[key], inside, place.below(key))
    return call_checked(lambda: getattr(fx, kind)(**given), place, values=True)


def _has_truth(value: Any) -> bool:
    """Return True for a bool or a list with a bool, because Python accepts a bool as a number."""
    return isinstance(value, bool) or (isinstance(value, list) and any(map(_has_truth, value)))


def build_inside(value: Any, kinds: Iterable[str], place: Place) -> Any:
    """Build an object if `value` is a table with a `kind`; otherwise return the value."""
    if not isinstance(value, Mapping):
        return value
    if "kind" not in value:
        return {key: build_inside(v, kinds, place.below(key)) for key, v in value.items()}
    if not kinds:
        raise place.error(f"must not be a table with a `kind`, got {brief(value, 80)}.")
    return build(value, kinds, place)


def build_machine(parts: Mapping[str, Any], place: Place) -> Mechanism:
    """Build the mechanism from a table of parts, in the order of the file."""
    if "cls" in parts:
        raise place.below("cls").error("cannot be the name of a part. Choose another name.")
    built = {name: build(table, PARTS, place.below(name)) for name, table in parts.items()}
    return call_checked(lambda: Mechanism(**built), place, values=True)


def call_checked(function: Callable[[], Any], place: Place, *, values: bool = False) -> Any:
    """Return the result of `function`. Convert a `ValueError` or `KeyError` to a `ProblemError`
    whose message begins with `place`. If `values`, also convert errors such as `TypeError`, because
    `function` uses values of the file whose types were not checked.
    """
    try:
        return function()
    except ProblemError:
        raise
    except (ValueError, KeyError) as error:
        raise place.invalid(error.args[0] if error.args else type(error).__name__) from error
    except (TypeError, AttributeError, IndexError, ArithmeticError) as error:
        if not values:
            raise
        said = " ".join(str(error).split())[:300]
        raise place.invalid(f"{said} Check the kind of its values.") from error
