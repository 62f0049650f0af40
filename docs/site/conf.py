"""Sphinx builds the pages of this repository where they lie: `make docs`.

The source folder is the root of the repository, so that a link from one Markdown file to another is the same for
Sphinx and for whoever reads the file. Nothing is asked of the network.
"""

import json
import sys
import tomllib
from pathlib import Path

SITE = Path(__file__).parent
ROOT = SITE.parents[1]
sys.path[:0] = [str(SITE), str(ROOT / "clients" / "python" / "src")]

import headrace  # noqa: E402
import pages  # noqa: E402
from sphinx.application import Sphinx  # noqa: E402

project = "Headrace"
author = "the authors of Headrace"
copyright = "the authors of Headrace, Apache License 2.0; maps and towns: © OpenStreetMap contributors"
release = version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
root_doc = "docs/index"
include_patterns = [
    "*.md",
    "docs/*.md",
    "docs/how-to/*.md",
    "clients/python/README.md",
    "clients/typescript/README.md",
    "deploy/README.md",
    "examples/README.md",
    "benchmarks/*.md",
]
exclude_patterns = ["**/.*", "**/__pycache__", "build", "tests", "service", "gpu_engine"]
nitpicky = True
# The manuals of Python and of other libraries are on the network: names of ours must be found, theirs need not.
nitpick_ignore_regex = [(r"py:.*", r"(?!headrace\.[A-Za-z]).*")]
# Examples of answers have dots for what they leave out, and files of data have no lexer: both are shown as they are.
suppress_warnings = ["misc.highlighting_failure"]

myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence", "attrs_inline"]

autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_class_signature = "separated"
python_use_unqualified_type_names = True
default_role = "literal"

html_theme = "furo"
html_title = f"Headrace {release}"
html_extra_path = ["root"]
html_copy_source = False
html_show_sphinx = False
pygments_style, pygments_dark_style = "friendly", "native"
highlight_language = "text"

# Classes say where a program finds them, not in which file they stand.
for name in headrace.__all__:
    if isinstance(found := getattr(headrace, name), type):
        found.__module__ = "headrace"


def setup(app: Sphinx) -> None:
    document = json.loads((ROOT / "docs" / "openapi.json").read_text())
    app.connect("source-read", lambda app, name, source: pages.fill(name, source, document))
    app.connect("autodoc-process-docstring", pages.markdown_to_rst)
    app.connect("missing-reference", pages.public_name)
