"""Which law, and which parts, a machine has: judged by what was left out of the fit."""
