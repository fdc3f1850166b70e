"""A folder as a process leaves it that is killed between the renames of two files."""

import json
from pathlib import Path


def leave_half_written(path: Path, content: bytes, old: bytes = b"old") -> None:
    """Let `path` hold `old`, while `content` waits beside it for its rename."""
    path.write_bytes(old)
    before = path.parent / ".frictax-0123456789abcdef"
    before.with_suffix(".0.part").write_bytes(content)
    lines = json.dumps([[path.name, False]]) + "\nforward\n"
    before.with_suffix(".journal").write_text(lines)
