"""The documentation site: `make docs` builds it from the Markdown of this repository.

The source is the repository's root. Therefore pages outside of docs/ (experiments, identified
machines) are pages of the site, and relative links work on the site and on a forge.
"""

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "extensions"))

import kernels  # noqa: E402

import frictax  # noqa: E402

project = "frictax"
author = "The frictax developers"
copyright = author
version = release = frictax.__version__
language = "en_GB"
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx_copybutton",
    "dealt",
    "mathml",
    "reference",
    "study_pictures",
    "terminal",
]

root_doc = "docs/index"
include_patterns = [
    "docs/**.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "data/**.md",
    "experiments/**.md",
    "experiments/**.ipynb",
    "identification/**.md",
]
exclude_patterns = [".*", "build", "dist", "src", "tests", "**/build", "**/.ipynb_checkpoints"]
smartquotes = False  # --option stays --option
default_role = "py:obj"  # in docstrings: a link where the name is public, else code

myst_enable_extensions = ["dollarmath", "colon_fence", "attrs_block"]
myst_heading_anchors = 4

nb_execution_mode = os.environ.get("FRICTAX_DOCS_NOTEBOOKS", "force")
if nb_execution_mode == "off":  # only a run says in which language the cells are
    suppress_warnings = ["myst-nb.lexer"]
# Stands with its stored figures; the tests run it and compare them (tests/experiments).
nb_execution_excludepatterns = ["experiments/*.ipynb"]
nb_execution_timeout = 300
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_merge_streams = True
nb_ipywidgets_js = {}  # no page has widgets, and these scripts would come from the network
kernels.prepare(HERE.parent)

autodoc_typehints = "none"  # docstrings say unit and domain
autodoc_member_order = "bysource"
autodoc_class_signature = "mixed"
autodoc_inherit_docstrings = True
add_module_names = False
maximum_signature_line_length = 80
toc_object_entries_show_parents = "hide"
python_display_short_literal_types = True

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_exclude = ".linenos, .gp, .go"

html_theme = "furo"
html_title = f"frictax {version}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_extra_path = ["front"]
html_copy_source = False
html_show_sphinx = False
html_use_index = True
