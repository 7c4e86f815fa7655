"""Agents of every shape, killed everywhere. The judge is a ledger of effects in which no part of ours writes."""
