"""One attempt at a run, as a process: settings, claim, signs of life, drain, outcome."""
