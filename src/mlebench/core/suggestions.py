"""Which known name was probably meant. Imports nothing: `mlebench --help` should not wait."""

TYPE_CHECKING = False  # as in `typing`, whose import alone takes a tenth of the time of --help
if TYPE_CHECKING:
    from collections.abc import Iterable


def did_you_mean(
    word: str,
    known: "Iterable[str]",
    otherwise: str | None = None,
    *,
    prefix: str = "",
    cutoff: float = 0.6,
    most: int = 1,
) -> str:
    """A question that names the nearest of the known names; if none is near, what to say, or a list of all.

    A prefix that all of them have does not count.
    """
    import difflib

    names = {name.removeprefix(prefix): name for name in known}
    near = difflib.get_close_matches(word.removeprefix(prefix), names, n=most, cutoff=cutoff)
    if near:
        return f"did you mean {' or '.join(names[name] for name in near)}?"
    return otherwise or f"choose from {', '.join(names.values())}"
