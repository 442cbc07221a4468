"""`headcount doctor`: whether this machine can run headcount."""

from .. import doctor as checks
from ..report.document import Document, line


def doctor() -> Document:
    """Check that this machine can run headcount: versions, device, memory, two models really trained."""
    findings = checks.examine()
    return Document(
        content=lambda: [{"check": each.check, "fine": each.fine, "found": each.found} for each in findings],
        blocks=tuple(
            line(("ok", "green") if each.fine else ("no", "red"), f"  {each.check}: {each.found}") for each in findings
        ),
        code=0 if all(each.fine for each in findings) else 1,
    )
