"""Mechanisms drawn at random."""

from typing import Any

import numpy as np

import frictax as fx

SEED = 7
MOST = 6  # contacts


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
