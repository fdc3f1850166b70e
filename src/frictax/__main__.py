"""`python -m frictax`: the command line where its script is not on the path."""

from frictax.cli import main

if __name__ == "__main__":
    main()
