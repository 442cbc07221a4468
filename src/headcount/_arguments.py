"""How a person writes several values in one argument, and what is said when it cannot be read."""

from ._errors import InputError, require


def counts(text: str, option: str) -> list[int]:
    """`1:6` is 1 to 6 with both ends, `1:9:2` every second of them, `1,2,4` a list; parts may be mixed."""
    found = []
    for part in text.split(","):
        try:
            ends = [int(number) for number in part.split(":")]
            found += ends if len(ends) == 1 else range(ends[0], ends[1] + 1, *ends[2:])
        except (ValueError, IndexError, TypeError) as error:
            raise InputError(f'{option} must look like 1:6 or 1,2,4, got "{text}".') from error
    require(len(found) > 0, f'{option} "{text}" names no value; 1:6 counts upwards, both ends included.')
    require(min(found) >= 1, f"{option} must be whole numbers of at least 1, got {min(found)}.")
    require(len(set(found)) == len(found), f'{option} must not repeat a value, got "{text}".')
    return found


def numbers(text: str, option: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError as error:
        raise InputError(f'{option} must be numbers such as 0.01,0.003, got "{text}".') from error


def windows(text: str) -> list[tuple[float, float]]:
    try:
        return [(float(start), float(stop)) for start, stop in (part.split(":") for part in text.split(","))]
    except ValueError as error:
        raise InputError(f'--windows must look like 0:0.5,0.5:1, got "{text}".') from error
