"""Random mechanisms, 21 structures with 100 draws each: energy, finiteness, result codes, and
`Adaptive` against `OnSamples`.

Three structures that compile soon are run by default, without gears; all 21 where the environment
variable FRICTAX_ALL_STRUCTURES is set.
"""

import functools
import os
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import frictax as fx

SEED = 7
NUMBERS = (0, 1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 25, 27, 37)
BY_DEFAULT = (3, 4, 17)
CHOSEN = NUMBERS if os.environ.get("FRICTAX_ALL_STRUCTURES") else BY_DEFAULT
WALKED = CHOSEN if os.environ.get("FRICTAX_ALL_STRUCTURES") else (3,)
DRAWS, COMPARED = 100, 4
MOST = 6  # contacts
TIGHT = fx.Adaptive(rtol=1e-11, atol=1e-13, max_events=300)
SAMPLES = 6  # of the error-controlled run
STEPS = 1536  # of the finer walk on samples; the coarser has steps of twice the length
LEAST = 1e-4  # energy [J] below which a machine counts as one that does not move
SHORTEST = 1e-7  # a mode that lasts less [s] is one that the two walks may pass at one instant


class Structure:
    """A mechanism drawn part by part: the rotational ones have an odd number, and the count of
    bodies goes round from 1 to 5.
    """

    def __init__(self, number: int) -> None:
        self.draw = np.random.default_rng([SEED, number])
        self.rotational = number % 2 == 1
        self.bodies = [f"body{i}" for i in range(1 + (number // 2) % 5)]
        self.parts: dict[str, Any] = {}
        self.given: set[str] = set()
        self.geared: set[str] = set()
        self.contacts: list[str] = []
        self.dampers: list[str] = []

    def uniform(self, low: float, high: float) -> float:
        return float(self.draw.uniform(low, high))

    def happens(self, probability: float) -> bool:
        return bool(self.draw.random() < probability)

    def one_of(self, options: Any) -> Any:
        return options[int(self.draw.integers(len(options)))]

    def add(self, kind: str, part: Any) -> str:
        name = f"{kind}{sum(n.startswith(kind) for n in self.parts)}"
        self.parts[name] = part
        return name

    @property
    def end(self) -> float:
        """The length of a run [s]: more contacts have more events in the same time."""
        return 9.0 / max(3, len(self.contacts))

    def moving(self) -> list[str]:
        return [b for b in self.bodies if b not in self.given]

    # -- parts
    # ----------------------------------------------------------------------------------------------

    def law(self, level: float) -> Any:
        kind = self.draw.integers(3)
        if kind == 0:
            return fx.Coulomb(F_Coulomb=level, F_prop=self.one_of([0.0, 0.1 * level]))
        if kind == 1:
            return fx.Stribeck(
                F_prop=0.1 * level,
                F_Coulomb=level,
                F_Stribeck=self.uniform(0.2, 0.8) * level,
                fexp=self.uniform(1, 8),
                exponent=self.one_of([1, 2]),
            )
        return fx.Table([[0, 1.4 * level], [0.15, 1.1 * level], [0.6, level], [2.5, 1.3 * level]])

    def peak(self) -> float:
        return self.one_of([1.0, self.uniform(1.05, 1.6)])

    def press(self) -> Any:
        options = [
            fx.Step(height=1.0, startTime=self.uniform(0.1, 1.5)),
            fx.Step(height=-1.0, offset=1.0, startTime=self.uniform(0.5, 2.0)),
            fx.Ramp(height=1.0, duration=self.uniform(0.2, 1.5), startTime=self.uniform(0.0, 1.0)),
            fx.Sine(amplitude=0.7, f=self.uniform(0.4, 1.2), offset=0.4, phase=self.uniform(0, 6)),
        ]
        return self.one_of(options)

    def load(self, size: float) -> Any:
        options = [
            fx.Sine(amplitude=size, f=self.uniform(0.5, 2.0), phase=self.uniform(0, 6)),
            fx.Sine(amplitude=size, f=self.uniform(0.5, 2.0), phase=self.uniform(0, 6)),
            fx.Ramp(
                height=size,
                duration=self.uniform(0.3, 2.0),
                offset=-0.5 * size,
                startTime=self.uniform(0.0, 0.5),
            ),
            fx.Pulse(
                amplitude=1.5 * size,
                width=self.uniform(30, 70),
                period=self.uniform(0.5, 1.2),
                offset=-0.7 * size,
            ),
            fx.Step(height=-size, offset=0.5 * size, startTime=self.uniform(0.5, 1.5)),
        ]
        return self.one_of(options)

    def body(self, name: str) -> None:
        inertia, start, speed = (
            self.uniform(0.5, 2.0),
            self.uniform(-0.1, 0.1),
            self.one_of([0.0, self.uniform(-2, 2)]),
        )
        if self.rotational:
            self.parts[name] = fx.Inertia(J=inertia, phi=start, w=speed)
        elif self.happens(0.35):
            law = {
                "F_prop": 0.1,
                "F_Coulomb": self.uniform(0.2, 1.0),
                "F_Stribeck": self.uniform(0.0, 0.8),
                "fexp": 3.0,
            }
            self.parts[name] = fx.MassWithStopAndFriction(
                m=inertia, smin=-self.uniform(0.1, 0.4), smax=self.uniform(0.1, 0.4), v=speed, **law
            )
            self.contacts.append(name)
        else:
            self.parts[name] = fx.Mass(m=inertia, s=start, v=speed)

    def compliant(self, a: str, b: str) -> None:
        c, d = self.uniform(5, 60), self.uniform(0.05, 1.0)
        kind = self.one_of(["Spring", "SpringDamper", "SpringDamper", "Damper"])
        values = (
            {"c": c} if kind == "Spring" else {"d": d} if kind == "Damper" else {"c": c, "d": d}
        )
        name = self.add(kind, getattr(fx, "Rotational" * self.rotational + kind)(a, b, **values))
        if kind != "Spring":
            self.dampers.append(name)

    def pressed(self, cls: Any, *ends: str, **more: Any) -> None:
        part = cls(
            *ends,
            mu_pos=self.law(self.uniform(0.2, 0.5)),
            peak=self.peak(),
            fn_max=self.uniform(2, 8),
            f_normalized=self.press(),
            **more,
        )
        self.contacts.append(self.add(cls.__name__, part))

    def contact(self, body: str, other: str | None) -> None:
        """A contact of `body` in the housing or on another body."""
        kinds: list[Any] = ["plain", "plain", "Brake"]
        if self.rotational and other is not None:
            kinds += ["Clutch", "Clutch", "OneWayClutch"]
        kind = self.one_of(kinds)
        if kind == "Brake":
            self.pressed(fx.Brake, body, support=other)
        elif kind == "plain":
            cls, field = (
                (fx.BearingFriction, "tau") if self.rotational else (fx.SupportFriction, "f")
            )
            laws = {f"{field}_pos": self.law(self.uniform(0.3, 1.5))}
            if self.happens(0.3):
                laws[f"{field}_neg"] = self.law(self.uniform(0.3, 1.5))
            self.contacts.append(
                self.add(cls.__name__, cls(body, peak=self.peak(), support=other, **laws))
            )
        elif other is not None:
            self.pressed(getattr(fx, kind), other, body)

    def gear(self, a: str, b: str) -> None:
        ratio = self.one_of([-2.0, 1.5, 3.0])
        if a not in self.geared and self.happens(0.4):
            bf = self.one_of([0.0, 0.2])
            table = self.one_of(
                [
                    [[0, 0.8, 0.75, bf, bf]],
                    [
                        [0, 0.7, 0.7, bf, bf],
                        [1.0, 0.8, 0.8, bf, bf],
                        [3.0, 0.9, 0.9, bf, bf],
                        [9.0, 0.9, 0.9, bf, bf],
                    ],
                ]
            )
            self.contacts.append(
                self.add("LossyGear", fx.LossyGear(a, b, ratio=ratio, lossTable=table))
            )
            self.geared |= {a}
        else:
            self.add("IdealGear", fx.IdealGear(a, b, ratio=ratio))
        self.geared |= {a, b}

    # -- the whole
    # ----------------------------------------------------------------------------------------------

    def built(self) -> fx.Mechanism:
        for name in self.bodies:
            self.body(name)
        self.parts["wall"] = fx.Fixed()
        if len(self.bodies) >= 2 and self.happens(0.4) and self.bodies[0] not in self.contacts:
            motions = [
                fx.Sine(amplitude=0.6, f=self.uniform(0.3, 0.8)),
                fx.Ramp(height=1.5, duration=self.uniform(1.0, 2.0)),
            ]
            self.add("Position", fx.Position(self.bodies[0], self.one_of(motions)))
            self.given.add(self.bodies[0])
        self.joined()
        most = int(self.draw.integers(2, MOST + 1))
        while len(self.contacts) < most:
            body = self.one_of(self.moving())
            others = [b for b in self.bodies if b != body]
            self.contact(body, self.one_of(others) if others and self.happens(0.3) else None)
        for body in self.moving():
            if self.happens(0.35):
                self.compliant("wall", body)
        source = fx.Torque if self.rotational else fx.Force
        for _ in range(int(self.draw.integers(1, 4))):
            self.add("drive", source(self.one_of(self.moving()), self.load(self.uniform(2, 6))))
        if self.happens(0.4):
            self.heated()
        return fx.Mechanism(**self.parts)

    def joined(self) -> None:
        """Each body to an earlier one, by what gives, by friction or by a gear."""
        i = 1
        while i < len(self.bodies):
            body, parent = self.bodies[i], self.one_of(self.bodies[:i])
            may_turn = self.rotational and parent not in self.given and self.happens(0.6)
            if may_turn and not self.geared and i + 1 < len(self.bodies) and self.happens(0.5):
                ratio = self.uniform(1.5, 3.0)
                self.add(
                    "IdealPlanetary",
                    fx.IdealPlanetary(
                        sun=parent, carrier=self.bodies[i + 1], ring=body, ratio=ratio
                    ),
                )
                self.geared |= {parent, body, self.bodies[i + 1]}
                i += 1
            elif may_turn and parent not in self.geared and len(self.contacts) < MOST:
                self.gear(parent, body)
            elif self.happens(0.5) or len(self.contacts) == MOST:
                self.compliant(parent, body)
            else:
                self.contact(body, parent)
            i += 1

    def heated(self) -> None:
        sources = [*self.contacts, *self.dampers]
        half = (len(sources) + 1) // 2
        first = self.add("node", fx.HeatCapacitor(sources[:half], C=self.uniform(1, 5)))
        if sources[half:]:
            second = self.add(
                "node", fx.HeatCapacitor(sources[half:], C=self.uniform(1, 5), T=320.0)
            )
            self.add("ThermalConductor", fx.ThermalConductor(first, second, G=0.5))
        self.add("ThermalConductor", fx.ThermalConductor(first, G=0.2))


VARIED = (
    "m J c d F_Coulomb F_prop F_Stribeck fexp amplitude height offset fn_max C G s v phi w smin"
    " smax tau_bf1 tau_bf2 ratio".split()
)


def varied(machine: fx.Mechanism) -> list[str]:
    """The paths of what is drawn; a table's forces by one factor, for they are called as a sine's
    frequency is.
    """
    found = []
    for p in fx.parameters.parameters(machine):
        name = p.path.rpartition(".")[2]
        if name in (*VARIED, "peak") or (name == "f" and np.ndim(p.value) == 1):
            found.append(p.path)
    return found


def drawn(machine: fx.Mechanism, factors: jax.Array) -> fx.Mechanism:
    """`machine` with each of its `varied` values times an entry of `factors`, a peak in what is
    above 1.
    """
    values = {}
    for path, factor in zip(varied(machine), factors, strict=True):
        value = fx.parameters.get(machine, path)
        values[path] = 1 + (value - 1) * factor if path.endswith("peak") else value * factor
    return fx.parameters.replace(machine, values)


FACTORS = 3.0  # up and down
CODES = {
    "successful": fx.Result.successful,
    "too_many_events": fx.Result.too_many_events,
    "max_steps_reached": fx.Result.max_steps_reached,
    "chatter": fx.Result.chatter,
    "nonfinite": fx.Result.nonfinite,
    "inconsistent": fx.Result.inconsistent,
}
Found = dict[str, np.ndarray]


def factors(machine: fx.Mechanism, number: int) -> jax.Array:
    draw = np.random.default_rng([SEED, number, 1])
    return jnp.asarray(FACTORS ** draw.uniform(-1, 1, (DRAWS, len(varied(machine)))))


def program(
    machine: fx.Mechanism, engine: Any, energy: bool = False
) -> Callable[[jax.Array, jax.Array], Found]:
    """All draws at given times in one program; `balance` and `heat` over the energy that is turned
    over.
    """

    @jax.jit
    @functools.partial(jax.vmap, in_axes=(0, None))
    def run(scale: jax.Array, ts: jax.Array) -> dict[str, Any]:
        path = fx.simulate(drawn(machine, scale), ts, engine, energy=energy)
        events = path.events
        found = {
            "ys": path.ys,
            "modes": path.modes,
            "code": jnp.stack([path.result == code for code in CODES.values()]),
            "steps": path.steps,
            "time": events.time,
            "part": events.part,
            "after": events.mode_after,
            "count": events.count,
        }
        if energy:
            e = path.energy
            turned_over = (
                jnp.max(jnp.abs(e.drive))
                + e.friction[-1]
                + e.damper[-1]
                + e.impact[-1]
                + jnp.max(e.kinetic + jnp.abs(e.elastic))
                + LEAST
            )
            found |= {
                "balance": jnp.max(jnp.abs(e.balance)) / turned_over,
                "heat": jnp.max(jnp.abs(e.heat_balance)) / turned_over,
            }
        return found

    return lambda scales, ts: {k: np.asarray(v) for k, v in run(scales, ts).items()}


def lasting(found: Found, draw: int, contacts: int, end: float) -> list[list[tuple[float, int]]]:
    """For each contact when it took which mode, without modes of next to no length."""
    all_changes = []
    for c in range(contacts):
        here = (found["part"][draw] == c) & (found["time"][draw] < end - 1e-4)
        times, after = found["time"][draw][here], found["after"][draw][here]
        changes = [(0.0, int(found["modes"][draw, 0, c]))]
        for time, mode in zip(times, after, strict=True):
            if time - changes[-1][0] < SHORTEST:
                changes.pop()
            if not changes or mode != changes[-1][1]:
                changes.append((float(time), int(mode)))
        all_changes.append(changes)
    return all_changes


@functools.cache
def exact(number: int) -> tuple[Structure, fx.Mechanism, jax.Array, Found]:
    """A structure and its error-controlled runs."""
    structure = Structure(number)
    machine = structure.built()
    scales = factors(machine, number)
    return (
        structure,
        machine,
        scales,
        program(machine, TIGHT, energy=True)(scales, jnp.linspace(0.0, structure.end, SAMPLES + 1)),
    )


@pytest.mark.slow
@pytest.mark.parametrize("number", CHOSEN)
def test_all_draws_reach_their_end_with_a_closed_energy_balance(number: int) -> None:
    _, _, _, found = exact(number)
    codes = {name: int(np.sum(found["code"][:, i])) for i, name in enumerate(CODES)}
    assert codes == dict.fromkeys(CODES, 0) | {"successful": DRAWS}
    assert np.all(np.isfinite(found["ys"]))
    assert np.max(found["balance"]) <= 1e-7
    assert np.max(found["heat"]) <= 1e-7
    assert np.percentile(found["count"], 90) >= 5
    if number in WALKED:
        assert_that_a_walk_on_samples_is_of_third_order_and_has_the_same_modes(number)


def assert_that_a_walk_on_samples_is_of_third_order_and_has_the_same_modes(number: int) -> None:
    structure, machine, scales, found = exact(number)
    walk = program(machine, fx.OnSamples(max_events=600))
    errors = []
    # A run of double length on as many samples has steps of double length.
    for longer in (2, 1):
        here = walk(scales[:COMPARED], jnp.linspace(0.0, longer * structure.end, STEPS + 1))
        common = here["ys"][:, : STEPS // longer + 1 : STEPS // longer // SAMPLES]
        difference = common - found["ys"][:COMPARED, :, : common.shape[2]]
        errors.append(np.max(np.abs(difference), axis=(1, 2)))
        for draw in range(COMPARED):
            contacts = len(structure.contacts)
            ours, theirs = (lasting(f, draw, contacts, structure.end) for f in (here, found))
            assert [[mode for _, mode in c] for c in ours] == [
                [mode for _, mode in c] for c in theirs
            ]
    coarse, fine = errors
    assert np.max(fine) <= 3e-4
    # Third order; where a step takes a steep part of a curve, a single halving of it shows 2.3 or
    # 3.1.
    assert np.all((coarse / fine >= 2**2.25) | (fine <= 1e-10))
