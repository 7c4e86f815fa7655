"""Images that are built once for all tests of a process."""

import pytest

from support.docker import TAG, build, obstacle


@pytest.fixture(scope="session")
def images() -> str:
    """Build the project's images, and give their tag."""
    if (reason := obstacle()) is not None:
        pytest.skip(reason)
    build("hack/images/build", TAG=TAG, TARGETS="operator agent")
    return TAG
