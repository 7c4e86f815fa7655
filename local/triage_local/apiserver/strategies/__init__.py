"""What is special about the objects of each resource: defaults, rules, status, graceful deletion."""
