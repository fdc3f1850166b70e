"""`to_fmu` writes a machine as an FMU: a file with C sources and compiled libraries."""

import importlib.util
import io
import platform
import shutil
import subprocess
import sys
import tempfile
import uuid
import warnings
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict, Unpack

from frictax.arguments import check_names, lists_options
from frictax.engine.options import OnSamples
from frictax.files.replacing import check_target, write_whole

from ..code.machine import MachineCode
from ..modelica_text import model_name
from .description import Description
from .functions import fmu_source

PLATFORMS = "x86_64-linux aarch64-linux x86_64-windows x86_64-darwin aarch64-darwin".split()
# Operating system -> folder in an FMU of FMI 2.0 (x86_64), library suffix, target of zig
SYSTEMS = {
    "linux": ("linux64", ".so", "linux-gnu.2.17"),
    "windows": ("win64", ".dll", "windows-gnu"),
    "darwin": ("darwin64", ".dylib", "macos"),
}
FLAGS = "-std=c99 -O2 -ffp-contract=off -fPIC -shared".split()
BUILD = """\
<?xml version="1.0" encoding="UTF-8"?>
<fmiBuildDescription fmiVersion="3.0">
  <BuildConfiguration modelIdentifier="{name}">
    <SourceFileSet language="C99"><SourceFile name="{name}.c"/></SourceFileSet>
  </BuildConfiguration>
</fmiBuildDescription>
"""


class FmuOptions(TypedDict, total=False):
    version: str
    name: str
    platforms: Sequence[str] | None
    overwrite: bool


DEFAULTS: dict[str, Any] = {
    "version": "2.0", "name": "Machine", "platforms": None, "overwrite": False
}  # fmt: skip


@lists_options(FmuOptions, DEFAULTS)
def to_fmu(
    machine: Any,
    path: str | Path,
    ts: Any = None,
    *,
    engine: OnSamples = OnSamples(),  # noqa: B008
    inputs: Mapping[str, str] | None = None,
    outputs: Sequence[str] | None = None,
    **options: Unpack[FmuOptions],
) -> Path:
    """Write a machine as a functional mock-up unit (FMU) for co-simulation and model exchange.

    In co-simulation the FMU integrates by the method `OnSamples`. The FMU divides a communication
    step into equal time steps, not longer than those of `to_c` for `ts`, and locates events. In
    model exchange the importing tool integrates. The FMU provides state derivatives, event
    indicators, times of time events, and exact directional derivatives within a mode.

    The variables have the names of the Modelica library. Parameters are tunable. Start values, such
    as ``mass.s.start``, are fixed. The modes of contacts are discrete variables.

    **Arguments:** `to_c` describes `machine`, `ts` [s], `engine`, `inputs` and `outputs`. Here:

    - `path`: path of the file, such as "axis.fmu".
    - `inputs`: a "held" input keeps its value from one communication point to the next; for a
      "linear" input the importer also gives its slope, the variable ``der(drive.f)``.
    - `version`: version of FMI, "2.0", which most tools import, or "3.0". `name`: the model's name.
    - `platforms`: platforms to compile for: x86_64-linux, aarch64-linux, x86_64-windows,
      x86_64-darwin, aarch64-darwin. By default, all platforms for which a compiler is found: cc,
      gcc or clang for this computer, MinGW for Windows, or ziglang (``pip install frictax[fmu]``)
      for all. An empty tuple gives a file with sources only.
    - `overwrite`: whether an existing file may be replaced.

    **Raises:** `ValueError` for the errors of `to_c`, an unknown version or a platform without
    compiler; `OSError` if the file exists or cannot be written. Without any compiler, `to_fmu`
    warns and writes sources only.

    >>> import frictax as fx, numpy as np, tempfile
    >>> t = np.linspace(0.0, 3.0, 301)
    >>> block = fx.Mechanism(
    ...     mass=fx.Mass(m=1.0),
    ...     friction=fx.SupportFriction("mass", f_pos=fx.Coulomb(F_Coulomb=2.0)),
    ...     drive=fx.Force("mass", fx.Sampled(t, 5.0 * np.sin(9.0 * t))),
    ... )
    >>> folder = Path(tempfile.mkdtemp())
    >>> to_fmu(block, folder / "block.fmu", inputs={"drive.f": "held"}, platforms=()).name
    'block.fmu'
    """
    check_names(to_fmu, options)
    given: dict[str, Any] = DEFAULTS | dict(options)
    version, name = given["version"], model_name(given["name"])
    if version not in ("2.0", "3.0"):
        raise ValueError(f"`version` must be '2.0' or '3.0', got {version!r}.")
    target = check_target(path, "the FMU")
    if target.exists() and not given["overwrite"]:
        raise FileExistsError(
            f"{path} exists. Give overwrite=True to replace it, or name another file."
        )
    compilers = find_compilers(given["platforms"])
    code = MachineCode(machine, ts, engine, inputs or {}, outputs)
    content = pack_fmu(code, version, name, compilers)
    write_whole(target, content, replace=given["overwrite"])
    return Path(path)


