"""The papers, one file each: anchors, secret bases, aligners, consensus, certificate.

Here are the words that options take, without the code behind them: a command's help lists them.
"""

from typing import Literal

AnchorKind = Literal["isometric", "gaussian", "uniform", "public", "smote"]
BasisName = Literal["svd", "pca", "lpp", "haar", "public", "consensus", "weighted_consensus"]
AlignerName = Literal["odc", "gopp", "whitened", "imakura", "kawakami"]
SpanCondition = Literal["samespan_orth", "samespan", "diffspan_orth", "diffspan"]
Scale = Literal["measured", "paper"] | float
