"""The papers' tables and figures, run again: ``./run.sh experiment NAME [--repeats N]``."""

import sys

if __name__ == "__main__":  # processes that measure import this file too, and need none of that
    from experiments.harness.command import main

    sys.exit(main())
