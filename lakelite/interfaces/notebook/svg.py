"""Pictures as SVG within HTML. Pure functions.

Promises: every text is escaped, and lines and text have the colour of the page (`currentColor`): an image file of its own would not.
"""

from __future__ import annotations

from html import escape

from lakelite.interfaces.values import visible
from lakelite.records import dataclass

FONT_PX = 13


@dataclass(frozen=True, slots=True)
class Picture:
    """`svg`: the element. `words`: the same in lines of text, for who does not see it."""

    svg: str
    words: str

    def _repr_html_(self) -> str:
        return f'<div style="overflow-x: auto; max-width: 100%">{self.svg}</div>'

    def __repr__(self) -> str:
        return self.words


def element(name: str, *inside: str, **attributes: object) -> str:
    """An element with what is inside of it, which is SVG already. An underscore in the name of an attribute is a dash."""
    written = "".join(f' {key.rstrip("_").replace("_", "-")}="{escape(str(value))}"' for key, value in attributes.items())
    return f"<{name}{written}>{''.join(inside)}</{name}>"


def title(text: str) -> str:
    """A tooltip, and what a screen reader says. It may have lines."""
    return element("title", "\n".join(escape(visible(line)) for line in text.split("\n")))


def label(text: str, x: float, y: float, **attributes: object) -> str:
    """One line of text."""
    return element("text", words(text), x=f"{x:g}", y=f"{y:g}", fill="currentColor", stroke="none", **attributes)


def words(text: str) -> str:
    """Text as SVG shows it, control characters spelled out."""
    return escape(visible(text))


def drawing(name: str, width: float, height: float, *inside: str) -> str:
    """The whole picture. `name`: what it is, for who does not see it."""
    size = {"width": f"{width:g}", "height": f"{height:g}", "viewBox": f"0 0 {width:g} {height:g}"}
    plain = {"role": "img", "fill": "none", "stroke": "currentColor", "font_size": FONT_PX, "style": "font-family: inherit; color: inherit"}
    return element("svg", title(name), *inside, xmlns="http://www.w3.org/2000/svg", **size, **plain)
