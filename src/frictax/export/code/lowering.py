"""Translation of a JAX program (a jaxpr) into scalar statements.

A JAX array becomes a numpy array (dtype object) of scalar atoms. Therefore numpy can do the
operations that only move entries. Jitted calls with the names in `Program.outlined` stay functions.
"""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from frictax.jax_internals import JaxLiteral, without_dead_code

from .statements import (
    REAL,
    TRUTH,
    WHOLE,
    Array,
    Atom,
    Break,
    Builder,
    Call,
    Entry,
    Function,
    If,
    Let,
    Literal,
    Loop,
    Set,
    Store,
    Variable,
    live_statements,
    statements_of,
)

_SAME_NAME = (
    "add sub mul div rem pow atan2 nextafter eq ne lt le gt ge max min and or neg exp log sqrt sin"
    " cos tan tanh sinh cosh asin acos atan floor ceil log1p expm1 abs sign cbrt erf round not"
)
ELEMENTWISE = {name: name for name in _SAME_NAME.split()} | {
    "add_any": "add", "lt_to": "lt", "le_to": "le", "xor": "ne", "is_finite": "finite",
}  # fmt: skip
UNCHANGED = (
    "stop_gradient copy copy_p optimization_barrier device_put reduce_precision nondifferentiable"
    " unvmap_any unvmap_all name sharding_constraint"
).split()
BODIES = "jaxpr call_jaxpr call fun_jaxpr".split()  # parameters that contain a jaxpr
FOLDS = {"sum": "add", "prod": "mul", "max": "max", "min": "min", "and": "and", "or": "or"}
MOST_CARRIED = 4000  # most numbers that a loop may update; more make megabytes of code
UNROLLED = 32  # most iterations of a loop over rows, which is unrolled
CHOSEN = 3  # most entries for a selection by conditions; a longer array is indexed
ZERO, ONE, TRUE = Literal(0, WHOLE), Literal(1.0, REAL), Literal(True, TRUTH)


class CannotBeWritten(ValueError):
    """Error for an operation of a machine that the code cannot express."""


def kind_of(x: Any) -> str:
    """Return the kind of the numbers of an array or of a variable of a jaxpr."""
    dtype = x.aval.dtype if hasattr(x, "aval") else x.dtype
    whole = WHOLE if np.issubdtype(dtype, np.integer) else REAL
    return TRUTH if np.issubdtype(dtype, np.bool_) else whole


def array_of(atoms: Sequence[Any], shape: Sequence[int]) -> np.ndarray:
    """Return an array with these entries in C order."""
    out = np.empty(len(atoms), object)
    out[:] = atoms
    return out.reshape(tuple(shape))


def each(function: Callable[..., Any], *arrays: np.ndarray) -> np.ndarray:
    """Apply a function entry by entry; arrays are broadcast by the rules of numpy."""
    spread = np.broadcast_arrays(*arrays)
    rows = zip(*(a.reshape(-1) for a in spread), strict=True)
    return array_of([function(*atoms) for atoms in rows], spread[0].shape)


def constant(value: Any) -> np.ndarray:
    value = np.asarray(value)
    return array_of([Literal(x, kind_of(value)) for x in value.reshape(-1).tolist()], value.shape)


def whole_number(value: Any) -> Literal:
    return Literal(int(value), WHOLE)


