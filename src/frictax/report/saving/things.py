"""Convert the objects of a fit to JSON and arrays, and restore them without running code.

The file contains the names of classes, not their code. Classes of frictax and diffrax are imported
by name. The person who reads the file has to provide the user's classes and functions.
"""

import dataclasses
import enum
import functools
import importlib
import math
import re
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import jaxtyped

import frictax
from frictax.engine.options import ForwardAlone
from frictax.fitting import FitResult
from frictax.fitting.problem.objectives import PreparedRecord, Steady
from frictax.fitting.problem.problem import PreparedSweep, Problem, Unknown
from frictax.fitting.problem.setup import Named, Setup
from frictax.fitting.problem.ties import Tie
from frictax.fitting.problem.weak_form import WeakForm
from frictax.measurements.units import Unit
from frictax.parameters import Declaration, domains
from frictax.text import CONTROL

# Name -> class of frictax that occurs in fits and does not have a public name
_INSIDE: dict[str, Any] = {
    cls.__name__: cls
    for cls in (ForwardAlone, PreparedRecord, PreparedSweep, Problem, Unknown, Steady, Named, Setup)
    + (Unit, Declaration, domains.Real, domains.Positive, domains.AtLeast, domains.Between)
    + (domains.Increasing, domains.LogScale, Tie, WeakForm)
}
# Properties that a fit computes when they are first read. The file contains their values.
_ANSWERS = ("estimates", "tied", "covariance", "identifiability", "notices")
_NUMBERS = "biufc"  # kinds of numpy types: bool, int, unsigned, float, complex
_NO_DEFAULT = dataclasses.MISSING
# (class, field missing in older files) -> value with the behaviour of older versions, if it differs
# from the current default. Other missing fields get their default, or None.
BEFORE: dict[tuple[str, str], Any] = {
    ("OnSamples", "tolerance"): None,  # Older versions did not control the error of a step.
    ("InverseDynamics", "at_samples"): True,  # Older versions did not have the weak form.
    ("Optax", "rounds"): 10,  # Older versions made up to 10 rounds of `steps`.
}
_hints = functools.cache(typing.get_type_hints)
# Type that a field annotation states -> types that the value may have
_FLAT = {
    bool: (bool, np.bool_),
    int: (int, np.integer),
    float: (int, float, np.integer, np.floating),
}


@functools.cache
def _known(name: str) -> Any:
    """Return the class `name` of frictax or diffrax; None if a file may not contain it."""
    if name in _INSIDE:
        return _INSIDE[name]
    package, _, last = name.rpartition(".")
    if package == "diffrax" and not last.startswith("_"):
        found = getattr(importlib.import_module("diffrax"), last, None)
        return found if isinstance(found, type) and issubclass(found, eqx.Module) else None
    found = getattr(frictax, name, None) if name in dir(frictax) else None
    plain = isinstance(found, type) and (
        dataclasses.is_dataclass(found) or issubclass(found, enum.Enum)
    )
    return found if plain else None


def name_of(thing: Any) -> str:
    """Return the name of a user's class or function; for an object, the name of its class."""
    return str(getattr(thing, "__name__", type(thing).__name__))


def _join_path(path: str, name: Any) -> str:
    return f"{path}.{name}" if path else str(name)


def conforms(value: Any, hint: Any) -> bool:
    """Return whether a value and its content have the type that the annotation `hint` states.

    All arrays of an object must have the same size n if their annotations contain "n". Therefore
    call this function for all fields of an object in one `jaxtyped("context")`.
    """
    kind = typing.get_origin(hint)
    if hint in _FLAT:
        is_bool = isinstance(value, bool | np.bool_)
        return isinstance(value, _FLAT[hint]) and is_bool == (hint is bool)
    if hint is None or hint is type(None):
        return value is None
    if kind in (typing.Union, types.UnionType):
        return any(conforms(value, one) for one in typing.get_args(hint))
    if kind is not None:
        return _conforms_inside(value, kind, typing.get_args(hint))
    return not isinstance(hint, type) or hint is Any or isinstance(value, hint)


def _conforms_inside(value: Any, kind: Any, inside: tuple[Any, ...]) -> bool:
    """Return whether a value has the generic type `kind[inside]`, such as tuple[int, ...]."""
    if kind is typing.Literal:
        return any(value == one and type(value) is type(one) for one in inside)
    if kind is tuple:
        if isinstance(value, tuple) and inside[1:] == (...,):
            inside = (inside[0],) * len(value)
        same = isinstance(value, tuple) and len(value) == len(inside)
        return same and all(map(conforms, value, inside))
    if kind is Callable:
        return callable(value)
    if not isinstance(kind, type):
        return True
    if issubclass(kind, Mapping):
        return isinstance(value, Mapping) and all(
            conforms(k, inside[0]) and conforms(x, inside[1]) for k, x in value.items()
        )
    if issubclass(kind, Iterable) and len(inside) == 1:
        return isinstance(value, kind) and all(conforms(x, inside[0]) for x in value)
    return isinstance(value, kind)


