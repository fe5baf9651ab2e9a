"""How the prices of a machine profile came about: what the core has written into it (src/machine/provenance.hpp), for
people."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

from tasuki import checked

UNCERTAIN = 0.25  # as the core has it
ANY_NUMBER: checked.Kind = (checked.is_number, "a number")  # below 0: not known


def sound(data: dict, file: Path) -> None:
    """Files may come from anywhere."""
    checked.need(data.get("measured", []), checked.LIST, file, "measured")
    for i, one in enumerate(data.get("measured", [])):
        kinds = {"date": checked.TEXT, "host": checked.TEXT, "spread": checked.OBJECT}
        checked.need_all(one, kinds, file, f"measured[{i}]")
        for path, value in one["spread"].items():
            checked.need(value, checked.NUMBER, file, f"measured[{i}].spread.{path}")
        for name in ("load", "others", "cores"):
            checked.need(one.get(name, 0), ANY_NUMBER, file, f"measured[{i}].{name}")
        checked.need(one.get("derived", {}), checked.OBJECT, file, f"measured[{i}].derived")


def age(date: str) -> str:
    try:
        then = datetime.strptime(date, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=timezone.utc)
    except ValueError:
        return "at an unknown time"
    days = (datetime.now(timezone.utc) - then).days
    return "today" if days < 1 else "yesterday" if days == 1 else f"{days} days ago"


def told(profile: dict) -> str:
    """`measured 2026-11-24T17:24:05Z (today) on host7, within 4 %; load 0.3, others used 0.0 of 2 cores`."""
    lines = []
    for one in profile.get("measured", []):
        widest = max(one["spread"].values(), default=0.0)
        text = f"measured {one['date']} ({age(one['date'])}) on {one['host']}, within {widest * 100:.0f} %"
        if widest > UNCERTAIN:
            text += ", uncertain"
        if one.get("load", -1) >= 0:
            text += f"; load {one['load']:.2f}"
        if one.get("others", -1) >= 0 and one.get("cores", 0) > 0:
            text += f", others used {one['others']:.1f} of {one['cores']} cores"
        if one.get("derived"):
            text += f"; derived from plain copies, because what was measured cannot be: {', '.join(one['derived'])}"
        lines.append(text)
    return "; ".join(lines) or "nobody wrote down when it was measured"