class Program:
    """All functions of the code of one machine.

    - `outlined`: names of jitted functions that stay functions. A call with other literals or
      arrays makes another function.
    - `shared`: names of jitted functions with literals as arguments, so that all such calls use one
      function.
    """

    def __init__(self, outlined: Sequence[str] = (), shared: Sequence[str] = ()) -> None:
        self.functions: list[Function] = []
        self.tables: list[Array] = []
        self.outlined, self.shared = {*outlined, *shared}, set(shared)
        self._made: dict[Any, Function] = {}
        self._kept: list[Any] = []  # keeps jaxprs alive, so that an `id` is unique

    def table(self, values: Sequence[Any], kind: str) -> Array:
        """Return a constant array with these values."""
        for table in self.tables:
            if table.kind == kind and table.values == tuple(values):
                return table
        name = f"table{len(self.tables)}"
        self.tables.append(Array(name, kind, len(values), tuple(values)))
        return self.tables[-1]

    def trace(
        self,
        name: str,
        function: Callable[..., Any],
        arguments: dict[str, Any],
        arrays: Sequence[str],
        copied: Sequence[str] = (),
    ) -> None:
        """Add a function by tracing it.

        `arrays`: arguments passed as arrays; `copied`: arguments passed as arrays whose entries are
        copied to variables at the start. All other arguments are passed as one scalar for each
        entry.
        """
        closed = jax.make_jaxpr(function)(*arguments.values())
        made, lowering = Function(name), Lowering(self, inlines=True)
        values = list[np.ndarray]()
        for argument, variable in zip(arguments, closed.jaxpr.invars, strict=True):
            shape, kind = variable.aval.shape, kind_of(variable)
            array = Array(argument, kind, math.prod(shape))
            names = [f"{argument}{i}" for i in range(array.size)] if shape else [argument]
            atoms: list[Any] = [Variable(name, kind) for name in names]
            if argument in arrays:
                atoms = [Entry(array, i) for i in range(array.size)]
            elif argument in copied:
                for i, atom in enumerate(atoms):
                    lowering.b.append(Let(atom, "load", [array, whole_number(i)]))
            made.inputs += [array] if argument in (*arrays, *copied) else atoms
            values.append(array_of(atoms, shape))
        self._finish(made, lowering, closed, values)
        made.returned = list(range(len(made.outputs)))

    def _finish(self, made: Function, lowering: "Lowering", closed: Any, values: Any) -> None:
        self._kept.append(closed)
        results = lowering.jaxpr(without_dead_code(closed.jaxpr), closed.consts, values)
        made.outputs = [atom for result in results for atom in result.reshape(-1)]
        made.body = live_statements(lowering.b.blocks[0], made.outputs)
        given = {id(x) for x in made.inputs}
        made.returned = [
            i for i, x in enumerate(made.outputs) if isinstance(x, Variable) and id(x) not in given
        ]
        self.functions.append(made)

    def outline(self, name: str, closed: Any, values: Sequence[np.ndarray]) -> Any:
        """Return the function of a jitted call, and the arguments of the call. Literals and entries
        of arrays are written into the function, but a shared function gets literals as arguments.
        """
        atoms = [atom for value in values for atom in value.reshape(-1)]
        bound = Entry if name in self.shared else Entry | Literal
        keys = tuple(atom.key if isinstance(atom, bound) else None for atom in atoms)
        if (id(closed), keys) not in self._made:
            made = Function(f"{name}_{len(self._made)}" if self._made else name)
            self._made[id(closed), keys] = made
            inside, numbers = list[Any](), list[Variable]()
            for atom, key in zip(atoms, keys, strict=True):
                if key is None:
                    numbers.append(Variable(f"a{len(numbers)}", atom.kind))
                inside.append(atom if key is not None else numbers[-1])
            arrays = [x.array for x in inside if isinstance(x, Entry) and x.array.values is None]
            made.inputs = [*dict.fromkeys(arrays), *numbers]
            ends = np.cumsum([value.size for value in values])
            parts = [
                array_of(inside[end - value.size : end], value.shape)
                for value, end in zip(values, ends, strict=True)
            ]
            self._finish(made, Lowering(self), closed, parts)
        made = self._made[id(closed), keys]
        passed = [atom for atom, key in zip(atoms, keys, strict=True) if key is None]
        return made, [*(x for x in made.inputs if isinstance(x, Array)), *passed]

    def keep_called(self, roots: Sequence[str]) -> None:
        """Remove functions that `roots` do not call; sort the others so that callees come first."""
        kept: dict[Function, None] = {}

        def add(function: Function) -> None:
            for statement in statements_of(function.body):
                if isinstance(statement, Call) and statement.function not in kept:
                    add(statement.function)
            kept[function] = None

        for function in [f for f in self.functions if f.name in roots]:
            add(function)
        self.functions = list(kept)