def _fields(cls: Any) -> tuple[str, ...]:
    named = getattr(cls, "_fields", None)  # only named tuples have `_fields`
    return tuple(f.name for f in dataclasses.fields(cls)) if named is None else tuple(named)


@dataclasses.dataclass
class Packed:
    """A converter of objects to JSON and arrays. `arrays`: file name in the archive -> array;
    `own`: the user's classes and functions in the order of their first use.
    """

    arrays: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)
    own: list[Any] = dataclasses.field(default_factory=list)
    _members: dict[Any, str] = dataclasses.field(default_factory=dict)

    def pack(self, thing: Any, path: str) -> Any:
        """Return `thing` as JSON data; `path`: place of `thing` in the fit, for error messages.

        **Raises:** `ValueError` unless `thing` is a number, a text, a container, a dataclass or a
        function.
        """
        if isinstance(thing, enum.Enum):
            return {"enum": self._class(type(thing)), "name": thing.name}
        if isinstance(thing, np.generic | np.ndarray | jax.Array):
            return self._array(thing, path)
        if thing is None or isinstance(thing, bool | int | str):
            return thing
        if isinstance(thing, float):
            sign = "-" if math.copysign(1.0, thing) < 0 else ""
            return thing if math.isfinite(thing) else {"float": f"{sign}{abs(thing)}"}
        named_tuple = isinstance(thing, tuple) and hasattr(thing, "_fields")
        if isinstance(thing, tuple | list | frozenset | set | Mapping) and not named_tuple:
            return self._container(thing, path)
        if not isinstance(thing, type) and (dataclasses.is_dataclass(thing) or named_tuple):
            has = {
                n: self.pack(getattr(thing, n), _join_path(path, n)) for n in _fields(type(thing))
            }
            packed: dict[str, Any] = {"is": self._class(type(thing)), "has": has}
            if isinstance(thing, FitResult):
                packed["found"] = {
                    n: self.pack(getattr(thing, n), _join_path(path, n)) for n in _ANSWERS
                }
            return packed
        if callable(thing):
            return {"own": self._own(thing)}
        raise ValueError(
            f"A fit is saved with all that it holds, and {path} is a {type(thing).__name__}, which"
            " no file can hold without running code when it is read. Make it a number, an array or"
            " a dataclass."
        )

    def _container(self, thing: Any, path: str) -> Any:
        if isinstance(thing, Mapping):
            pairs = [
                [self.pack(k, path), self.pack(x, _join_path(path, k))] for k, x in thing.items()
            ]
            return {"dict": pairs}
        items = sorted(thing, key=repr) if isinstance(thing, frozenset | set) else thing
        packed = [self.pack(x, _join_path(path, i)) for i, x in enumerate(items)]
        return packed if isinstance(thing, tuple) else {type(thing).__name__: packed}

    def _class(self, cls: type) -> str | int:
        package = cls.__module__.partition(".")[0]
        name = {"frictax": cls.__name__, "diffrax": f"diffrax.{cls.__name__}"}.get(package, "")
        return name if name and _known(name) is cls else self._own(cls)

    def _own(self, thing: Any) -> int:
        for i, other in enumerate(self.own):
            if other is thing:
                return i
        self.own.append(thing)
        return len(self.own) - 1

    def _array(self, thing: Any, path: str) -> dict[str, Any]:
        kind = "jax" if isinstance(thing, jax.Array) else "numpy"
        plain = np.asarray(thing)
        if plain.dtype.kind not in _NUMBERS + "US":
            raise ValueError(
                f"A fit is saved with all that it holds, and {path} is an array of {plain.dtype},"
                " which no file can hold. Make it one of numbers."
            )
        packed: dict[str, Any] = {"scalar": True} if isinstance(thing, np.generic) else {}
        if kind == "numpy" and not packed and not plain.flags.writeable:
            packed["locked"] = True
        if plain.ndim == 0 and plain.dtype.kind in "biuf" and np.isfinite(plain):
            return {kind: plain.item(), "dtype": plain.dtype.str, **packed}
        turned = plain.flags.f_contiguous and not plain.flags.c_contiguous
        same = (plain.dtype.str, plain.shape, turned, plain.tobytes())
        if same not in self._members:
            where = re.sub(r"[^\w.@-]+", "_", path)[-80:]
            self._members[same] = f"arrays/{len(self.arrays):03d}-{where}.npy"
            self.arrays[self._members[same]] = plain
        return {kind: self._members[same], **packed}


def own_code_of(known: Any) -> list[Any]:
    """Return the user's classes and functions in `known`: a list, a machine or another object."""
    packed = Packed()
    packed.pack(known, "known")
    return packed.own


