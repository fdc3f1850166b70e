"""The command line: `frictax fit`, `frictax compare`, `frictax data`."""

from .commands import app as app, main as main
