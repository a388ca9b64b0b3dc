"""Settings of Sphinx. The sources are collected by tools/pages; nothing is fetched from a network."""

from typing import Any

from docutils.utils.math.latex2mathml import tex2mathml

import oxigrad
from oxigrad.optim.settings.documentation import SECTIONS

project = "oxigrad"
author = "the oxigrad authors"
copyright = author
version = release = oxigrad.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton", "sphinx_design"]
root_doc = "index"
exclude_patterns = ["**/pictures/*.md"]
source_suffix = {".rst": "restructuredtext", ".md": "markdown"}
highlight_language = "text"  # of blocks that name none
default_role = "py:obj"  # a link where the name is known, and code where it is not
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 4
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88
napoleon_numpy_docstring = False
napoleon_custom_sections = [(name.capitalize(), "params_style") for name in SECTIONS]
toc_object_entries = False
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_only_copy_prompt_lines = True
html_math_renderer = "mathml"

# Where a network may be used: make docs OPTIONS=--online. Otherwise names of other libraries are code without links.
if tags.has("online"):  # noqa: F821 - Sphinx defines it  # pyright: ignore[reportUndefinedVariable]
    extensions.append("sphinx.ext.intersphinx")
    intersphinx_mapping = {
        "python": ("https://docs.python.org/3", None),
        "numpy": ("https://numpy.org/doc/stable", None),
        "scipy": ("https://docs.scipy.org/doc/scipy", None),
    }

html_theme = "pydata_sphinx_theme"
html_title = "oxigrad"
html_favicon = "static/logo.svg"
html_static_path = ["static"]
templates_path = ["templates"]
html_css_files = ["oxigrad.css"]
html_js_files = ["filter.js", "versions.js", "names.js", "search.js"]
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_show_search_summary = False  # it fetches pages, which browsers refuse for files: static/search.js shows excerpts
html_theme_options = {
    "logo": {
        "text": "oxigrad",
        "image_light": "static/logo.svg",
        "image_dark": "static/logo.svg",
        "alt_text": "The logo, a nabla with horns",
    },
    "header_links_before_dropdown": 7,
    "navbar_align": "left",
    "navbar_persistent": ["search-button"],
    "navbar_end": ["versions", "theme-switcher"],
    "secondary_sidebar_items": ["page-toc"],
    "show_prev_next": False,
    "footer_start": ["copyright"],
    "footer_end": [],
    "navigation_with_keys": False,
    "collapse_navigation": True,
}
# A list of contents in each of these pages would take most of the time of the build: static/names.js fills theirs.
html_sidebars = {"reference/*/*": ["names.html"], "gallery/*": ["names.html"], "examples/*": [], "index": []}


def visit_math(translator: Any, node: Any) -> None:
    """A formula within a line, as MathML, which browsers draw without a program."""
    translator.body.append(mathml(node, block=False))
    raise translator_skip()


def visit_displaymath(translator: Any, node: Any) -> None:
    """A formula by itself."""
    translator.body.append(f'<div class="formula">{mathml(node, block=True)}</div>')
    raise translator_skip()


def mathml(node: Any, *, block: bool) -> str:
    """A formula as MathML."""
    return tex2mathml(node.astext(), as_block=block)


def translator_skip() -> Exception:
    """The exception by which docutils skips the children of a node."""
    from docutils.nodes import SkipNode

    return SkipNode()


def setup(app: Any) -> None:
    """Adds the drawing of formulas, and says what a build does in the minutes that it takes."""
    app.connect("env-before-read-docs", lambda app, env, names: print(f"  reads {len(names)} pages", flush=True))
    app.connect("env-updated", lambda app, env: print(f"  writes {len(env.found_docs)} pages", flush=True))
    app.add_html_math_renderer("mathml", inline_renderers=(visit_math, None), block_renderers=(visit_displaymath, None))
