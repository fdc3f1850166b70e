"""Parts of a machine (bodies, springs, gears, drives), and their equations as a hybrid system."""

from frictax.handover import lazily

# Most users do not need the base classes `AbstractAxis` and `AbstractLinkage`. Therefore each name
# of this package is imported only when it is first used.
__getattr__, __dir__ = lazily(globals())
