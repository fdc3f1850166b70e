"""The data that a user's functions and classes read, in addition to their arguments.

A compiled program contains such data as constants, for example a global number that a drive
function reads. Therefore the data belong to the key of a program in the memory of this process.
(Programs with a user's code are not stored in the folder.) A change of the data then has the same
effect as in plain Python.
"""

import contextlib
import dataclasses
import dis
import functools
import hashlib
import sys
from collections.abc import Iterable, Sequence
from types import CodeType, FunctionType, MethodType, ModuleType, SimpleNamespace
from typing import Any

import jax
import numpy as np

from frictax.jax_internals import Tracer

from .key import KNOWN_PACKAGES

_ARRAYS = (jax.Array, np.ndarray, np.generic)
_EXACT = (bool, int, str, bytes, type(None))  # types whose equal values have the same effect
_NUMBERS = (float, complex)  # -0.0 == 0.0, so the text of a number replaces its value
_CONTAINERS = (dict, tuple, list, set, frozenset)
_WRAPPERS: dict[type, tuple[str, ...]] = {  # attributes of objects that contain a function
    MethodType: ("__func__", "__self__"),
    functools.partial: ("func", "args", "keywords"),
    property: ("fget",),
    functools.cached_property: ("func",),
    staticmethod: ("__func__",),
    classmethod: ("__func__",),
}


class _Same:
    """An object that is compared by identity. `_Same` keeps the object alive, because a new object
    can get the `id` of a deleted object.
    """

    def __init__(self, thing: Any) -> None:
        self.thing = thing

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.thing is self.thing

    def __hash__(self) -> int:
        return id(self.thing)


@dataclasses.dataclass(frozen=True)
class Data:
    """The content of all objects that functions read. JAX treats it as one static argument."""

    content: tuple[Any, ...]


class UsersData:
    """The data that the functions and classes of users in `things` read."""

    def __init__(self, things: Any) -> None:
        self.code = find_users_code(things)
        self._when_traced: dict[Data, Data] = {}

    def read(self) -> Data | None:
        """Return the data at present; None if `things` do not contain a user's code."""
        if not self.code:
            return None
        data = read_content(self.code)
        return self._when_traced.get(data, data)

    def note_trace(self, before: Data | None) -> None:
        """Note that the functions were traced since `read` returned `before`. A function that
        changes its own data, such as a counter, changes them only when JAX traces the function.
        These changes do not require another program.
        """
        after = self.read()
        if before is not None and after is not None and after != before:
            self._when_traced[after] = before


def find_users_code(things: Any) -> tuple[Any, ...]:
    """Return the functions, classes and other objects of users in a pytree, in its static fields,
    in closures, and in objects of frictax. Arrays of the pytree are arguments of a program, so they
    are not data.
    """
    found, waiting, visited = [], [things], {}
    while waiting:
        x = waiting.pop()
        if isinstance(x, (*_EXACT, *_NUMBERS, *_ARRAYS)) or id(x) in visited:
            continue
        visited[id(x)] = x  # This reference keeps `x` alive, so that its `id` stays unique.
        if isinstance(x, _CONTAINERS) or not jax.tree_util.all_leaves([x]):
            waiting += _parts(x, frozenset())[1]
        elif isinstance(x, functools.partial | SimpleNamespace) or _is_users(x):
            found.append(x)
        elif isinstance(x, FunctionType | MethodType):
            waiting += _parts(x, frozenset())[1]
        elif type(x).__module__.startswith("frictax."):
            waiting += getattr(x, "__dict__", {}).values()
    return tuple(found)


def read_content(code: Iterable[Any]) -> Data:
    """Return the content of all objects that are reached from `code`. Two contents are equal only
    if no object has changed.
    """
    content: list[Any] = []
    visited: dict[Any, tuple[int, Any]] = {}
    waiting: list[tuple[Any, frozenset[str]]] = [(x, frozenset()) for x in code]
    while waiting:
        x, names = waiting.pop()
        kind = type(x)
        # A function reads only some names of a module.
        key = (id(x), names if kind is ModuleType else None)
        if kind in _EXACT:
            content.append((kind, x))
        elif kind in _NUMBERS:
            content.append((kind, repr(x)))
        elif key in visited:
            content.append(visited[key][0])
        elif len(content) >= 10_000:  # largest number of objects whose content is compared
            content.append(_Same(x))
        else:
            visited[key] = len(visited), x  # This reference keeps `x` alive.
            own, parts, names = _parts(x, names)
            content.append((own, len(parts)))
            waiting += [(part, names) for part in parts]
    return Data(tuple(content))


def refuse_traced_data(things: Any) -> None:
    """Raise `ValueError` if a user's code in `things` reads a traced number (a placeholder of JAX)
    that is not an array of the pytree `things`. A transformation of a run does not reach such a
    number. For example, derivatives of the run omit it.
    """
    waiting: list[Any] = [(x, frozenset(), x, x) for x in find_users_code(things)]
    visited: dict[Any, Any] = {}
    while waiting and len(visited) < 10_000:
        # `reader`: the function or class that reads `x`. `value`: its variable that contains `x`.
        x, names, reader, value = waiting.pop()
        if isinstance(x, Tracer):
            attributes = getattr(reader, "__dict__", {}).items()
            known = _variables(reader) if isinstance(reader, FunctionType) else attributes
            found = [f"the variable `{name}`" for name, one in known if one is value]
            name = getattr(reader, "__qualname__", type(reader).__qualname__)
            raise ValueError(
                f"Each number in `{name}` that `jax.grad`, `jax.vmap` or `jax.jit` traces must be a"
                " field of the machine or law, or an entry of `args`, got"
                f" {(*found, 'data')[0]} from outside. Derivatives of a run would omit this number."
                " Write a field, such as `k: jax.Array`, and read `self.k`."
            )
        key = (id(x), names if isinstance(x, ModuleType) else None)
        if key in visited or isinstance(x, (*_EXACT, *_NUMBERS, *_ARRAYS)):
            continue
        visited[key] = x  # This reference keeps `x` alive.
        _, parts, names = _parts(x, names)
        reads = isinstance(x, FunctionType | type)
        waiting += [(part, names, *((x, part) if reads else (reader, value))) for part in parts]


