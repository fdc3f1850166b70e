"""Translate a JAX program (a jaxpr) into statements on single numbers (scalars).

A JAX array becomes a numpy array of atoms (literals, variables, array entries), whose entries numpy
can move. Jitted functions with names in `Program.outlined` remain separate functions in the code.
"""

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from frictax.jax_internals import JaxLiteral, expand_operation, scan_counts, without_dead_code

from .statements import REAL, TRUTH, WHOLE, Array, Builder, Entry, Function, Literal, Variable

MOST_CARRIED = 4000  # most numbers that a loop may update; more would make megabytes of code
UNROLLED = 32  # largest number of iterations of a loop that is unrolled
CHOSEN = 3  # largest array whose entry is selected by conditions; a longer array is indexed
ZERO, ONE, TRUE = Literal(0, WHOLE), Literal(1.0, REAL), Literal(True, TRUTH)


class CannotBeWritten(ValueError):
    """Error for an operation of a machine that the exported code cannot express."""


def kind_of(x: Any) -> str:
    """Return the kind of the numbers in an array: `REAL`, `WHOLE` or `TRUTH`."""
    return {"b": TRUTH, "i": WHOLE, "u": WHOLE}.get(x.dtype.kind, REAL)


def flat(arrays: Sequence[np.ndarray]) -> list[Any]:
    """Return a list of the atoms of all arrays, each array in C order."""
    return [atom for array in arrays for atom in array.reshape(-1)]


def array_of(atoms: Sequence[Any], shape: Sequence[int]) -> np.ndarray:
    """Return an array of this shape with the entries `atoms` in C order."""
    out = np.empty(len(atoms), object)
    out[:] = atoms
    return out.reshape(tuple(shape))


def split(atoms: Sequence[Any], like: Sequence[Any]) -> list[np.ndarray]:
    """Return arrays with the shapes of `like` and the entries `atoms`; the inverse of `flat`."""
    rest = iter(atoms)
    return [array_of([next(rest) for _ in range(x.size)], x.shape) for x in like]


def each(function: Callable[..., Any], *arrays: Any) -> np.ndarray:
    """Apply a function entry by entry to arrays, which are broadcast by the rules of numpy."""
    spread = np.broadcast_arrays(*arrays)
    return array_of(list(map(function, *(a.reshape(-1) for a in spread))), spread[0].shape)


def rows(x: np.ndarray, over: Sequence[Any], batch: Sequence[Any] = ()) -> np.ndarray:
    """Return `x` with three axes: the joined axes `batch`, all other axes, and the axes `over`."""
    rest = [k for k in range(x.ndim) if k not in (*over, *batch)]
    sizes = [math.prod(x.shape[k] for k in axes) for axes in (batch, rest, over)]
    return x.transpose(*batch, *rest, *over).reshape(sizes)


def constant(value: Any) -> np.ndarray:
    value = np.asarray(value)
    return array_of([Literal(x, kind_of(value)) for x in value.reshape(-1).tolist()], value.shape)


