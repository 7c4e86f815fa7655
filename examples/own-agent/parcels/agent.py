"""The agent: it looks a parcel up, and books its return."""

import os
from typing import Any

import httpx
from google.adk.agents.llm_agent import LlmAgent
from google.adk.apps.app import App

DEPOT_URL = os.environ.get("DEPOT_URL", "http://depot:8080")
TIMEOUT_SECONDS = 60.0


def find_parcel(number: str) -> dict[str, Any]:
    """Find a parcel by its number.

    Args:
        number: Such as `AB12`.
    """
    return _answer(httpx.get(f"{DEPOT_URL}/parcels/{number}", timeout=TIMEOUT_SECONDS))


def book_return(number: str, reason: str) -> dict[str, Any]:
    """Book the return of a parcel: a courier fetches it, and the customer gets the money back.

    Args:
        number: Of the parcel.
        reason: In the customer's words.
    """
    # A parcel has one return, under its own number: booking it again changes nothing.
    url = f"{DEPOT_URL}/returns/{number}"
    return _answer(httpx.put(url, json={"reason": reason}, timeout=TIMEOUT_SECONDS))


def _answer(response: httpx.Response) -> dict[str, Any]:
    response.raise_for_status()
    answer: dict[str, Any] = response.json()
    return answer


app = App(
    name="parcels",
    root_agent=LlmAgent(
        name="parcels",
        model=os.environ.get("PARCELS_MODEL", "gemini-3.8-flash"),
        instruction="Look the customer's parcel up. If it came broken or is the wrong one, book its return.",
        tools=[find_parcel, book_return],
    ),
)
