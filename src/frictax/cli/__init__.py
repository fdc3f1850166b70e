"""The command line: `frictax fit`, `frictax compare`, `frictax data`."""

from frictax.cli.commands import app as app, main as main
