"""`python -m frictax`: start the command line without its script, which may not be on the path."""

from frictax.cli import main

if __name__ == "__main__":
    main()
