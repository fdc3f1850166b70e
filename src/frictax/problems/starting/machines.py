"""Start values for the machine of a draft, and the tables [machine] and [fit] of the problem."""

import dataclasses
from collections.abc import Callable

import numpy as np

from frictax.measurements.filters import smooth
from frictax.measurements.units import TIME

from .draft import COASTING, Draft
from .roles import COUNTS, Chosen, times_in_seconds, unit_of_clock


@dataclasses.dataclass(frozen=True)
class Sizes:
    """Properties of a record, estimated from its samples.

    - `rate` [Hz]: sampling rate; `duration` [s]: length of the record.
    - `fast` [Hz]: frequency below which 90 % of the power of the drive lies (without a drive, of
      the speed); `slow` [Hz]: frequency below which 5 % of the power of the speed lies.
    - `inertia`, `dry`, `viscous`, `gravity`, `offset` (angle of rest): parameters [SI] of the
      equation of motion, estimated from the smoothed motion.
    """

    rate: float
    duration: float
    fast: float
    slow: float
    inertia: float
    dry: float
    viscous: float
    gravity: float
    offset: float

    @property
    def decimate(self) -> int:
        """The argument n of `Record.decimate`. A value above 1 requires at least 60000 samples,
        whose fit takes minutes, and a rate far above the frequencies of the motion.
        """
        if self.rate * self.duration < 60_000:
            return 1
        # Aim at 100 samples or more per period of `fast`, and at 20000 samples or more in all.
        enough = max(100.0 * self.fast, 20_000 / self.duration)
        return max(round(self.rate / enough), 1)

    @property
    def cutoff(self) -> float:
        """The cutoff of filters [Hz]: 30 times `fast`, at most an eighth of the sampling rate."""
        return _round(min(30.0 * self.fast, self.rate / self.decimate / 8.0))

    @property
    def window(self) -> float:
        """The length of windows [s]: a third of the period of `fast`, so that errors of the force
        do not accumulate. The length is at least a quarter of the period of `slow`, at most a tenth
        of the record, and at least 12 samples after decimation.
        """
        long = max(0.33 / self.fast, 0.25 / self.slow)
        return _round(max(min(long, self.duration / 10.0), 12.0 * self.decimate / self.rate))


