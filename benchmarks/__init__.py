"""Measurements: what recovery takes, what fence and journals cost, and what the operator needs."""
