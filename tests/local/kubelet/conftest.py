"""The nodes of these tests."""

from support.nodes import nodes

__all__ = ["nodes"]
