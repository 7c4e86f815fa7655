"""Our place inside ADK: plugins that journal model replies and tool calls and give them again after a loss."""
