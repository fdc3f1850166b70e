"""Compiled programs of JAX that are cached on disk for the next process. A keyboard interrupt stops
a running program at once.
"""

from .calls import cached_primitive as cached_primitive
from .executables import cached_jit as cached_jit, interruptible_jit as interruptible_jit
