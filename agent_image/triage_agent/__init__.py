"""The agent process: claims an attempt, runs or resumes the invocation, journals its effects."""