class Lowering:
    """The statements of one function. `inlines`: whether the bodies of called functions are copied
    into it, except those of shared functions.
    """

    def __init__(self, program: Program, inlines: bool = False) -> None:
        self.program, self.inlines, self.b = program, inlines, Builder()
        self.let = self.b.let

    def jaxpr(self, jaxpr: Any, consts: Sequence[Any], arguments: Sequence[np.ndarray]) -> list:
        known = dict(zip(jaxpr.constvars, map(constant, consts), strict=True))
        known.update(zip(jaxpr.invars, arguments, strict=True))

        def read(x: Any) -> np.ndarray:
            return constant(x.val) if isinstance(x, JaxLiteral) else known[x]

        for eqn in jaxpr.eqns:
            results = self.equation(eqn, [read(x) for x in eqn.invars])
            known.update(zip(eqn.outvars, results, strict=True))
        return [read(x) for x in jaxpr.outvars]

    def lower_closed(self, closed: Any, arguments: Sequence[np.ndarray]) -> list[np.ndarray]:
        return self.jaxpr(
            getattr(closed, "jaxpr", closed), getattr(closed, "consts", ()), arguments
        )

    def equation(self, eqn: Any, values: list[np.ndarray]) -> list[np.ndarray]:
        name, params = eqn.primitive.name, eqn.params
        if name in UNCHANGED:
            return values[:1]
        if name in ELEMENTWISE:
            bits = name in ("and", "or", "xor", "not") and kind_of(eqn.invars[0]) != TRUTH
            if not bits:
                return [each(functools.partial(self.let, ELEMENTWISE[name]), *values)]
        elif (rule := RULES.get(name)) is not None:
            result = rule(self, eqn, values, **params)
            return result if isinstance(result, list) else [result]
        elif any(key in params for key in BODIES) and name != "scan":
            return self.call(eqn, values, next(params[k] for k in BODIES if k in params))
        raise CannotBeWritten(
            f"The machine uses `{name}` of JAX, for which frictax has no code. Write its equations"
            " without it."
        )

    def call(self, eqn: Any, values: list[np.ndarray], closed: Any) -> list[np.ndarray]:
        name, program = eqn.params.get("name"), self.program
        if name not in program.outlined or (self.inlines and name not in program.shared):
            return self.lower_closed(closed, values)
        function, atoms = program.outline(name, closed, values)
        key = "call", function.name, *(x.key for x in atoms if not isinstance(x, Array))
        results = self.b.recall(key)
        if results is None:
            given = dict(zip(map(id, function.inputs), atoms, strict=True))
            results = [given.get(id(x), x) for x in function.outputs]
            for i in function.returned:
                results[i] = Variable(self.b.name(), results[i].kind)
            if function.returned:
                self.b.append(Call(function, atoms, [results[i] for i in function.returned]))
            self.b.keep(key, results)
        ends = np.cumsum([x.aval.size for x in eqn.outvars])
        return [
            array_of(results[end - x.aval.size : end], x.aval.shape)
            for x, end in zip(eqn.outvars, ends, strict=True)
        ]

    # The following methods use entries whose index is known only when the code runs.

    def entry(self, value: np.ndarray, index: Any) -> Atom:
        """Return the entry of `value` at an index in C order."""
        atoms = list(value.reshape(-1))
        first = atoms[0]
        if isinstance(index, Literal):
            return atoms[index.value]
        if all(x == first for x in atoms):
            return first
        if len(atoms) <= CHOSEN:
            return self.choose(index, atoms)
        if isinstance(first, Entry) and atoms == [
            Entry(first.array, first.index + i) for i in range(len(atoms))
        ]:
            return self.b.load(first.array, self.let("add", index, whole_number(first.index)))
        if all(isinstance(x, Literal) for x in atoms):
            return self.b.load(self.program.table([x.value for x in atoms], first.kind), index)
        key = "local", *(x.key for x in atoms)
        if (array := self.b.recall(key)) is None:
            array = Array(self.b.name("r"), first.kind, len(atoms), local=True)
            for i, atom in enumerate(atoms):
                self.b.append(Store(array, whole_number(i), atom))
            self.b.keep(key, array)
        return self.b.load(array, index)

    def choose(self, which: Any, cases: Sequence[Any]) -> Any:
        """Return the atom of `cases` that the number `which` selects."""
        if which.kind == TRUTH:
            return self.let("select", which, cases[1], cases[0])
        out = cases[-1]
        for i in range(len(cases) - 2, -1, -1):
            out = self.let("select", self.let("eq", which, whole_number(i)), cases[i], out)
        return out

    def clip(self, index: Any, most: int) -> Any:
        return self.let("max", self.let("min", index, whole_number(most)), ZERO)

    def is_inside(self, index: Any, most: int) -> Any:
        return self.let(
            "and", self.let("le", ZERO, index), self.let("le", index, whole_number(most))
        )

    def offset(self, shape: Sequence[int], indices: dict[int, Any]) -> Any:
        """Return an entry's index in C order; `indices` by axis, 0 for an axis without one."""
        out: Any = ZERO
        for axis, index in indices.items():
            step = self.let("mul", whole_number(math.prod(shape[axis + 1 :])), index)
            out = self.let("add", out, step)
        return out

    def put(self, items: np.ndarray, index: Any, change: Callable[[Any], Any], fits: Any) -> None:
        """Change the entry of `items` at `index` if the condition `fits` is true."""
        for i in range(items.size):
            here = self.let("and", fits, self.let("eq", index, whole_number(i)))
            items[i] = self.let("select", here, change(items[i]), items[i])

    # The following methods write loops and branches.

    def variables(self, like: Sequence[Any]) -> list[np.ndarray]:
        """Return new variables for values with the shapes and kinds of `like`."""
        return [
            array_of(
                [Variable(self.b.name("m"), kind_of(x)) for _ in range(x.aval.size)], x.aval.shape
            )
            for x in like
        ]

    def assign(self, to: Sequence[np.ndarray], values: Sequence[np.ndarray], late=False) -> None:
        pairs = [
            (place, atom)
            for places, value in zip(to, values, strict=True)
            for place, atom in zip(places.reshape(-1), value.reshape(-1), strict=True)
            if place is not atom
        ]
        changed = {id(place) for place, _ in pairs}
        # At the end of an iteration all variables change at once. A variable that is the new value
        # of another variable is copied first.
        atoms = [self.b.copy(x) if late and id(x) in changed else x for _, x in pairs]
        for (place, _), atom in zip(pairs, atoms, strict=True):
            self.b.append(Set(place, atom, late))

    def branch(self, eqn: Any, values: list[np.ndarray], *, branches, **_) -> list[np.ndarray]:
        choice: Any = values[0][()]
        rest, last = values[1:], len(branches) - 1
        if isinstance(choice, Literal):
            return self.lower_closed(branches[min(max(int(choice.value), 0), last)], rest)
        results = self.variables(eqn.outvars)

        def write(k: int) -> list[Any]:
            self.b.open()
            if k < last:
                is_truth = choice.kind == TRUTH
                test = (
                    self.let("not", choice) if is_truth else self.let("le", choice, whole_number(k))
                )
                self.b.append(If(test, write_one(k), write(k + 1)))
            else:
                self.assign(results, self.lower_closed(branches[k], rest))
            return self.b.close()

        def write_one(k: int) -> list[Any]:
            self.b.open()
            self.assign(results, self.lower_closed(branches[k], rest))
            return self.b.close()

        for statement in write(0):
            self.b.append(statement)
        return results

    def loop(self, eqn, values, *, cond_jaxpr, body_jaxpr, cond_nconsts, body_nconsts, **_) -> Any:
        first = cond_nconsts + body_nconsts
        if sum(value.size for value in values[first:]) > MOST_CARRIED:
            raise CannotBeWritten(
                f"A loop of the machine carries more than {MOST_CARRIED} numbers, which would make"
                " code of megabytes. Carry less in it."
            )
        state = self.variables(eqn.outvars)
        self.assign(state, values[first:])
        self.b.open()
        (goes_on,) = self.lower_closed(cond_jaxpr, [*values[:cond_nconsts], *state])
        self.b.append(Break(self.let("not", goes_on[()])))
        after = self.lower_closed(body_jaxpr, [*values[cond_nconsts:first], *state])
        self.assign(state, after, late=True)
        self.b.append(Loop(self.b.close()))
        return state

    def scan(self, eqn, values, *, jaxpr, length, reverse, num_consts, num_carry, **_) -> Any:
        first = num_consts + num_carry
        constants, state, rows = values[:num_consts], values[num_consts:first], values[first:]
        kept = [np.empty(x.aval.shape, object) for x in eqn.outvars[num_carry:]]
        if not rows and not kept and length > 2:
            now = self.variables(eqn.outvars)
            self.assign(now, state)
            self.b.open()
            self.assign(now, self.lower_closed(jaxpr, [*constants, *now]), late=True)
            self.b.append(Loop(self.b.close(), length))
            return now
        if length > UNROLLED:
            raise CannotBeWritten(
                f"A loop of the machine goes over {length} rows, which would make long code. Loop"
                f" over at most {UNROLLED}."
            )
        for i in range(length)[:: -1 if reverse else 1]:
            parts = [row[i : i + 1].reshape(row.shape[1:]) for row in rows]
            results = self.lower_closed(jaxpr, [*constants, *state, *parts])
            state = results[:num_carry]
            for to, row in zip(kept, results[num_carry:], strict=True):
                to[i : i + 1] = row
        return [*state, *kept]


