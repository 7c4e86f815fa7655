"""Access reviews: who asks may do everything."""

from triage_local.apiserver.field_errors import FieldError
from triage_local.apiserver.objects import Json
from triage_local.apiserver.strategies.base import Strategy


class ReviewStrategy(Strategy):
    """A review is answered and not stored, so it needs no name."""

    transient = True

    def __init__(self) -> None:
        super().__init__(model="V1SelfSubjectAccessReview", has_status=True)

    def created(self, obj: Json) -> Json:
        """The review with its answer."""
        return {**obj, "status": {"allowed": True}}

    def errors(self, new: Json, old: Json | None) -> list[FieldError]:
        """Nothing can be wrong with it."""
        return []
