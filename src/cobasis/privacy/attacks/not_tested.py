"""Attacks that are known and that nobody has tried here; the threat model's page shows them."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class NotTested:
    """An attack that is known and was not tried."""

    name: str
    why: str  # why not, or what stands for it


NOT_TESTED: tuple[NotTested, ...] = (
    NotTested(
        name="Membership with shadow models (Shokri, LiRA)",
        why="takes hundreds of models per question; the thresholds here are a lower bound",
    ),
    NotTested(
        name="Learned inversion: a network trained to turn releases into records",
        why="with public rows the linear estimate is what we measure; a network may see more",
    ),
    NotTested(
        name="Reconstruction with a sparse or other strong prior",
        why="the prior here is mean and covariance of rows of the same kind",
    ),
    NotTested(
        name="ICA on the rows themselves",
        why="features would have to be independent, and those of real tables are not",
    ),
    NotTested(
        name="Inversion of the weights of a network, or of the thresholds of trees",
        why="nobody has shown records in them at these sizes; a network could be made to hold some",
    ),
    NotTested(
        name="A party that chooses its rows to mark the model (backdoor)",
        why="a party is shown what the model is worth on its own rows; a trigger passes that",
    ),
    NotTested(
        name="An analyst that lies: a false G_i, another model for each party",
        why="a G_i that is no rotation and a model of another form are refused, and parties can "
        "compare the model's digest; a wrong rotation shows only in accuracy",
    ),
    NotTested(
        name="Two parties that are one",
        why="whoever enrols decides who is enrolled; the software cannot know",
    ),
    NotTested(
        name="Intersection of many rounds with changing parties",
        why="only two uploads and two models are compared here",
    ),
    NotTested(
        name="Features that mean something else than the attacker's",
        why="images shifted by one pixel stopped the attack with a public sample; a better attack "
        "would correct the shift",
    ),
    NotTested(
        name="Timing and file sizes",
        why="an upload is one file, and its size is its number of rows, which is public",
    ),
    NotTested(
        name="Rounding of noise",
        why="noise lies on a grid, which is a mitigation and no proof; no attack on it was tried",
    ),
    NotTested(
        name="A stolen key, laptop or backup",
        why="what leaks is counted (leaked basis, another party's frame); how it leaks is not",
    ),
)
