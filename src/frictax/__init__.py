"""Machines with dry friction: simulated exactly, differentiated through stick and slip, identified
with error bars.

    import frictax as fx

Start with `Mechanism`, `simulate`, `Record`, `Sweep` and `fit`.
"""

from frictax.handover import lazily

__version__ = "0.1.0"

# Where each name lives stands in `__init__.pyi`. `import frictax` costs next to nothing.
__getattr__, __dir__ = lazily(globals())
