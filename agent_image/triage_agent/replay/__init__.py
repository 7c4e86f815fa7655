"""Our place inside ADK: a plugin that journals model replies and tool calls and gives them again after a loss."""
