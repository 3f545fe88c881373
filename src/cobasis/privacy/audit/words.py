"""How an audit writes numbers, for readers who have other work than reading numbers."""

_MANY = 0.995


def per_cent(share: float) -> str:
    """Return a share in per cent; what is worse than guessing is 0."""
    percent = 100 * min(max(share, 0.0), 1.0)
    if percent in {0.0, 100.0} or 1 <= percent <= 100 * _MANY:
        return f"{percent:.0f} %"
    if percent < 1:
        return f"{percent:.1f} %" if percent >= 0.05 else "less than 0.1 %"  # noqa: PLR2004
    text = f"{percent:.1f}"
    return f"{text} %" if text != "100.0" else "more than 99.9 %"


def times(share: float) -> str:
    """Return how often in a thousand something happens."""
    if share >= 1:
        return "every time"
    thousand = 1000 * share
    if thousand == 0:
        return "never in 1,000"
    if thousand < 1:
        return "less than once in 1,000"
    text = f"{thousand:.1f}".removesuffix(".0") if thousand < 10 else f"{thousand:.0f}"  # noqa: PLR2004
    if text in {"1", "1000"}:
        return "once in 1,000" if text == "1" else "999 times in 1,000"
    return f"{text} times in 1,000"


def of_ten(share: float) -> str:
    """Return a share as so many of ten."""
    tenths = round(10 * share)
    if share < 0.05:  # noqa: PLR2004
        return "fewer than 1 in 10"
    if tenths == 10 and share < 1:  # noqa: PLR2004
        return "more than 9 in 10"
    return f"{tenths} in 10"
