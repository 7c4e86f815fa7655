"""``triage-operator``, and ``python -m triage_operator``."""

import os
import signal


def main() -> None:
    """Run the command line."""
    # The first process of a container never gets a signal that it has no handler for, and the import takes a second.
    signal.signal(signal.SIGTERM, lambda number, _frame: os._exit(128 + number))
    from triage_operator import cli

    cli.main()


if __name__ == "__main__":
    main()