class Program:
    """The functions of the exported code of one machine.

    - `outlined`: names of jitted functions that stay functions. Calls with different literals or
      arrays call separate copies of such a function.
    - `shared`: names of jitted functions whose literals become arguments; all calls use one copy.
    - `copied`: names of array arguments whose entries are copied to variables at the start.
    """

    def __init__(
        self, outlined: Sequence[str] = (), shared: Sequence[str] = (), copied: Sequence[str] = ()
    ) -> None:
        self.outlined, self.shared, self.copied = {*outlined, *shared}, shared, copied
        self.functions, self.roots = list[Function](), list[str]()
        self.tables = dict[tuple[Literal, ...], Array]()
        self._made = dict[Any, Function]()

    def table(self, values: tuple[Literal, ...]) -> Array:
        """Return the constant array with these values; the first call adds it to the program."""
        new = Array(f"table{len(self.tables)}", values[0].kind, len(values), values)
        return self.tables.setdefault(values, new)

    def trace(self, name: str, function: Callable[..., Any], arguments: dict[str, Any]) -> None:
        """Trace a function and add its code, with copies of the functions that it calls."""
        closed = jax.make_jaxpr(function)(*arguments.values())
        made, lowering = Function(name), Lowering(self, inlines=True)
        values = list[np.ndarray]()
        for argument, x in zip(arguments, closed.in_avals, strict=True):
            array = Array(argument, kind_of(x), x.size)
            atoms: list[Any] = [Entry(array, i) for i in range(x.size)]
            if argument in self.copied:
                atoms = [Variable(f"{argument}{i}", array.kind) for i in range(x.size)]
                for i, atom in enumerate(atoms):
                    lowering.append("let", [array, Literal(i, WHOLE)], [atom], detail="load")
            if not x.shape:
                atoms = [Variable(argument, array.kind)]
            made.inputs += [array] if x.shape else atoms
            values.append(array_of(atoms, x.shape))
        self.roots.append(name)
        self._finish(made, lowering, closed, values)

    def _finish(self, made: Function, lowering: "Lowering", closed: Any, values: Any) -> None:
        live = closed.replace(jaxpr=without_dead_code(closed.jaxpr))
        outputs = flat(lowering.lower(live, values))
        made.finish(lowering.statements, outputs, made.name in self.roots)
        self.functions.append(made)

    def outline(self, name: str, closed: Any, values: Sequence[np.ndarray]) -> Any:
        """Return the function for a jitted call, and the arguments of the call. The function
        contains the call's literals and array entries; a shared function has literals as
        arguments."""
        bound = Entry if name in self.shared else Entry | Literal
        atoms, places = flat(values), itertools.count()
        passed = [x for x in atoms if not isinstance(x, bound)]
        inside: list[Any] = [
            x if isinstance(x, bound) else Variable(f"a{next(places)}", x.kind) for x in atoms
        ]
        arrays = list(dict.fromkeys(x.array for x in inside if isinstance(x, Entry)))
        key = closed, *map(repr, inside)
        if key not in self._made:
            made = Function(f"{name}_{len(self._made)}" if self._made else name)
            self._made[key] = made
            made.inputs = [*arrays, *(x for x in inside if isinstance(x, Variable))]
            self._finish(made, Lowering(self), closed, split(inside, values))
        return self._made[key], [*arrays, *passed]

    def called_functions(self) -> list[Function]:
        """Return the traced functions and all functions that they call, each before its callers."""
        called = set(self.roots)
        for function in reversed(self.functions):
            if function.name in called:
                calls = (s.detail for _, s in function.statements() if s.name == "call")
                called |= {callee.name for callee in calls}
        return [function for function in self.functions if function.name in called]