def pack_fmu(
    code: MachineCode, version: str, name: str, compilers: Mapping[str, Sequence[str]]
) -> bytes:
    """Return the bytes of an FMU file. `compilers`: the compiler command for each platform."""
    description = Description(code)
    source = fmu_source(code, description)
    token = str(uuid.uuid5(uuid.NAMESPACE_URL, name + source))
    source = f'#define FMI {version[0]}\n#define FX_TOKEN "{token}"\n{source}'
    files: dict[str, str | bytes] = {"modelDescription.xml": description.xml(version, name, token)}
    files[f"sources/{name}.c"] = source
    if version == "3.0":
        files["sources/buildDescription.xml"] = BUILD.format(name=name)
    for one, compiler in compilers.items():
        cpu, system = one.split("-")
        old, ending, _ = SYSTEMS[system]
        folder = old if version == "2.0" and cpu == "x86_64" else one
        with tempfile.TemporaryDirectory() as trial:
            text, binary = Path(trial, "machine.c"), Path(trial, "machine")
            text.write_text(source, encoding="utf-8")
            command = [*compiler, *FLAGS, "-o", str(binary), str(text), "-lm"]
            done = subprocess.run(command, cwd=trial, capture_output=True, text=True)
            if done.returncode:
                raise RuntimeError(
                    f"The compiler {compiler[0]} failed for {one}: {done.stderr.strip()[:300]} Take"
                    " another one, or write the sources alone by platforms=()."
                )
            files[f"binaries/{folder}/{name}{ending}"] = binary.read_bytes()
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as zipped:
        for place, content in files.items():
            zipped.writestr(zipfile.ZipInfo(place), content, zipfile.ZIP_DEFLATED)
    return archive.getvalue()


def find_compilers(asked: Sequence[str] | None) -> dict[str, list[str]]:
    """Return a dict from platform to compiler command for `asked` (None: all with a compiler)."""
    cpu = {"AMD64": "x86_64", "arm64": "aarch64"}.get(platform.machine(), platform.machine())
    here, has_zig = f"{cpu}-{platform.system().lower()}", importlib.util.find_spec("ziglang")
    programs = {"x86_64-windows": ["x86_64-w64-mingw32-gcc"]} | {here: ["cc", "gcc", "clang"]}
    found = dict[str, list[str]]()
    for name in PLATFORMS:
        cpu, system = name.split("-")
        paths = [path for path in map(shutil.which, programs.get(name, [])) if path]
        zig = [sys.executable, "-m", "ziglang", "cc", "-target", f"{cpu}-{SYSTEMS[system][2]}"]
        if paths or has_zig:
            found[name] = paths[:1] or zig
    for name in asked or ():
        if name not in PLATFORMS:
            raise ValueError(f"`platforms` must be of {', '.join(PLATFORMS)}, got {name!r}.")
        if name not in found:
            raise ValueError(
                f"No compiler was found for the platform {name!r}. Install one, such as that of"
                " `pip install frictax[fmu]`, or leave the platform out."
            )
    if asked is None and not found:
        warnings.warn(
            "No C compiler was found, so the FMU contains its sources only. Install one, such as"
            " that of `pip install frictax[fmu]`, or compile the FMU in the tool that imports it.",
            stacklevel=3,
        )
    return found if asked is None else {name: found[name] for name in asked}