# The following functions move entries.


def _reshape(low: Lowering, eqn: Any, values: list[np.ndarray], **_) -> np.ndarray:
    return values[0].reshape(eqn.outvars[0].aval.shape)


def _slice(low, eqn, values, *, start_indices, limit_indices, strides, **_) -> np.ndarray:
    steps = strides or [1] * len(start_indices)
    return values[0][tuple(map(slice, start_indices, limit_indices, steps))]


def _broadcast(low, eqn, values, *, shape, broadcast_dimensions, **_) -> np.ndarray:
    inner = [1] * len(shape)
    for axis, size in zip(broadcast_dimensions, values[0].shape, strict=True):
        inner[axis] = size
    return np.broadcast_to(values[0].reshape(inner), shape)


def _move(low, eqn, values, **params) -> list[np.ndarray]:
    """Apply any other operation that only moves entries: JAX moves the indices of the entries."""
    ends = np.cumsum([value.size for value in values])
    numbers = [
        np.arange(end - v.size, end).reshape(v.shape) for v, end in zip(values, ends, strict=True)
    ]
    moved = eqn.primitive.bind(*numbers, **params)
    atoms = np.concatenate([value.reshape(-1) for value in values])
    return [atoms[np.asarray(x)] for x in (moved if eqn.primitive.multiple_results else [moved])]


