"""An nbgrader step that runs submissions in the sandbox instead of in nbgrader itself.

`nbgrader autograde` and the button in Formgrader use this step.
"""

from __future__ import annotations

import json
from typing import Any

from nbformat import NotebookNode
from nbgrader.preprocessors import NbGraderPreprocessor

from autograder.course.assignment import Assignment
from autograder.course.nbgrader_settings import MODULES, project_root
from autograder.course.notebook import cells_of, parse_notebook
from autograder.grading.batch_verdicts import kept_seed
from autograder.grading.sanitize import safe_line
from autograder.grading.submission import read_submission
from autograder.grading.worker_pools import grade_apart
from autograder.sandbox.bubblewrap import available


class ExecuteSubmission(NbGraderPreprocessor):
    """A preprocessor that grades the submitted file. It uses only the cells' checksums from nbgrader's notebook."""

    def preprocess(self, nb: NotebookNode, resources: dict[str, Any]) -> tuple[NotebookNode, dict[str, Any]]:
        """Grade a submission in the sandbox. Return the judged notebook, and the unchanged `resources`."""
        available()
        who, name, root = resources["nbgrader"]["student"], resources["nbgrader"]["assignment"], project_root()
        submitted = root / "course" / "submitted"
        content = read_submission(submitted / who / name / f"{name}.ipynb", submitted)
        assignment = Assignment.read(root / MODULES / name / f"{name}.ipynb")
        graded = json.loads(grade_apart(assignment, content, kept_seed(root / "course" / "verdicts" / name)))
        for item in graded["evidence"]:
            self.log.warning("look at %s: %s", safe_line(who), safe_line(f"{item['cell']}: {item['what']}"))
        judged = parse_notebook(graded["notebook"].encode(), name)
        checksums = {cell.id: cell.marks["checksum"] for cell in cells_of(nb) if "checksum" in cell.marks}
        for cell in cells_of(judged):
            if cell.marks and cell.id in checksums:
                cell.node.metadata.nbgrader.checksum = checksums[cell.id]
        return judged, resources
