"""The faults over HTTP, for a server in another process."""

from collections.abc import Callable
from typing import Any

from aiohttp import web

from triage_local.apiserver.faults import Answer, Faults


def fault_routes(faults: Faults) -> list[web.RouteDef]:
    """Routes under ``/faults``: POST of a method's name with its arguments as a JSON object; DELETE to clear.

    ``POST /faults/drop_watches {"target": "pods"}`` answers ``{"result": 2}``. A wrong name is 404, a wrong
    argument 400.
    """

    def answer(**fields: Any) -> None:
        faults.answer(Answer(**fields))

    methods: dict[str, Callable[..., object]] = {
        "answer": answer,
        "drop_watches": faults.drop_watches,
        "freeze_watches": faults.freeze_watches,
        "truncate_watches": faults.truncate_watches,
        "fail_watches": faults.fail_watches,
        "lose_deleted": faults.lose_deleted,
        "expire": faults.expire,
    }

    async def call(request: web.Request) -> web.Response:
        method = methods.get(request.match_info["name"])
        if method is None:
            raise web.HTTPNotFound(text=f"there are: {', '.join(methods)}")
        try:
            arguments = await request.json() if request.can_read_body else {}
            return web.json_response({"result": method(**arguments)})
        except (TypeError, ValueError) as error:
            raise web.HTTPBadRequest(text=str(error)) from error

    async def clear(_: web.Request) -> web.Response:
        faults.clear()
        return web.json_response({"result": None})

    return [web.post("/faults/{name}", call), web.delete("/faults", clear)]
