"""Several values in one argument: counts, numbers, windows."""

from .._limits import MAX_COUNT, limit
from ..errors import InputError, require


def counts(text: str | None, option: str) -> list[int] | None:
    """Read `1:6` as 1 to 6 with both ends, `1:9:2` as every second of them, `1,2,4` as a list, and mixtures."""
    if text is None:
        return None
    values, most, given = [], limit("HEADCOUNT_MAX_MODELS"), text if len(text) <= 80 else f"{text[:80]}..."
    for part in text.split(","):
        try:
            ends = [int(number) for number in part.split(":")]
            require(max(ends) <= MAX_COUNT, f'{option} must be at most {MAX_COUNT:,}, got "{given}".')
            several = ends if len(ends) == 1 else range(ends[0], ends[1] + 1, *ends[2:])
        except InputError:
            raise
        except (ValueError, IndexError, TypeError) as error:
            raise InputError(f'{option} must look like 1:6 or 1,2,4, got "{given}".') from error
        many = f'{option} "{given}" names more than {most:,} values, the limit of HEADCOUNT_MAX_MODELS; give fewer.'
        require(len(values) + len(several) <= most, many)
        values += several
    require(len(values) > 0, f'{option} must count upwards, as 1:6, both ends included, got "{given}".')
    require(min(values) >= 1, f"{option} must be whole numbers of at least 1, got {min(values)}.")
    require(len(set(values)) == len(values), f'{option} must not repeat a value, got "{given}".')
    return values


def one_or_counts(text: str, option: str) -> int | list[int] | None:
    """Read one count as a number, several as `counts` reads them."""
    values = counts(text, option)
    return values[0] if values is not None and len(values) == 1 else values


def numbers(text: str, option: str) -> list[float]:
    """Read `0.01,0.003` as numbers."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError as error:
        raise InputError(f'{option} must be numbers such as 0.01,0.003, got "{text[:80]}".') from error


def windows(text: str, option: str) -> list[tuple[float, float]]:
    """Read `0:0.5,0.5:1` as pairs of fractions."""
    try:
        return [(float(start), float(stop)) for start, stop in (part.split(":") for part in text.split(","))]
    except ValueError as error:
        raise InputError(f'{option} must look like 0:0.5,0.5:1, got "{text[:80]}".') from error
