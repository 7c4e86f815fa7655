"""The Grafana dashboards, as code: ``hack/generate.py`` writes their JSON into the chart.

They ask for the metrics that ``triage_operator.metrics.declared`` names; a test holds each query against those.
"""
