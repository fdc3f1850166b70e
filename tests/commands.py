"""A command as a user types it, and a sweep to type it about."""

from typer.testing import CliRunner, Result

from frictax.cli import app

COLUMNS = ("--velocity", "omega", "--force", "torque")


LINE = (
    "omega,torque,std,began\n1,2.01,0.1,0\n2,2.52,0.1,0\n3,2.98,0.2,0\n4,3.49,0.1,0\n5,4.02,0.1,0\n"
)


def frictax(*arguments: str, says: str | None = None) -> Result:
    """Run a command. `says`: what the user types when asked."""
    return CliRunner().invoke(app, list(arguments), prog_name="frictax", input=says)


def plain(text: str) -> str:
    """Words in their order: typer draws boxes around its own errors."""
    return " ".join(text.replace("│", " ").split())