# The following functions compute arithmetic operations.


def _integer_power(low, eqn, values, *, y, **_) -> np.ndarray:
    multiply = functools.partial(low.let, "mul")
    powers = each(lambda x: functools.reduce(multiply, [x] * abs(y), ONE), values[0])
    return powers if y >= 0 else each(lambda x: low.let("div", ONE, x), powers)


def _logistic(low, eqn, values, **_) -> np.ndarray:
    let = low.let
    return each(lambda x: let("div", ONE, let("add", ONE, let("exp", let("neg", x)))), values[0])


def _clamp(low, eqn, values, **_) -> np.ndarray:
    let = low.let
    return each(lambda least, x, most: let("min", let("max", x, least), most), *values)


def _reduce(low: Lowering, eqn: Any, values: list[np.ndarray], *, axes, **_) -> np.ndarray:
    operation = FOLDS[eqn.primitive.name.removeprefix("reduce_")]
    rest = [k for k in range(values[0].ndim) if k not in axes]
    shape = [values[0].shape[k] for k in rest]
    rows = values[0].transpose(*rest, *axes).reshape(math.prod(shape), -1)
    empty = Literal(
        {"add": 0, "mul": 1, "and": True}.get(operation, False), kind_of(eqn.outvars[0])
    )
    fold = functools.partial(low.let, operation)
    totals = [functools.reduce(fold, row) if row.size else empty for row in rows]
    return array_of(totals, shape)


