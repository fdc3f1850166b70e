"""Choice of a law and of a machine's parts by predictions of data left out of the fit."""
