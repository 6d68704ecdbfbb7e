"""`python -m heliostat` is `helio`."""

from heliostat.cli.main import main

if __name__ == "__main__":
    main()
