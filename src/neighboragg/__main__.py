"""`python -m neighboragg` is the `neighboragg` command."""

from neighboragg._cli import main

if __name__ == "__main__":
    main()
