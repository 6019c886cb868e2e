"""How the documentation is built: `python -m sphinx -W --keep-going -n -b html docs OUT`.

Nothing here asks the network. Examples that need the UCI tables are shown without being
run where the tables are not there.
"""

import inspect
import os
import re
import sys
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent
EXAMPLES = DOCS.parent / "examples"
sys.path.insert(0, str(DOCS))
os.environ.setdefault("MPLBACKEND", "agg")

import figures  # noqa: E402
from docutils import nodes  # noqa: E402
from sphinx import addnodes  # noqa: E402

import skpuffer  # noqa: E402
import skpuffer.audit  # noqa: E402
import skpuffer.displays  # noqa: E402
import skpuffer.laws  # noqa: E402
import skpuffer.metrics  # noqa: E402

project = "skpuffer"
author = "the skpuffer developers"
copyright = author
release = version = skpuffer.__version__
language = "en"

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "sphinxcontrib.bibtex",
]
source_suffix = {".rst": "restructuredtext", ".md": "markdown"}
exclude_patterns = ["_build", "_templates", "gallery/*.md", "gallery/**/*.md"]
templates_path = ["_templates"]
# Public names in docstrings are links; other names are parameters.
default_role = "name"

# Markdown
myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

# The reference
MODULES = (
    skpuffer,
    skpuffer.audit,
    skpuffer.displays,
    skpuffer.exceptions,
    skpuffer.laws,
    skpuffer.metrics,
)
PUBLIC = {
    name: f"{module.__name__}.{name}" for module in MODULES for name in module.__all__
}
# Pages of names that are gone would stay.
for old in (DOCS / "generated").glob("*.rst"):
    old.unlink()
autosummary_generate = True
autosummary_context = {
    "properties": {
        f"{module.__name__}.{name}": [
            member
            for member, value in inspect.getmembers(
                getattr(module, name), lambda value: isinstance(value, property)
            )
            if not member.startswith("_")
        ]
        for module in MODULES
        for name in module.__all__
        if inspect.isclass(getattr(module, name))
    },
    # scikit-learn's own, which its documentation describes.
    "of_sklearn": [
        "fit_transform",
        "get_metadata_routing",
        "get_params",
        "set_fit_request",
        "set_output",
        "set_params",
        "set_score_request",
        "set_transform_request",
    ],
}
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

# The papers
bibtex_bibfiles = ["references.bib"]
bibtex_default_style = "plain"
bibtex_reference_style = "author_year"

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_exclude = ".linenos, .gp, .go"

# The folder with the UCI tables, if any.
_FOLDER = os.environ.get("SKPUFFER_DATA", "")
TABLES = Path(_FOLDER) if _FOLDER and Path(_FOLDER).is_dir() else None
if TABLES is not None:
    os.environ["SKPUFFER_DATA"] = str(TABLES)
NEEDS_TABLES = re.compile(r"^\s*(?:from|import) tables\b", re.MULTILINE)


def runs(script: Path) -> bool:
    """Whether an example is run: those of the papers, and on tables, with the tables."""
    if TABLES is not None:
        return True
    return script.parent == EXAMPLES and not NEEDS_TABLES.search(
        script.read_text("utf-8")
    )


_RUN = [
    script.relative_to(EXAMPLES).as_posix()
    for script in sorted(EXAMPLES.rglob("*.py"))
    if runs(script)
]
sphinx_gallery_conf = {
    # A folder in it with a GALLERY_HEADER.rst is a section with a page of its own.
    "examples_dirs": [os.path.relpath(EXAMPLES, DOCS)],
    "gallery_dirs": ["gallery"],
    "ignore_pattern": r"^tables\.py$|^_",
    # `$.` matches nothing.
    "filename_pattern": "|".join(rf"/{re.escape(name)}$" for name in _RUN) or "$.",
    "within_subsection_order": "reading_order.ReadingOrder",
    "backreferences_dir": "generated/backreferences",
    "doc_module": ("skpuffer",),
    "abort_on_example_error": False,
    "only_warn_on_example_error": False,
    "download_all_examples": False,
    "show_memory": False,
    "min_reported_time": 0,
    # Their page would load scripts from elsewhere.
    "write_computation_times": False,
    "show_signature": False,
    "remove_config_comments": True,
    "matplotlib_animations": False,
}

html_theme = "furo"
html_title = f"skpuffer {release}"
html_static_path = ["_static"]
html_css_files = ["custom.css"]
html_copy_source = False
html_show_sourcelink = False
html_last_updated_fmt = None


def draw_figures(app: object) -> None:
    """Draw what the pages show, for light and dark."""
    figures.draw(DOCS / "generated" / "figures")


UNRUN = """
.. note::

   This page was built without running the script, on a machine without its tables. What
   it prints and draws is not shown.
"""


def say_what_did_not_run(app: object, docname: str, source: list[str]) -> None:
    """Tell the reader of a gallery page that has no results why it has none."""
    script = EXAMPLES / f"{docname.removeprefix('gallery/')}.py"
    if docname.startswith("gallery/") and script.is_file() and not runs(script):
        # After the title: the first line of its kind that underlines another.
        source[0] = re.sub(
            r"^(\w.*\n(?:={3,}|-{3,})\n)",
            rf"\1{UNRUN}\n",
            source[0],
            count=1,
            flags=re.M,
        )


def end_blocks(app: object, doctree: nodes.document) -> None:
    """Drop the blank line that ends the output of a doctest, in pages as shown."""
    for block in doctree.findall(nodes.literal_block):
        text = block.astext()
        if block.rawsource == text and text.endswith("\n"):
            block.rawsource = text.rstrip("\n")
            block[:] = [nodes.Text(block.rawsource)]


def name_role(
    role: str,
    rawtext: str,
    text: str,
    lineno: int,
    inliner: Any,
    options: object = None,
    content: object = None,
) -> tuple[list[nodes.Node], list[nodes.system_message]]:
    """Show a name as code, and link it if it is public."""
    shown = nodes.literal(rawtext, text)
    if text not in PUBLIC or text in ("exceptions", "__version__"):
        return [shown], []
    link = addnodes.pending_xref(
        rawtext,
        shown,
        refdomain="py",
        reftype="obj",
        reftarget=PUBLIC[text],
        refexplicit=True,
        refdoc=inliner.document.settings.env.docname,
        refwarn=True,
    )
    return [link], []


def keep_bars(
    app: object, what: str, name: str, obj: object, options: object, lines: list[str]
) -> None:
    """Let |x| in a docstring be a distance, and no substitution."""
    shown = False
    for place, line in enumerate(lines):
        shown = line.lstrip().startswith(">>>") or (shown and bool(line.strip()))
        if not shown:
            parts = re.split(r"(``.+?``|`[^`]+`)", line)
            parts[::2] = [part.replace("|", r"\|") for part in parts[::2]]
            lines[place] = "".join(parts)


def setup(app: Any) -> None:
    """Draw before the sources are read, and tidy what was read."""
    app.add_role("name", name_role)
    app.connect("builder-inited", draw_figures)
    app.connect("autodoc-process-docstring", keep_bars)
    app.connect("source-read", say_what_did_not_run)
    app.connect("doctree-read", end_blocks)