def _position(low: Lowering, eqn: Any, values: list[np.ndarray], *, axes, **_) -> np.ndarray:
    """Write argmax or argmin. The first of equal entries is taken, and NaN precedes all numbers."""
    let, is_most = low.let, eqn.primitive.name == "argmax"
    rows = np.moveaxis(values[0], axes[0], -1)

    def position(row: np.ndarray) -> Any:
        best, place = row[0], ZERO
        for i, x in enumerate(row[1:], 1):
            less, more = (best, x) if is_most else (x, best)
            if x.kind == TRUTH:
                wins = let("and", more, let("not", less))
            else:
                wins = let("lt", less, more)
            if x.kind == REAL:
                is_first_nan = let("and", let("ne", x, x), let("eq", best, best))
                wins = let("or", wins, is_first_nan)
            best, place = let("select", wins, x, best), let("select", wins, whole_number(i), place)
        return place

    flat = rows.reshape(-1, rows.shape[-1])
    return array_of([position(row) for row in flat], rows.shape[:-1])


def _dot(low, eqn, values, *, dimension_numbers, **_) -> np.ndarray:
    (over_a, over_b), (batch_a, batch_b) = dimension_numbers

    def rows(x: np.ndarray, over: Sequence[int], batch: Sequence[int]) -> np.ndarray:
        rest = [k for k in range(x.ndim) if k not in (*over, *batch)]
        sizes = [math.prod(x.shape[k] for k in axes) for axes in (batch, rest, over)]
        return x.transpose(*batch, *rest, *over).reshape(sizes)

    left, right = rows(values[0], over_a, batch_a), rows(values[1], over_b, batch_b)
    add, mul = (functools.partial(low.let, name) for name in ("add", "mul"))
    entries = [
        functools.reduce(add, map(mul, x, y), Literal(0.0, REAL))
        for some, others in zip(left, right, strict=True)
        for x in some
        for y in others
    ]
    return array_of(entries, eqn.outvars[0].aval.shape)


# The following functions use entries whose index is known only when the code runs.


def _place(low: Lowering, whole_shape: Any, part_shape: Any, starts: Any) -> list[Any]:
    """Return the indices in C order of the entries of a sub-array that begins at `starts`."""
    free = {
        k: low.clip(start[()], n - m)
        for k, (start, n, m) in enumerate(zip(starts, whole_shape, part_shape, strict=True))
        if n != m
    }
    base = low.offset(whole_shape, free)
    inside = np.arange(math.prod(whole_shape)).reshape(whole_shape)
    indices = inside[tuple(map(slice, part_shape))].reshape(-1)
    return [low.let("add", base, whole_number(i)) for i in indices]


def _dynamic_slice(low, eqn, values, *, slice_sizes, **_) -> np.ndarray:
    source, *starts = values
    indices = _place(low, source.shape, slice_sizes, starts)
    return array_of([low.entry(source, i) for i in indices], slice_sizes)


def _dynamic_update_slice(low, eqn, values, **_) -> np.ndarray:
    source, part, *starts = values
    items = source.reshape(-1).copy()
    indices = _place(low, source.shape, part.shape, starts)
    for index, atom in zip(indices, part.reshape(-1), strict=True):
        low.put(items, index, lambda _, atom=atom: atom, TRUE)
    return items.reshape(source.shape)


