# Sphinx's settings for the documentation site. tools/docs.py lays the sources out and calls Sphinx.
import os

project = "Tasuki"
root_doc = "index"
html_title = "Tasuki"
html_show_copyright = False
html_theme = "furo"
extensions = ["myst_parser", "sphinx_copybutton"]
html_static_path = ["static"]
html_css_files = ["site.css"]
highlight_language = "text"  # of blocks that name no language: commands and output
copybutton_prompt_text = r"\$ |>>> |\.\.\. "
copybutton_prompt_is_regexp = True
myst_heading_anchors = 4  # links name headings as they do where Markdown is shown without Sphinx
myst_enable_extensions = ["colon_fence"]
python_maximum_signature_line_length = 100
suppress_warnings = [
    "misc.highlighting_failure",  # programs in pages may leave parts out
    "duplicate_declaration.cpp",  # every header opens the namespace
    "duplicate_declaration.c",  # a struct and its typedef have one name
]

doxygen = os.environ.get("TASUKI_DOXYGEN_XML")
if doxygen:
    extensions.append("breathe")
    breathe_projects = {"tasuki": doxygen}
    breathe_default_project = "tasuki"
    breathe_domain_by_extension = {"h": "c", "hpp": "cpp", "cuh": "cpp"}
    breathe_show_include = False
    cpp_id_attributes = ["__device__", "__global__", "__host__", "__forceinline__"]
