"""What Sphinx reads; ``python -m sphinx -W -q docs OUT`` builds the site, without a network."""

import runpy
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml

if TYPE_CHECKING:
    from sphinx.application import Sphinx

project = "cobasis"
author = "cobasis contributors"
copyright = "2026, cobasis contributors"
release = metadata.version("cobasis")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"cobasis {release}"
html_math_renderer = "mathml"

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings say types, in words and with shapes
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False
myst_heading_anchors = 3


def _inline(translator: Any, node: nodes.math) -> None:  # noqa: ANN401 -- untyped in Sphinx
    """Write a formula as MathML, which browsers show without a script from elsewhere."""
    translator.body.append(tex2mathml(node.astext().replace(r"\dots", r"\ldots")))
    raise nodes.SkipNode


def _block(translator: Any, node: nodes.math_block) -> None:  # noqa: ANN401
    """Write a formula on its own line."""
    translator.body.append(tex2mathml(node.astext().replace(r"\dots", r"\ldots"), as_block=True))
    raise nodes.SkipNode


MADE_FROM_RESULTS = {
    "explanation/speed": "speed_figures.py",
    "how-to/large-training": "speed_figures.py",
    "explanation/evidence": "evidence_pages.py",
    "explanation/gallery": "evidence_pages.py",
}


def _with_figures(_: "Sphinx", name: str, source: list[str]) -> None:
    """Put tables and charts made from results into the pages that have places for them."""
    if name in MADE_FROM_RESULTS:
        path = Path(__file__).with_name(MADE_FROM_RESULTS[name])
        source[0] = runpy.run_path(str(path))["filled"](source[0])


def setup(app: "Sphinx") -> None:
    """Register the formula writer and the figures; where tests ask for it, draw no gallery."""
    if "undrawn" in app.tags:
        del MADE_FROM_RESULTS["explanation/gallery"]
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    app.connect("source-read", _with_figures)
