"""`python -m ixion` is the `ixion` command."""

from ixion.cli.main import main

if __name__ == "__main__":
    main()
