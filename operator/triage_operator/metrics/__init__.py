"""Metrics: ``declared`` has them all, the other modules fill them."""
