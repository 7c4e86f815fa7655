"""The docs-triage agent: reads a report about documentation, finds the page, and files one issue."""
