"""Whether dashboards and alerts tell what happened: an incident on a local cluster, and a real Prometheus that saw it.

``python -m observe`` lets an incident happen, sends every query of every panel and alert to that Prometheus, and holds
the answers against what the tables of runs say.
"""