@dataclasses.dataclass
class Unpacked:
    """A converter of JSON and arrays back to objects. `arrays`: file name in the archive -> array.

    - `own`: the user's classes and functions, in the order of the file.
    - `is_older`: True if the file has an older format, which may lack fields.
    - `largest` [bytes]: allowed size of all arrays; an array that is used twice counts twice.
    """

    arrays: Mapping[str, np.ndarray]
    own: list[Any]
    is_older: bool = False
    largest: int | float = math.inf
    _size: int = 0

    def unpack(self, packed: Any) -> Any:
        """Restore an object: set the fields of an empty object without calling a constructor."""
        if isinstance(packed, list):
            return tuple(map(self.unpack, packed))
        if isinstance(packed, str) and CONTROL.search(packed):
            raise ValueError(
                f"It holds the text {packed!r}, whose control characters act on terminals."
            )
        if not isinstance(packed, dict):
            return packed
        if "has" in packed:
            return self._object(packed)
        if "enum" in packed:
            return self._class(packed["enum"])[packed["name"]]
        if "own" in packed:
            return self.own[packed["own"]]
        if "float" in packed:
            return float(packed["float"])
        if "dict" in packed:
            return {self.unpack(key): self.unpack(x) for key, x in packed["dict"]}
        for kind in (list, frozenset, set):
            if kind.__name__ in packed:
                return kind(map(self.unpack, packed[kind.__name__]))
        return self._array(packed)

    def _class(self, name: str | int) -> Any:
        cls = self.own[name] if isinstance(name, int) else _known(name)
        if not isinstance(cls, type):
            raise ValueError(f"It holds a {name}, which this one does not have.")
        return cls

    def _object(self, packed: dict[str, Any]) -> Any:
        cls = self._class(packed["is"])
        has = {name: self.unpack(x) for name, x in packed["has"].items()}
        if strange := set(has) - set(_fields(cls)):
            raise ValueError(
                f"Its {cls.__name__} has a {min(strange)}, which the class here has not."
            )
        for name in _fields(cls):
            if name not in has:
                has[name] = self._absent(cls, name)
        if not any(cls is other for other in self.own):
            self._check_types(cls, has, _hints(cls))
        if issubclass(cls, tuple):
            return tuple.__new__(cls, [has[name] for name in _fields(cls)])
        thing = object.__new__(cls)
        for name in _fields(cls):
            object.__setattr__(thing, name, has[name])
        if cls is FitResult:
            answers = {
                n: self.unpack(x) for n, x in packed.get("found", {}).items() if n in _ANSWERS
            }
            hints = {n: _hints(getattr(FitResult, n).func)["return"] for n in answers}
            self._check_types(cls, answers, hints)
            vars(thing).update(answers)
        return thing

    def _check_types(self, cls: Any, has: Mapping[str, Any], hints: Mapping[str, Any]) -> None:
        with jaxtyped("context"):
            for name, hint in hints.items():
                is_old = self.is_older and name in has and has[name] is None
                if name in has and not is_old and not conforms(has[name], hint):
                    raise ValueError(
                        f"Its {cls.__name__} has a {name} of the wrong type or size"
                        f" ({type(has[name]).__name__})."
                    )

    def _absent(self, cls: Any, name: str) -> Any:
        """Return the value of the field `name` of `cls` if the file does not contain it."""
        is_own = any(cls is other for other in self.own)
        if self.is_older and not is_own and (cls.__name__, name) in BEFORE:
            return BEFORE[cls.__name__, name]
        made: Any = _NO_DEFAULT
        if issubclass(cls, tuple):
            default = getattr(cls, "_field_defaults", {}).get(name, _NO_DEFAULT)
        else:
            (field,) = [f for f in dataclasses.fields(cls) if f.name == name]
            default, made = field.default, field.default_factory
        if default is not _NO_DEFAULT or made is not _NO_DEFAULT:
            return default if made is _NO_DEFAULT else made()
        if self.is_older and not is_own:
            return None
        raise ValueError(f"Its {cls.__name__} lacks {name}, which the class here has.")

    def _array(self, packed: dict[str, Any]) -> Any:
        kind = "jax" if "jax" in packed else "numpy"
        value = packed[kind]
        if isinstance(value, str):
            if value not in self.arrays:
                raise ValueError(f"Its member {value} is missing.")
            array = self.arrays[value]
            self._size += array.nbytes
            if self._size > self.largest:
                raise ValueError(f"It names its arrays so often that they take {self._size} bytes.")
        else:
            array = np.array(value, dtype=np.dtype(packed["dtype"]))
        if kind == "jax":
            return jax.device_put(array)
        if packed.get("scalar"):
            return array[()]
        array = array.copy(order="K")
        array.flags.writeable = "locked" not in packed
        return array
