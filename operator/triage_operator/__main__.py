"""``python -m triage_operator``: the same as ``triage-operator``."""

from triage_operator.cli import main

if __name__ == "__main__":
    main()
