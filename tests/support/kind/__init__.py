"""A kind cluster with the chart installed, as the end-to-end tests use it."""