def _gather(low, eqn, values, *, dimension_numbers: Any, slice_sizes, mode, **_) -> np.ndarray:
    source, indices = values
    numbers, out = dimension_numbers, np.empty(eqn.outvars[0].aval.shape, object)
    batched = numbers.operand_batching_dims
    window = [k for k in range(source.ndim) if k not in (*numbers.collapsed_slice_dims, *batched)]
    batch = [k for k in range(out.ndim) if k not in numbers.offset_dims]
    for place in np.ndindex(out.shape):
        at = tuple(place[k] for k in batch)
        axes: dict[int, Any] = dict.fromkeys(range(source.ndim), ZERO)
        fits: Any = TRUE
        for k, axis in enumerate(numbers.start_index_map):
            most = source.shape[axis] - slice_sizes[axis]
            axes[axis] = low.clip(indices[(*at, k)], most)
            if "FILL" in str(mode):
                fits = low.let("and", fits, low.is_inside(indices[(*at, k)], most))
        for axis, k in zip(window, numbers.offset_dims, strict=True):
            axes[axis] = low.let("add", axes[axis], whole_number(place[k]))
        for axis, k in zip(batched, numbers.start_indices_batching_dims, strict=True):
            axes[axis] = whole_number(at[k])
        found = low.entry(source, low.offset(source.shape, axes))
        missing = {REAL: math.nan, WHOLE: 0, TRUTH: False}[found.kind]
        out[place] = low.let("select", fits, found, Literal(missing, found.kind))
    return out


def _scatter(low, eqn, values, *, dimension_numbers: Any, **_) -> np.ndarray:
    source, indices, updates = values
    numbers, items = dimension_numbers, source.reshape(-1).copy()
    batched = numbers.operand_batching_dims
    window = [k for k in range(source.ndim) if k not in (*numbers.inserted_window_dims, *batched)]
    batch = [k for k in range(updates.ndim) if k not in numbers.update_window_dims]
    adds = eqn.primitive.name != "scatter"
    for place in np.ndindex(updates.shape):
        at, new = tuple(place[k] for k in batch), updates[place]
        axes: dict[int, Any] = dict.fromkeys(range(source.ndim), ZERO)
        fits: Any = TRUE
        for axis, k in zip(batched, numbers.scatter_indices_batching_dims, strict=True):
            axes[axis] = whole_number(at[k])
        for axis, k in zip(window, numbers.update_window_dims, strict=True):
            axes[axis] = whole_number(place[k])
        for k, axis in enumerate(numbers.scatter_dims_to_operand_dims):
            index = indices[(*at, k)]
            fits = low.let("and", fits, low.is_inside(index, source.shape[axis] - 1))
            axes[axis] = low.let("add", axes[axis], index)
        change = lambda old, new=new: low.let("add", old, new) if adds else new  # noqa: E731
        low.put(items, low.offset(source.shape, axes), change, fits)
    return items.reshape(source.shape)


def _platform(low, eqn, values, *, platforms, **_) -> np.ndarray:
    """Return the index of the CPU's branch of `platform_dependent`."""
    fits = (k for k, names in enumerate(platforms) if names is None or "cpu" in names)
    return constant(np.int32(next(fits, len(platforms))))


RULES: dict[str, Callable[..., Any]] = {
    "cond": Lowering.branch,
    "while": Lowering.loop,
    "scan": Lowering.scan,
    **dict.fromkeys(("squeeze", "reshape", "expand_dims"), _reshape),
    "slice": _slice,
    "broadcast_in_dim": _broadcast,
    "transpose": lambda low, eqn, values, *, permutation, **_: values[0].transpose(permutation),
    "concatenate": lambda low, eqn, values, *, dimension, **_: np.concatenate(values, dimension),
    **dict.fromkeys(("stack", "split", "pad", "rev"), _move),
    "iota": lambda low, eqn, values, **params: constant(eqn.primitive.bind(**params)),
    "select_n": lambda low, eqn, values, **_: each(lambda k, *x: low.choose(k, x), *values),
    "clamp": _clamp,
    "convert_element_type": lambda low, eqn, values, **_: each(
        functools.partial(low.let, f"to_{kind_of(eqn.outvars[0])}"), values[0]
    ),
    "integer_pow": _integer_power,
    "square": lambda low, eqn, values, **_: each(lambda x: low.let("mul", x, x), values[0]),
    "logistic": _logistic,
    **{f"reduce_{name}": _reduce for name in FOLDS},
    **dict.fromkeys(("argmax", "argmin"), _position),
    "dot_general": _dot,
    "dynamic_slice": _dynamic_slice,
    "dynamic_update_slice": _dynamic_update_slice,
    "gather": _gather,
    **dict.fromkeys(("scatter", "scatter-add", "scatter_add"), _scatter),
    "platform_index": _platform,
}