def _parts(x: Any, names: frozenset[str]) -> tuple[Any, Sequence[Any], frozenset[str]]:
    """Return what identifies the object itself, the objects that it contains, and the names of the
    attributes that a function reads. `names`: these names for the function that reads `x`.
    """
    if isinstance(x, _ARRAYS):
        return _array_content(x), (), names
    if isinstance(x, FunctionType):
        return _parts_of_function(x)
    if isinstance(x, _CONTAINERS):
        return type(x), [*x, *x.values()] if isinstance(x, dict) else list(x), names
    if isinstance(x, ModuleType):
        read = [] if _is_known(x.__name__) else sorted(names & vars(x).keys())
        return (_Same(x), *read), [vars(x)[name] for name in read], names
    if isinstance(x, type):
        return _Same(x), _attributes_of_class(x), names
    for kind, attributes in _WRAPPERS.items():
        if isinstance(x, kind):
            return kind, [getattr(x, name) for name in attributes], names
    children, structure = jax.tree.flatten(x, is_leaf=lambda part: part is not x)
    if len(children) != 1 or children[0] is not x:
        return type(x), [structure.node_data(), *children], names
    if getattr(x, "__wrapped__", None) is not None:
        return type(x), [x.__wrapped__], names
    if isinstance(x, SimpleNamespace) or _is_users(type(x)):
        return type(x), [type(x), getattr(x, "__dict__", None)], names
    return _Same(x), (), names


def _attributes_of_class(cls: type) -> list[Any]:
    """Return the attributes that users wrote in a class and in its base classes."""
    items = [item for of in cls.__mro__ if _is_users(of) for item in vars(of).items()]
    # Python itself makes the other attributes, such as `__doc__` and `_abc_impl`.
    return [
        v for n, v in items if isinstance(v, FunctionType) or n[:2] != "__" and n[:5] != "_abc_"
    ]


def _parts_of_function(f: FunctionType) -> tuple[Any, Sequence[Any], frozenset[str]]:
    """Return the code of a function, the objects that it reads, and the names of attributes that it
    reads. Functions of packages read only their closures.
    """
    values = [value for _, value in _variables(f)]
    if not _is_users(f):
        return f.__code__, values, frozenset()
    _, imported, names = names_in(f.__code__)
    own = (f.__defaults__, f.__kwdefaults__, f.__dict__)
    return f.__code__, [*own, *values, *(sys.modules.get(name) for name in imported)], names


def _variables(f: FunctionType) -> list[tuple[str, Any]]:
    """Return names and values of the variables that a function reads from its closure and, if a
    user wrote the function, from its module.
    """
    found = []
    for name, cell in zip(f.__code__.co_freevars, f.__closure__ or (), strict=True):
        with contextlib.suppress(ValueError):  # The variable of the closure has no value yet.
            found.append((name, cell.cell_contents))
    if _is_users(f):
        found += [(name, f.__globals__.get(name)) for name in names_in(f.__code__)[0]]
    return found


@functools.lru_cache(maxsize=4096)
def names_in(code: CodeType) -> tuple[Sequence[str], Sequence[str], frozenset[str]]:
    """Return the global names that a function reads, the modules that it imports, and all names in
    its code, including functions inside this function.
    """
    read, imported, names, codes = set[str](), set[str](), set[str](), [code]
    while codes:
        one = codes.pop()
        codes += [x for x in one.co_consts if isinstance(x, CodeType)]
        names |= set(one.co_names)
        for instruction in dis.get_instructions(one):
            if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
                read.add(instruction.argval)
            elif instruction.opname == "IMPORT_NAME":
                imported.add(instruction.argval)
    return sorted(read), sorted(imported), frozenset(names)


def _array_content(x: Any) -> Any:
    """Return a value that changes if the array changes. An array of JAX does not change, so a large
    one (above 1 MB) is compared by identity. Hashing an array of NumPy takes about 1 ms per MB.
    """
    if isinstance(x, Tracer) or (isinstance(x, jax.Array) and x.nbytes > 1e6):
        return _Same(x)
    try:
        values = np.asarray(x)
    except (RuntimeError, TypeError):  # a deleted array, or random keys
        return _Same(x)
    if values.dtype.hasobject:
        return _Same(x)
    content = values.tobytes()
    if len(content) > 64:  # [bytes] a longer content is replaced by its hash, to save memory
        content = hashlib.sha256(content).digest()
    return type(x), str(values.dtype), values.shape, getattr(x, "weak_type", False), content


def _is_users(x: Any) -> bool:
    """Return whether a user wrote the function, the class, or the class of the object."""
    module = getattr(x, "__module__", type(x).__module__)
    return _is_users_module(module if isinstance(module, str) else "")


@functools.lru_cache(maxsize=4096)
def _is_users_module(name: str) -> bool:
    """Return whether a module is not installed and not a part of Python."""
    package = sys.modules.get(name.partition(".")[0])
    place = f"{getattr(package, '__file__', '')} {getattr(package, '__path__', '')}"
    return not (_is_known(name) or "site-packages" in place or "dist-packages" in place)


def _is_known(name: str) -> bool:
    package = name.partition(".")[0]
    return package in KNOWN_PACKAGES or package in sys.stdlib_module_names
