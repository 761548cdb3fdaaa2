"""Sphinx's settings: ``make docs``, or ``sphinx-build -W -c docs . build/docs``.

The source folder is the repository's root: a link between pages is the same here and on a host of the repository.
"""
from __future__ import annotations

import os
import pathlib
import sys
from importlib.util import find_spec

ROOT = pathlib.Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "docs")]
# Executed pages: no line about compilation, and mpiexec from this environment.
os.environ.pop("MPLBACKEND", None)           # notebooks draw inline, the gallery by agg: each sets its own
os.environ.update(SWELL_QUIET="1", OPENBLAS_NUM_THREADS="1",
                  PATH=os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]]),
                  PYTHONPATH=os.pathsep.join([str(ROOT), str(ROOT / "docs"), os.environ.get("PYTHONPATH", "")]))

import pages

import swell

project, author, copyright = "swell", "The swell developers", "The swell developers, BSD-3 licence"
version = release = swell.__version__
root_doc = "docs/index"
include_patterns = ["docs/**", "benchmarks/notes/*.md", "CONTRIBUTING.md", "CHANGELOG.md"]
exclude_patterns = ["docs/ALGORITHMS.md", "docs/algorithms/**", "docs/gallery/**", "docs/_*/**", "docs/generated/gallery/*.ipynb",
                    "docs/generated/gallery/*.py", "docs/sg_execution_times.rst"]
# Tutorials that need a large library are pages where it is installed.
exclude_patterns += [f"docs/tutorials/gradients_{name}.md" for name in ("torch", "jax") if not find_spec(name)]
extensions = ["myst_nb", "sphinx.ext.mathjax", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "numpydoc", "sphinx_design",
              "sphinx_copybutton", "sphinx_gallery.gen_gallery"]
source_suffix = {".rst": "restructuredtext", ".md": "myst-nb"}

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4
nb_execution_in_temp = True
nb_execution_raise_on_error = True
nb_execution_timeout = 180
nb_merge_streams = True

toc_object_entries_show_parents = "hide"    # as_dict() in the right column, not Result.as_dict()
autosummary_generate = False                # pages.py writes one page a group of names
autodoc_typehints = "none"                  # the docstrings say more than the types
# Signatures made by swell.Options have more parameters than the source, on which autodoc_preserve_defaults fails:
# pages.py shortens "xp=<module 'numpy' from ...>".
numpydoc_show_class_members = False

sphinx_gallery_conf = {
    "examples_dirs": "docs/gallery", "gallery_dirs": "docs/generated/gallery", "filename_pattern": "plot_",
    "within_subsection_order": "FileNameSortKey", "show_memory": False, "min_reported_time": 1e9,
    "write_computation_times": False,       # that page loads scripts from elsewhere
    "remove_config_comments": True, "abort_on_example_error": True, "plot_gallery": "True",
    "image_srcset": ["2x"], "download_all_examples": False, "copyfile_regex": r"$^", "show_signature": False,
    "capture_repr": (),
}

html_theme = "pydata_sphinx_theme"
html_title = "swell"
html_favicon = "_static/swell.svg"
html_context = {"default_mode": "auto"}
# MathJax in one file, from a package: the site loads nothing from elsewhere.
mathjax_path = "tex-svg.js"
MATHJAX = pathlib.Path(find_spec("sphinx-mathjax-offline").submodule_search_locations[0], "static/mathjax", mathjax_path)
html_static_path = ["_static", str(MATHJAX)]
html_css_files = ["site.css"]
templates_path = ["_templates"]
html_additional_pages = {"index": "redirect.html"}
html_show_sourcelink = html_copy_source = html_use_index = html_domain_indices = False
html_theme_options = {
    "logo": {"text": "swell", "image_light": "_static/swell.svg", "image_dark": "_static/swell.svg", "alt_text": ""},
    "navbar_end": ["theme-switcher"], "navbar_align": "left", "header_links_before_dropdown": 8,
    "show_prev_next": True, "footer_start": ["copyright"], "footer_end": ["versions"], "show_toc_level": 2,
    "pygments_light_style": "a11y-high-contrast-light", "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"docs/index": []}


def setup(app):
    pages.write_all()
    app.connect("source-read", pages.link_to_pages)
    app.connect("autodoc-process-docstring", pages.as_rst, priority=100)
    app.connect("autodoc-process-signature", pages.short_defaults)
