"""Support for the course notebooks: classes built cell by cell, figures, checks, saved work, and case studies."""

from tinybench.course.accessible_figures import OKABE_ITO, show_figure, use_figure_style
from tinybench.course.backup import restore, save
from tinybench.course.cache import cached, cached_fit
from tinybench.course.case_study_data import Case, case_study
from tinybench.course.check_feedback import check_answer, passed
from tinybench.course.notebook_setup import set_up_notebook
from tinybench.course.overview import course_map, sections
from tinybench.course.pieces import BUILT_BY_STUDENT, REFERENCE_OF, add_to_class, announce, graft, use_notebook_as

__all__ = [
    "BUILT_BY_STUDENT",
    "OKABE_ITO",
    "REFERENCE_OF",
    "Case",
    "add_to_class",
    "announce",
    "cached",
    "cached_fit",
    "case_study",
    "check_answer",
    "course_map",
    "graft",
    "passed",
    "restore",
    "save",
    "sections",
    "set_up_notebook",
    "show_figure",
    "use_figure_style",
    "use_notebook_as",
]
