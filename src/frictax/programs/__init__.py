"""Compiled programs: kept for the next process, found without tracing, stopped by a key."""

from .calls import kept_call as kept_call
from .executables import jitted as jitted, kept as kept
