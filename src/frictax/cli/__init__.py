"""The command line: `frictax fit`, `frictax compare`, `frictax data`."""

from frictax.cli.commands import app as app
from frictax.cli.commands import main as main
