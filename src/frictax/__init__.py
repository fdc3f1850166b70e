"""Machines with dry friction: simulate their motion exactly, differentiate it through stick and
slip, and identify parameters with error bars.

    import frictax as fx

Start with `Mechanism`, `simulate`, `Record`, `Sweep` and `fit`.
"""

from frictax.handover import lazily

__version__ = "0.1.0"

# `__init__.pyi` lists the module of each name. A name is imported when it is first used.
__getattr__, __dir__ = lazily(globals())