class Lowering(Builder):
    """The statements of one function. `inlines`: True to copy the code of called functions into
    these statements, except functions in `Program.shared`."""

    def __init__(self, program: Program, inlines: bool = False) -> None:
        super().__init__()
        self.program, self.inlines = program, inlines

    def lower(self, body: Any, arguments: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Append the statements of a jaxpr (plain or closed), and return its results."""
        jaxpr = getattr(body, "jaxpr", body)
        known = dict(zip(jaxpr.constvars, map(constant, getattr(body, "consts", ())), strict=True))
        known |= zip(jaxpr.invars, arguments, strict=True)

        def read(x: Any) -> np.ndarray:
            return constant(x.val) if isinstance(x, JaxLiteral) else known[x]

        for eqn in jaxpr.eqns:
            known |= zip(eqn.outvars, self.equation(eqn, list(map(read, eqn.invars))), strict=True)
        return list(map(read, jaxpr.outvars))

    def equation(self, eqn: Any, values: list[np.ndarray]) -> list[np.ndarray]:
        name, params = eqn.primitive.name, eqn.params
        is_bitwise = name in ("and", "or", "xor", "not") and kind_of(eqn.invars[0].aval) != TRUTH
        if name in RULES and not is_bitwise:
            result = RULES[name](self, eqn, *values, **params)
            return result if isinstance(result, list) else [result]
        for key in "jaxpr call_jaxpr call fun_jaxpr".split():  # a call of a function
            if key in params:
                return self.call(params.get("name"), params[key], eqn, values)
        if (called := expand_operation(eqn)) is not None:
            return self.lower(called, values)
        raise CannotBeWritten(
            f"The machine uses `{name}` of JAX, for which frictax has no code. Write its equations"
            " without it."
        )

    def call(self, name: Any, closed: Any, eqn: Any, values: list[np.ndarray]) -> list[np.ndarray]:
        if name not in (self.program.shared if self.inlines else self.program.outlined):
            return self.lower(closed, values)
        function, atoms = self.program.outline(name, closed, values)
        key = "call", function.name, *map(repr, atoms)
        if key not in self.known:
            results = {x: Variable(self.name(), x.kind) for x in function.results}
            if results:
                self.append("call", atoms, list(results.values()), detail=function)
            given = dict(zip(function.inputs, atoms, strict=True)) | results
            self.known[key] = [given.get(x, x) for x in function.outputs]
        return split(self.known[key], [x.aval for x in eqn.outvars])

    def variables(self, like: Sequence[Any]) -> list[np.ndarray]:
        """Return new variables for values with the shapes and kinds of `like`."""
        new = [Variable(self.name("m"), kind_of(x.aval)) for x in like for _ in range(x.aval.size)]
        return split(new, [x.aval for x in like])

    def assign(self, to: Sequence[np.ndarray], values: Sequence[np.ndarray], how="set") -> None:
        pairs = [(x, y) for x, y in zip(flat(to), flat(values), strict=True) if x is not y]
        changed = {place for place, _ in pairs}
        # "late" assigns all variables at the same time, so old values that are needed are copied.
        copies = {
            x: self.new("copy", (x,), x.kind) for _, x in pairs if how == "late" and x in changed
        }
        for place, x in pairs:
            self.append(how, [copies.get(x, x)], [place])

    def branch(self, eqn, which, *values, branches, **_) -> list[np.ndarray]:
        choice, last = which[()], len(branches) - 1
        if isinstance(choice, Literal):
            return self.lower(branches[min(max(int(choice.value), 0), last)], values)
        results, is_truth = self.variables(eqn.outvars), choice.kind == TRUTH

        def write(k: int, is_chosen: bool) -> None:
            """Append branch k, or the choice between branch k and the later branches."""
            if is_chosen or k == last:
                self.assign(results, self.lower(branches[k], values))
                return
            test = self.let("not", choice) if is_truth else self.let("le", choice, k)
            blocks = [self.block(write, k, True), self.block(write, k + 1, False)]
            self.append("if", [test], blocks=blocks)

        self.statements += self.block(write, 0, False)
        return results

    def loop(self, eqn, *values, cond_jaxpr, body_jaxpr, cond_nconsts, body_nconsts, **_) -> Any:
        first = cond_nconsts + body_nconsts
        if sum(value.size for value in values[first:]) > MOST_CARRIED:
            raise CannotBeWritten(
                f"A loop of the machine carries more than {MOST_CARRIED} numbers, which would make"
                " code of megabytes. Carry less in it."
            )
        state = self.variables(eqn.outvars)

        def write() -> None:
            (goes_on,) = self.lower(cond_jaxpr, [*values[:cond_nconsts], *state])
            self.append("break", [self.let("not", goes_on[()])])
            after = self.lower(body_jaxpr, [*values[cond_nconsts:first], *state])
            self.assign(state, after, "late")

        self.assign(state, values[first:])
        self.append("loop", blocks=[self.block(write)])
        return state

    def scan(self, eqn, *values, jaxpr, length, reverse, **_) -> Any:
        num_consts, num_carry = scan_counts(eqn)
        first = num_consts + num_carry
        constants, state, rows = values[:num_consts], values[num_consts:first], values[first:]
        kept = [np.empty(x.aval.shape, object) for x in eqn.outvars[num_carry:]]
        if not rows and not kept and length > 2:
            now = self.variables(eqn.outvars)

            def write() -> None:
                self.assign(now, self.lower(jaxpr, [*constants, *now]), "late")

            self.assign(now, state)
            self.append("loop", blocks=[self.block(write)], detail=length)
            return now
        if length > UNROLLED:
            raise CannotBeWritten(
                f"A loop of the machine goes over {length} rows, which would make long code. Loop"
                f" over at most {UNROLLED}."
            )
        for i in range(length)[:: -1 if reverse else 1]:
            parts = [row[i : i + 1].reshape(row.shape[1:]) for row in rows]
            results = self.lower(jaxpr, [*constants, *state, *parts])
            state = results[:num_carry]
            for to, row in zip(kept, results[num_carry:], strict=True):
                to[i : i + 1] = row
        return [*state, *kept]

    def entry(self, value: np.ndarray, index: Any, fits: Any) -> Any:
        """Return the entry of `value` at a C-order index, or any entry if `fits` is false."""
        first, *_ = atoms = flat([value])
        safe = self.let("select", fits, index, ZERO)
        if isinstance(safe, Literal):
            return atoms[safe.value]
        if all(x == first for x in atoms):
            return first
        if len(atoms) <= CHOSEN:
            return self.choose(index, *atoms)
        key = "local", *map(repr, atoms)
        if isinstance(first, Entry) and atoms == [
            Entry(first.array, first.index + i) for i in range(len(atoms))
        ]:
            array, safe = first.array, self.let("add", safe, first.index)
        elif all(isinstance(x, Literal) for x in atoms):
            array = self.program.table(tuple(atoms))
        elif (array := self.known.get(key)) is None:
            array = self.known[key] = Array(self.name("r"), first.kind, len(atoms), local=True)
            for i, atom in enumerate(atoms):
                self.append("store", [Literal(i, WHOLE), atom], [array])
        return self.new("load", (array, safe), first.kind)

    def choose(self, which: Any, *cases: Any) -> Any:
        """Return an atom for the entry of `cases` at the index `which`, which the code computes."""
        if which.kind == TRUTH:
            return self.let("select", which, cases[1], cases[0])
        out = cases[-1]
        for i in range(len(cases) - 2, -1, -1):
            out = self.let("select", self.let("eq", which, i), cases[i], out)
        return out

    def places(self, shape: Sequence[int], part: Any, starts: Any, axes: Any, drops: bool) -> Any:
        """Iterate over the entries of a part of an array of shape `shape`. Yield each entry's place
        in the part, its C-order index in the array, and whether the array has this index. If
        `drops` is false, a part outside the array is moved into the array.

        The part consists of windows, and each row of the array in `starts` is the start of one
        window. `axes` contains five lists: the axes of the part along a window; the axes of the
        array across windows; the axis of the array for each entry of a row; the batch axes of the
        array; the batch axes of `starts`. Without `axes`, there is one window, which begins at the
        indices in `starts`.
        """
        if axes is None:
            axes = tuple(range(len(shape))), (), range(len(shape)), (), ()
            starts = [array_of(flat(starts), [len(shape)])]
        along, single, mapped, batched, batches = axes
        window = [k for k in range(len(shape)) if k not in (*single, *batched)]
        inside = dict(zip(window, along, strict=True))
        strides = [math.prod(shape[k + 1 :]) for k in range(len(shape))]
        for place in np.ndindex(part.shape):
            at = tuple(i for k, i in enumerate(place) if k not in along)
            index, fits = ZERO, TRUE
            begin = {j: Literal(at[k], WHOLE) for j, k in zip(batched, batches, strict=True)}
            for j, start in (begin | dict(zip(mapped, starts[0][at], strict=True))).items():
                most = shape[j] - (part.shape[inside[j]] if j in inside else 1)
                if drops:
                    below = self.let("le", start, most)
                    fits = self.let(
                        "and", fits, self.let("and", self.let("le", ZERO, start), below)
                    )
                elif most == 0:
                    continue
                else:
                    start = self.let("max", self.let("min", start, most), ZERO)
                index = self.let("add", index, self.let("mul", strides[j], start))
            last = sum(strides[j] * place[k] for j, k in inside.items())
            yield place, self.let("add", index, last), fits

    def gather(self, eqn, source, *starts, dimension_numbers=None, mode="", **_) -> np.ndarray:
        """Append statements for gather or dynamic_slice; return the result."""
        out, is_filled = np.empty(eqn.outvars[0].aval.shape, object), "FILL" in str(mode)
        for place, i, fits in self.places(source.shape, out, starts, dimension_numbers, is_filled):
            found = self.entry(source, i, fits)
            missing = {REAL: math.nan, WHOLE: -(2**31), TRUTH: True}[found.kind]
            out[place] = self.let("select", fits, found, Literal(missing, found.kind))
        return out

    def scatter(self, eqn, source, *others, dimension_numbers=None, mode="CLIP", **_) -> np.ndarray:
        """Append statements for scatter, scatter-add or dynamic_update_slice; return the result."""
        part, *starts = others if dimension_numbers is None else others[::-1]
        drops, adds = "CLIP" not in str(mode), "add" in eqn.primitive.name
        items = flat([source])
        for place, index, fits in self.places(source.shape, part, starts, dimension_numbers, drops):
            for i, old in enumerate(items):
                here = self.let("and", fits, self.let("eq", index, i))
                new = self.let("add", old, part[place]) if adds else part[place]
                items[i] = self.let("select", here, new, old)
        return array_of(items, source.shape)

    def move(self, eqn, *values, **params) -> list[np.ndarray]:
        """Apply an operation that only moves entries, by applying it to the entries' indices."""
        atoms = flat(values)
        numbers = [x.astype(int) for x in split(range(len(atoms)), values)]
        moved = jax.tree.leaves(eqn.primitive.bind(*numbers, **params))
        return [array_of([atoms[i] for i in np.ravel(x)], x.shape) for x in moved]

    def map(self, operation: str, *arrays: Any) -> np.ndarray:
        """Apply an operation entry by entry."""
        return each(functools.partial(self.let, operation), *arrays)

    def elementwise(self, eqn, *values, **_) -> np.ndarray:
        return self.map(OPERATIONS.get(eqn.primitive.name) or eqn.primitive.name, *values)

    def integer_power(self, eqn, x, *, y, **_) -> np.ndarray:
        multiply = functools.partial(self.map, "mul")
        powers = functools.reduce(multiply, [x] * abs(y), np.full(x.shape, ONE))
        return powers if y >= 0 else self.map("div", ONE, powers)

    def reduce(self, eqn, x, *, axes=None, **_) -> np.ndarray:
        operation, out = OPERATIONS[eqn.primitive.name], eqn.outvars[0].aval
        empty = constant(np.full((), operation in ("mul", "and"), out.dtype))[()]
        fold = functools.partial(functools.reduce, functools.partial(self.let, operation))
        each_row = rows(x, range(x.ndim) if axes is None else axes)[0]
        return array_of([fold(row) if row.size else empty for row in each_row], out.shape)

    def position(self, eqn, x, *, axes, **_) -> np.ndarray:
        """Append argmax or argmin: index of the first NaN, or without NaN of the first extreme."""
        let, places = self.let, list[Any]()
        for row in rows(x, axes)[0]:
            best, place = row[0], ZERO
            for i, x in enumerate(row[1:], 1):
                wins = let("lt", *((best, x) if eqn.primitive.name == "argmax" else (x, best)))
                if x.kind == REAL:
                    wins = let("or", wins, let("and", let("ne", x, x), let("eq", best, best)))
                best = let("select", wins, x, best)
                place = let("select", wins, i, place)
            places.append(place)
        return array_of(places, eqn.outvars[0].aval.shape)

    def dot(self, eqn, a, b, *, dimension_numbers, **_) -> np.ndarray:
        add, multiply = (functools.partial(self.let, name) for name in ("add", "mul"))
        over, batch = dimension_numbers
        pairs = zip(rows(a, over[0], batch[0]), rows(b, over[1], batch[1]), strict=True)
        entries = [
            functools.reduce(add, map(multiply, x, y), Literal(0.0, REAL))
            for pair in pairs
            for x, y in itertools.product(*pair)
        ]
        return array_of(entries, eqn.outvars[0].aval.shape)


OPERATIONS: dict[str, str] = {
    "add_any": "add", "lt_to": "lt", "le_to": "le", "xor": "ne", "is_finite": "finite",
    "reduce_sum": "add", "reduce_prod": "mul", "reduce_max": "max", "reduce_min": "min",
    "reduce_and": "and", "reduce_or": "or", "unvmap_all": "and", "unvmap_any": "or",
}  # fmt: skip
ELEMENTWISE = (
    "add sub mul div rem pow atan2 nextafter eq ne lt le gt ge max min and or neg exp log sqrt sin"
    " cos tan tanh sinh cosh asin acos atan floor ceil log1p expm1 abs sign cbrt erf round not"
    " add_any lt_to le_to xor is_finite"
)
UNCHANGED = (
    "stop_gradient copy copy_p optimization_barrier device_put reduce_precision nondifferentiable"
    " name sharding_constraint squeeze reshape expand_dims"
)
RULES: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(ELEMENTWISE.split(), Lowering.elementwise),
    **dict.fromkeys(
        UNCHANGED.split(), lambda _, eqn, x, **__: x.reshape(eqn.outvars[0].aval.shape)
    ),
    **{x: Lowering.reduce for x in OPERATIONS if x.startswith(("reduce_", "unvmap_"))},
    "cond": Lowering.branch,
    "while": Lowering.loop,
    "scan": Lowering.scan,
    "slice": lambda _, eqn, x, *, start_indices, limit_indices, strides, **__: x[
        tuple(map(slice, start_indices, limit_indices, strides or [1] * x.ndim))
    ],
    "broadcast_in_dim": lambda _, eqn, x, *, shape, broadcast_dimensions, **__: np.broadcast_to(
        np.expand_dims(x, [k for k in range(len(shape)) if k not in broadcast_dimensions]), shape
    ),
    "transpose": lambda _, eqn, x, *, permutation, **__: x.transpose(permutation),
    "concatenate": lambda _, eqn, *values, dimension, **__: np.concatenate(values, dimension),
    **dict.fromkeys("stack unstack split pad rev".split(), Lowering.move),
    "iota": lambda _, eqn, **params: constant(eqn.primitive.bind(**params)),
    "select_n": lambda low, eqn, *values, **_: each(low.choose, *values),
    "clamp": lambda low, eqn, least, x, most: low.map("min", low.map("max", x, least), most),
    "convert_element_type": lambda low, eqn, x, **_: low.map(
        f"to_{kind_of(eqn.outvars[0].aval)}", x
    ),
    "integer_pow": Lowering.integer_power,
    "square": lambda low, eqn, x, **_: low.map("mul", x, x),
    "logistic": lambda low, eqn, x, **_: low.map(
        "div", ONE, low.map("add", ONE, low.map("exp", low.map("neg", x)))
    ),
    **dict.fromkeys(("argmax", "argmin"), Lowering.position),
    "dot_general": Lowering.dot,
    **dict.fromkeys(("gather", "dynamic_slice"), Lowering.gather),
    **dict.fromkeys(
        "scatter scatter-add scatter_add dynamic_update_slice".split(), Lowering.scatter
    ),
    "platform_index": lambda _, eqn, *__, platforms, **___: constant(
        [names is None or "cpu" in names for names in (*platforms, None)].index(True)
    ),
}
