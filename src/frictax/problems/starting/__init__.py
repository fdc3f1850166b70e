"""The beginning of a problem: from a measured file, or an example, to a problem file."""

from .examples import EXAMPLES as EXAMPLES, copy_example as copy_example
