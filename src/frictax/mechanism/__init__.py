"""Parts of a machine (bodies, springs, gears, drives), and their equations as a hybrid system."""

from frictax.handover import lazily

# Each name of this package is imported at its first use, because most users do not need the base
# classes for machines of their own (axis, linkage).
__getattr__, __dir__ = lazily(globals())
