"""A slot's name in a table, with the colour that it has in its column and in the charts."""

from __future__ import annotations

from html import escape

from ..charts import slot_colour


def slot_cell(place: int, name: str, scope: str) -> str:
    """A heading cell of a row or a column ("row", "col") for the slot at this place in the comparison."""
    return f'<th scope="{scope}" class="of-slot" style="--slot: {slot_colour(place)}">{escape(name)}</th>'
