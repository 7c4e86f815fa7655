"""The operator: observes runs, decides, and applies one action at a time."""