def sizes(draft: Draft) -> Sizes:
    """Return the properties of the draft's record."""
    t, seen, drive = series(draft)
    step = (t[-1] - t[0]) / (t.size - 1)
    rate, duration = 1.0 / step, float(t[-1] - t[0])
    is_position = "position" in draft.columns
    moved = seen if is_position else np.cumsum(seen) * step
    power = _power(np.gradient(moved, step), 2 if is_position else 0)
    pushed = drive is not None and np.ptp(drive) > 0
    driven = power if not pushed else _power(drive, 0)  # pyright: ignore
    fast = float(np.clip(_quantile(driven, 0.9) * rate, 2.0 / duration, rate / 30.0))
    slow = float(np.clip(_quantile(power, 0.05) * rate, 2.0 / duration, fast))
    inside = slice(t.size // 20, -max(t.size // 20, 1))
    motion = smooth(t, moved, min(10.0 * fast, rate / 8.0))
    s, v, a = motion.x[inside], motion.v[inside], motion.a[inside]
    u = None if drive is None else smooth(t, drive, min(10.0 * fast, rate / 3.0)).x[inside]
    # Estimate inertia, dry friction, viscous friction, gravity torque and angle of rest.
    if draft.machine in COASTING:
        inertia = draft.constants.get(COASTING[draft.machine], 1.0)
        drop = max(float(np.abs(v[0]) - np.abs(v[-1])), 1e-3 * float(np.max(np.abs(v))))
        mean = inertia * drop * rate / max(v.size - 1, 1)
        viscous = 0.5 * mean / max(float(np.mean(np.abs(v))), 1e-30)
        numbers = inertia, 0.5 * mean, viscous, 0.0, 0.0
    elif draft.machine == "pendulum" and u is None:
        # For a freely swinging arm, the period determines the inertia. The amplitude decreases by
        # 4*dry/gravity in each swing, which determines the dry friction.
        gravity = draft.constants.get("mgl", 1.0)
        swing = np.abs(np.fft.rfft((s - s[-1]) * np.hanning(s.size)))
        swing[0] = 0.0
        period = s.size / rate / max(int(np.argmax(swing)), 1)
        size = np.abs(s - np.mean(s[-max(s.size // 20, 1) :]))
        moving = np.flatnonzero(size > 0.1 * np.max(size))
        swings = max(moving[-1] / rate / period, 0.5)
        dry = gravity * np.max(size) / (4.0 * swings)
        numbers = gravity * (period / (2 * np.pi)) ** 2, dry, 0.0, gravity, 0.0
    elif u is None or draft.machine == "brake":
        numbers = 1.0, 1.0, 0.0, 0.0, 0.0
    elif draft.machine == "servo":  # The known controller determines the force.
        kp, kv = draft.constants.get("kp", 1.0), draft.constants.get("kv", 1.0)
        numbers = _estimate_by_least_squares(kv * (kp * (u - s) - v), s, v, a, None)
    else:
        hangs = {"pendulum": "down", "arm": "anywhere"}.get(draft.machine)
        numbers = _estimate_by_least_squares(u, s, v, a, hangs)
    return Sizes(rate, duration, fast, slow, *(float(_round(x)) for x in numbers))


def has_gravity(draft: Draft) -> bool:
    """Return True if the machine is an arm rather than a rotor. Inertia, friction and an offset are
    fitted to the drive. For an arm, a sine of the angle explains more than 70 % of the squared
    residuals, and explains more than a parabola.
    """
    position = draft.columns.get("position")
    if draft.drive is None or position is None or position.unit in COUNTS and not position.per_turn:
        return False
    t, s, u = series(draft)
    # In an angle range below 0.5 rad, the torque of gravity is too similar to a constant.
    if u is None or np.ptp(s) < 0.5:
        return False
    s, v, a, pushed = _smooth_motion(t, s, u, True)
    way = np.sign(v) * (np.abs(v) > 0.02 * np.max(np.abs(v)))
    # With fewer than three reversals, gravity and friction cannot be distinguished.
    if np.count_nonzero(np.diff(way[way != 0])) < 3:
        return False
    plain = [a, way, v, np.ones(s.size)]

    def rest(*more: np.ndarray) -> float:
        matrix = np.stack([*plain, *more], axis=1)
        matrix = matrix / np.maximum(np.max(np.abs(matrix), axis=0), 1e-300)
        return float(
            np.sum((pushed - matrix @ np.linalg.lstsq(matrix, pushed, rcond=None)[0]) ** 2)
        )

    without, sine, parabola = rest(), rest(np.sin(s), np.cos(s)), rest(s, s * s)
    much = without > 1e-3 * np.sum((pushed - np.mean(pushed)) ** 2)
    return bool(much and sine < 0.3 * without and sine < parabola)


def _smooth_motion(
    t: np.ndarray, x: np.ndarray, u: np.ndarray, is_position: bool
) -> tuple[np.ndarray, ...]:
    """Return position, speed, acceleration and drive without the ends of the record, low-pass
    filtered with a cutoff of five times the frequency of the motion. `is_position`: whether `x` was
    measured; if not, `x` is the integral of a measured speed.
    """
    rate = (t.size - 1) / float(t[-1] - t[0])
    power = _power(np.gradient(x, 1.0 / rate), 2 if is_position else 0)
    fast = float(np.clip(_quantile(power, 0.9) * rate, 2.0 / (t[-1] - t[0]), rate / 30.0))
    cutoff, ends = min(5.0 * fast, rate / 8.0), max(t.size // 20, 1)
    motion, drive = smooth(t, x, cutoff), smooth(t, u, cutoff).x
    return tuple(y[ends:-ends] for y in (motion.x, motion.v, motion.a, drive))


def drive_brakes(draft: Draft) -> bool:
    """Return True if the record has the wrong sign of the drive or of the motion: a positive drive
    gives a negative acceleration, and the drive takes energy from the machine.
    """
    t, s, u = series(dataclasses.replace(draft, reversed=False))
    if u is None or not np.ptp(u) > 0 or not np.ptp(s) > 0:
        return False
    is_position = "position" in draft.columns
    moved = s if is_position else np.cumsum(s) * (t[-1] - t[0]) / (t.size - 1)
    s, v, a, pushed = _smooth_motion(t, moved, u, is_position)
    turns = [np.sin(s), np.cos(s)]
    matrix = np.stack([a, np.sign(v), v, np.ones(v.size), *(turns if draft.turns else [])], axis=1)
    matrix /= np.maximum(np.max(np.abs(matrix), axis=0), 1e-300)
    numbers, left = np.linalg.lstsq(matrix, pushed, rcond=None)[:2]
    explained = left.size and left[0] < 0.2 * np.sum((pushed - np.mean(pushed)) ** 2)
    return bool(explained and numbers[0] < 0 and np.mean(pushed * v) < 0)


def _estimate_by_least_squares(
    u: np.ndarray, s: np.ndarray, v: np.ndarray, a: np.ndarray, hangs: str | None
) -> tuple[float, float, float, float, float]:
    """Estimate inertia, dry friction, viscous friction, gravity torque and angle of rest by least
    squares on the drive `u`. `hangs` is "down" for an arm that hangs at the angle 0, "anywhere" for
    an unknown angle, and None without gravity. Lower limits are 10 % of the rms drive for the rms
    forces of inertia and gravity, and 5 % for dry friction.
    """
    gravity = {"down": [np.sin(s)], "anywhere": [np.sin(s), np.cos(s)]}.get(hangs or "", [])
    columns = [a, np.sign(v), v, *gravity]
    scale = [max(float(np.sqrt(np.mean(c**2))), 1e-30) for c in columns]
    matrix = np.stack([c / x for c, x in zip(columns, scale, strict=True)], axis=1)
    found = np.linalg.lstsq(matrix, u, rcond=None)[0]
    size = max(float(np.sqrt(np.mean(u**2))), 1e-30)
    inertia, dry, viscous = (
        max(float(x), y * size) / z
        # smallest rms forces of inertia, dry and viscous friction, divided by the rms drive
        for x, y, z in zip(found, (0.1, 0.05, 0.0), scale, strict=False)
    )
    if hangs != "anywhere":
        down = max(float(found[3]), 0.1 * size) / scale[3] if gravity else 0.0
        return inertia, dry, viscous, down, 0.0
    sine, cosine = found[3] / scale[3], found[4] / scale[4]
    weight = max(float(np.hypot(sine, cosine)), 0.1 * size)
    return inertia, dry, viscous, weight, float(np.arctan2(cosine, sine))


def series(draft: Draft) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Return times [s], motion and drive [SI], interpolated to equal time steps."""
    out, drive = draft.output, draft.drive
    assert out is not None
    values, time = draft.shape.values, draft.columns.get("time")

    def read(column: Chosen) -> tuple[np.ndarray, np.ndarray]:
        column = draft.of_motor(column)
        y = values[:, column.number - 1]
        if column.clock is None:
            t = times_in_seconds(draft.shape, time, draft.rate)
        else:
            size = TIME[unit_of_clock(draft.shape, column.clock, time)].si
            t = size * values[:, column.clock - 1]
        whole = np.isfinite(t) & np.isfinite(y)
        return t[whole], y[whole] * (draft.gain if column.role == "current" else column.size)

    t, y = read(out)
    if t.size < 8:
        raise ValueError(
            f"{draft.file.name} has {t.size} rows with both time and {out.label}. Check which"
            " columns these are."
        )
    even = np.linspace(t[0], t[-1], t.size)
    sign = -1.0 if draft.reversed else 1.0
    return (
        even, np.interp(even, t, y), None if drive is None else sign * np.interp(even, *read(drive))
    )  # fmt: skip


def _power(x: np.ndarray, rise: int) -> np.ndarray:
    """Return the power spectrum of a signal minus the spectrum of its noise, which is c*sin(2 pi
    f)^rise with f in 1/sample. The upper half of the frequencies determines the constant c.
    """
    power = np.abs(np.fft.rfft((x - np.mean(x)) * np.hanning(x.size))) ** 2
    # Central differences of white noise have a power spectrum in proportion to sin(2 pi f)^2.
    shape = np.sin(2 * np.pi * np.linspace(0.0, 0.5, power.size)) ** rise
    half = slice(power.size // 2, -max(power.size // 20, 1))
    floor = np.median(power[half]) / max(np.median(shape[half]), 1e-300) / np.log(2)
    return np.maximum(power - 3.0 * floor * shape, 0.0)


def _quantile(power: np.ndarray, share: float) -> float:
    """Return the frequency [1/sample] below which the fraction `share` of the power lies."""
    total = np.cumsum(power) / max(float(np.sum(power)), 1e-300)
    return 0.5 * float(np.searchsorted(total, share)) / max(power.size - 1, 1)


def _round(x: float) -> float:
    """Round a number to two significant digits."""
    return float(f"{x:.2g}")


@dataclasses.dataclass(frozen=True)
class Template:
    """The part of a problem file that depends on the machine. `drive`, `output`: names of the
    record's channels; `text`: tables [machine] and [fit]; `files`: name -> text of further files.
    """

    drive: str
    output: str
    text: str
    files: dict[str, str] = dataclasses.field(default_factory=dict)


def _windows(found: Sizes, first: bool = True) -> str:
    """Return the TOML lines for the objective `Windows`. `first`: whether inverse dynamics, which
    needs the motion of each body, gives start values.
    """
    start = (
        f'start = {{ kind = "InverseDynamics", cutoff = {found.cutoff!r} }} # Hz, of the filter\n'
    )
    return f"""\
{start if first else ""}\
objective = {{ kind = "Windows", length = {found.window!r} }} # s
"""


def _law(found: Sizes) -> str:
    return f'{{ kind = "Coulomb", F_Coulomb = {found.dry!r}, F_prop = {_viscous(found)!r} }}'


def _viscous(found: Sizes) -> float:
    """Return a start value of the viscous coefficient, which must not be at its bound 0."""
    return float(f"{max(found.viscous, 1e-3 * found.dry):.2g}")


def _variable(draft: Draft, body: str) -> str:
    """Return the path of the measured variable of a body."""
    moves = draft.columns.get("position") is not None
    return f"{body}.{('phi' if moves else 'w') if draft.turns else ('s' if moves else 'v')}"


def _bearing(found: Sizes) -> str:
    return f"""\
[machine.bearing] # its friction: dry and viscous, the same in both directions
kind = "BearingFriction"
body = "rotor"
tau_pos = {_law(found)} # N.m, N.m.s/rad
peak = 1.0 # breakaway over sliding friction; free it where the record breaks away often
"""


_TORQUE = """\
[machine.drive]
kind = "Torque"
body = "rotor"
tau = 0.0 # the record's input takes its place
"""


def _rotor(draft: Draft, found: Sizes) -> Template:
    text = f"""\
[machine.rotor]
kind = "Inertia"
J = {found.inertia!r} # kg.m2

{_bearing(found)}
{_TORQUE}
[fit]
free = ["rotor.J", "bearing.tau_pos"]
{_windows(found)}"""
    return Template("drive", _variable(draft, "rotor"), text)


def _axis(draft: Draft, found: Sizes) -> Template:
    text = f"""\
[machine.mass]
kind = "Mass"
m = {found.inertia!r} # kg

{_support(found)}
[machine.drive]
kind = "Force"
body = "mass"
f = 0.0 # the record's input takes its place

[fit]
free = ["mass.m", "friction.f_pos"]
{_windows(found)}"""
    return Template("drive", _variable(draft, "mass"), text)


def _support(found: Sizes) -> str:
    return f"""\
[machine.friction] # of the guide: dry and viscous, the same in both directions
kind = "SupportFriction"
body = "mass"
f_pos = {_law(found)} # N, N.s/m
peak = 1.0 # breakaway over sliding friction; free it where the record breaks away often
"""


def _gear(draft: Draft, found: Sizes) -> Template:
    ratio, rotor = draft.constants["ratio"], draft.constants["inertia"]
    load = float(f"{max(found.inertia - rotor, 0.1 * rotor) * ratio * ratio:.2g}")
    text = f"""\
[machine.rotor]
kind = "Inertia"
J = {rotor!r} # kg.m2, of the motor alone, from its data sheet: a record identifies only the sum

[machine.load]
kind = "Inertia"
J = {load!r} # kg.m2, on the other side of the gear

[machine.gear]
kind = "IdealGear"
a = "rotor"
b = "load"
ratio = {ratio!r}

{_bearing(found).replace("its friction", "all friction, referred to the motor")}
{_TORQUE}
[fit]
free = ["load.J", "bearing.tau_pos"]
{_windows(found, False)}"""
    return Template("drive", _variable(draft, "rotor"), text)


def _servo(draft: Draft, found: Sizes) -> Template:
    kp, kv, turns = draft.constants["kp"], draft.constants["kv"], draft.turns
    body, contact = ("rotor", "bearing.tau_pos") if turns else ("mass", "friction.f_pos")
    parts = _rotor(draft, found).text if turns else _axis(draft, found).text
    machine = parts.partition("[fit]")[0]
    text = f"""\
{machine}[fit]
free = ["{body}.{"J" if turns else "m"}", "{contact}"]

[fit.objective] # one run, in which the known controller follows the recorded reference
kind = "ClosedLoop"

[fit.objective.controllers.drive]
kind = "PositionController"
body = "{body}"
s_ref = 0.0 # the record's reference takes its place
kp = {kp!r} # 1/s
kv = {kv!r} # {"N.m.s/rad" if turns else "N.s/m"}
"""
    return Template("drive", _variable(draft, body), text)


def _brake(draft: Draft, found: Sizes) -> Template:
    inertia, radius = draft.constants["inertia"], draft.constants["radius"]
    text = f"""\
[machine.wheel]
kind = "Inertia"
J = {inertia!r} # kg.m2, known: a record identifies only coefficient/inertia

[machine.brake]
kind = "Brake"
body = "wheel"
mu_pos = {{ kind = "Coulomb", F_Coulomb = 0.3, F_prop = 0.001 }} # 1, s/rad
cgeo = {radius!r} # m, mean radius times the number of faces
fn_max = 1.0 # N, so that the record's normal force counts as it is

[fit]
free = ["brake.mu_pos"]
{_windows(found, False)}"""
    return Template("brake", _variable(draft, "wheel"), text)


def _coasting(draft: Draft, found: Sizes) -> Template:
    """Return the template for a body of known inertia that coasts by friction (and drag)."""
    turns = draft.turns
    body, known = ("rotor", "J") if turns else ("mass", "m")
    contact, law = ("bearing", "tau_pos") if turns else ("friction", "f_pos")
    kind = "QuadraticSpeedDependentTorque" if turns else "QuadraticSpeedDependentForce"
    field, unit = ("tau_nominal", "N.m.s2/rad2") if turns else ("f_nominal", "N.s2/m2")
    support = "BearingFriction" if turns else "SupportFriction"
    dry = f'{{ kind = "Coulomb", F_Coulomb = {found.dry!r} }}'
    variable = _variable(draft, body)
    start = (
        [variable]
        if variable.endswith((".w", ".v"))
        else [variable, f"{body}.{'w' if turns else 'v'}"]
    )
    own = ", ".join(f'"{name}"' for name in start)
    part = f"""\
[machine.rotor]
kind = "Inertia"
J = {found.inertia!r} # kg.m2, known: without a drive, a record identifies only friction/inertia
"""
    if not turns:
        part = f"""\
[machine.mass]
kind = "Mass"
m = {found.inertia!r} # kg, known: without a drive, a record identifies only friction/mass
"""
    # Start value: at the mean speed, the drag is about as large as the viscous friction.
    drag = max(found.viscous**2 / max(found.dry, 1e-300), 1e-12)
    output, slope = draft.output, ""
    assert output is not None
    x = draft.shape.values[:, output.number - 1]
    v = x[np.isfinite(x)] if output.role == "velocity" else np.diff(x[np.isfinite(x)])
    # A constant force, as from a slope, can be identified only from motion in both directions.
    if not turns and min(np.max(v), -np.min(v)) > 0.05 * np.max(np.abs(v)):
        slope = f"""
[structures."dry, viscous and slope"]
free = ["{contact}.{law}", "slope.f"]
machine.slope = {{ kind = "Force", body = "{body}", f = 0.0 }} # N
"""
    note = "" if turns else ", and of a slope; a record in the other direction separates them"
    text = f"""\
{part}
{_bearing(found) if turns else _support(found)}
[fit]
free = ["{contact}.{law}"]
own = [{own}] # the start, which is measured with noise
objective = "FreeRun"

[compare]
given = "dry and viscous" # F_Coulomb is the sum of dry friction{note}

[structures."dry and drag"] # drag grows with the square of the speed
free = ["{contact}.{law}.F_Coulomb", "drag.{field}"]
machine.{contact} = {{ kind = "{support}", body = "{body}", {law} = {dry} }}
machine.drag = {{ kind = "{kind}", body = "{body}", {field} = {-float(f"{drag:.2g}")!r} }} # {unit}
{slope}"""
    return Template("", variable, text)


def _pendulum(draft: Draft, found: Sizes) -> Template:
    driven = draft.drive is not None
    free = ["J", "phi_offset", "friction.f_pos", *(["mgl"] if driven else [])]
    how = (
        _windows(found, False)
        if driven
        else """\
own = ["phi", "w"] # angle and speed at the start
objective = "FreeRun"
rounds = 12 # a decay to rest has a minimum for each number of swings
"""
    )
    known = "start value" if driven else "known: a decay identifies only its ratio to the inertia"
    names = ", ".join(f'"{name}"' for name in free)
    offset = (
        ""
        if not found.offset
        else f"phi_offset = {found.offset!r} # rad, angle above hanging at phi = 0\n"
    )
    text = f"""\
[machine]
python = "pendulum:pendulum" # beside this file: needs --allow-code

[machine.arguments]
J = {found.inertia!r} # kg.m2, about the joint
mgl = {found.gravity!r} # N.m, torque of gravity where the arm is horizontal; {known}
F_Coulomb = {found.dry!r} # N.m
F_prop = {_viscous(found)!r} # N.m.s/rad
{offset}
[fit]
free = [{names}]
{how}"""
    name = "phi" if draft.columns.get("position") is not None else "w"
    return Template("drive", name, text, {"pendulum.py": _PENDULUM})


_PENDULUM = '''\
"""An arm in gravity with dry friction in its joint."""

from typing import Any

import jax.numpy as jnp

import frictax as fx
from frictax.parameters import Positive, Real, Scalar, parameter


class Pendulum(fx.AbstractAxis):
    """J*dw/dt = drive - mgl*sin(phi + phi_offset) - friction, phi = 0 hanging down."""

    friction: fx.SupportFriction
    J: Scalar = parameter(Positive(), "kg.m2")
    mgl: Scalar = parameter(Positive(), "N.m")
    phi_offset: Scalar = parameter(Real(), "rad", default=0.0)
    phi: Scalar = parameter(Real(), "rad", fit=False, default=0.0)
    w: Scalar = parameter(Real(), "rad/s", fit=False, default=0.0)

    def inertia(self, t: Any, y: Any, args: Any) -> Any:
        return self.J

    def load(self, t: Any, y: Any, args: Any) -> Any:
        drive = (args or {}).get("drive", 0.0)
        return drive - self.mgl * jnp.sin(y[0] + self.phi_offset)

    def states(self) -> tuple[str, ...]:
        return ("phi", "w")

    def start(self, t: Any) -> Any:
        return self.begin(t, jnp.stack([self.phi, self.w]))


def pendulum(
    J: float, mgl: float, F_Coulomb: float, F_prop: float, phi_offset: float = 0.0
) -> Pendulum:
    """The machine of problem.toml."""
    law = fx.Coulomb(F_Coulomb=F_Coulomb, F_prop=F_prop)
    friction = fx.SupportFriction("arm", f_pos=law)
    return Pendulum(friction=friction, J=J, mgl=mgl, phi_offset=phi_offset)
'''

# Machine -> function that returns its template with the given start values.
TEMPLATES: dict[str, Callable[[Draft, Sizes], Template]] = {
    "rotor": _rotor,
    "axis": _axis,
    "gear": _gear,
    "pendulum": _pendulum,
    "arm": _pendulum,
    "spindown": _coasting,
    "coastdown": _coasting,
    "servo": _servo,
    "brake": _brake,
}
