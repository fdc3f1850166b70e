"""Compiled programs: cached on disk for the next process, and interruptible."""

from .calls import kept_call as kept_call
from .executables import jitted as jitted, kept as kept
