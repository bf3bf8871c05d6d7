"""The `autograder` command."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from autograder.course.config import project_root
from autograder.course.notebook import NotebookError
from autograder.leaderboard.commands import add_commands
from autograder.sandbox.bubblewrap import SandboxUnavailable

OK, FAILED, USAGE = 0, 1, 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0 done, 1 something is wrong, 2 wrong usage."""
    options = _parser().parse_args(arguments)
    try:
        root = Path(options.root).resolve() if options.root else project_root()
        return int(options.command(root, options))
    except (NotebookError, SandboxUnavailable, OSError, ValueError) as error:
        print(f"autograder: {error}", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        print("autograder: stopped", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="autograder",
        description="From notebook to grade: export the package, release the course, grade it.",
        epilog="Exit codes: 0 done, 1 something is wrong (and said), 2 wrong usage.",
    )
    parser.add_argument("--root", help="the course's folder; found from the current folder otherwise")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    def add(name: str, function: object, summary: str, more: str = "") -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=summary, description=f"{summary}. {more}".strip())
        command.set_defaults(command=function)
        return command

    export = add(
        "export",
        _export,
        "Write tinybench/ from the notebooks",
        "Takes the cells tagged export without solution markers; refuses undefined names, magics and side effects.",
    )
    export.add_argument("notebooks", nargs="*", metavar="NN_name", help="only these; all when none is named")
    export.add_argument("--check", action="store_true", help="write nothing; exit 1 if a file would change")

    lint = add(
        "lint", _lint, "Check that the course's notebooks are clean", "No outputs, stable ids, markers in order."
    )
    lint.add_argument("--fix", action="store_true", help="clear outputs and foreign metadata, set ids")

    release = add(
        "release",
        _release,
        "Build the student notebooks and prove that untouched they score 0",
        "Writes course/release/ and student/; a notebook the student has changed stays.",
    )
    release.add_argument("assignments", nargs="*", metavar="NN_name", help="only these; all when none is named")
    release.add_argument("--force", action="store_true", help="replace changed student notebooks (a backup is kept)")
    release.add_argument("--no-verify", action="store_true", help="do not run the released notebooks")

    build = add(
        "build",
        _build,
        "Make a student's notebook part of the student's tinybench package",
        "Runs the visible checks first; the file stays as it was when one fails.",
    )
    build.add_argument("assignment", metavar="NN_name", help="such as 03_latency")

    add("status", _status, "Show which modules of the student's package are the student's own")

    course = add("course", _course, "Start JupyterLab with the course, the exchange and nbgrader's pages")
    course.add_argument("--no-browser", action="store_true", help="do not open a browser")
    course.add_argument("--port", type=int, help="the port; a free one otherwise")

    grade = add(
        "grade",
        _grade,
        "Grade collected submissions of an assignment into the gradebook",
        "Each runs in a sandbox and is judged from outside; what is broken costs its author only, with the reason in "
        "the feedback. Killed at any point, the same command goes on.",
    )
    _assignment(grade)
    grade.add_argument("--student", metavar="ID", help="only this student")
    grade.add_argument(
        "--regrade",
        action="store_true",
        help="forget the verdicts and grade again; killed in between, the command without it goes on",
    )
    grade.add_argument("--dry-run", action="store_true", help="only say what would be done")
    grade.add_argument("--workers", type=int, help="local processes (default: one for each core)")
    grade.add_argument("--scheduler", metavar="tcp://…", help="grade on a Dask cluster instead, one thread a worker")
    grade.add_argument(
        "--unsafe",
        action="store_true",
        help="run submissions as you, without a sandbox: their code can then read and change whatever you can, the "
        "gradebook included; for people you trust",
    )
    grade.add_argument("--json", action="store_true", help="print the outcomes as JSON")

    add(
        "doctor",
        _doctor,
        "Say whether this machine can confine untrusted code",
        "Lists what grading needs, what is missing, and what to install.",
    )

    feedback = add("feedback", _feedback, "Write the students' feedback pages of an assignment")
    _assignment(feedback)
    feedback.add_argument("--student", metavar="ID", help="only this student")

    package = add(
        "package",
        _package,
        "Run the public tests on a student's whole package, as handed in",
        "Each module is built from the student's notebook as `autograder build` does, in the sandbox; what was not "
        "handed in or cannot be built is the reference's. The tests run beside the student's code, which could forge "
        "what they say: information, never a mark.",
    )
    package.add_argument("--student", metavar="ID", required=True)
    package.add_argument("--json", action="store_true", help="print the report as JSON")

    similarity = add(
        "similarity",
        _similarity,
        "List the submissions of an assignment whose solutions are most alike",
        "Compares what students wrote, whatever its names, comments and layout, without the given code and without "
        "what most of the class writes. A hint where to look, never a mark.",
    )
    _assignment(similarity)
    similarity.add_argument("--top", type=int, default=10, metavar="N", help="how many pairs (default: 10)")
    form = similarity.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print the pairs as JSON")
    form.add_argument("--csv", action="store_true", help="print the pairs as CSV")

    demo = add("demo", _demo, "Grade a small class and benchmark a model, headless, in a folder of its own")
    demo.add_argument("--out", default="demo", help="the folder (default: demo)")

    add_commands(commands)
    return parser


def _assignment(command: argparse.ArgumentParser) -> None:
    """Let an assignment be named as here, or as in nbgrader's commands."""
    group = command.add_mutually_exclusive_group(required=True)
    group.add_argument("assignment", metavar="NN_name", nargs="?", help="such as 03_latency")
    group.add_argument("--assignment", metavar="NN_name", dest="named", help="the same, as nbgrader writes it")


def _export(root: Path, options: argparse.Namespace) -> int:
    from autograder.course.export import changed_files, export_course, write_atomically

    files = export_course(root, options.notebooks)
    changed = changed_files(files)
    expected = {path.name for path in files}
    for path in changed:
        if not options.check:
            write_atomically(path, files[path])
        print(f"{path.relative_to(root)}: {'differs from its notebook' if options.check else 'written'}")
    if options.check and changed:
        print("run `autograder export` and commit the result", file=sys.stderr)
        return FAILED
    print(f"{len(expected)} files, {len(changed)} changed")
    return OK


def _lint(root: Path, options: argparse.Namespace) -> int:
    from autograder.course.lint import lint
    from autograder.course.notebook import course_notebooks

    notebooks = list(course_notebooks(root))
    found = [line for path in notebooks for line in lint(path, fix=options.fix)]
    print("\n".join(found) if found else f"{len(notebooks)} notebooks are clean")
    return FAILED if found else OK


def _release(root: Path, options: argparse.Namespace) -> int:
    from autograder.course.release import release_all

    done = release_all(root, options.assignments, force=options.force, verify=not options.no_verify)
    print(f"{len(done)} assignments are in student/; start with student/{done[0]}/{done[0]}.ipynb")
    return OK


def _build(root: Path, options: argparse.Namespace) -> int:
    from autograder.course.build import build

    name = options.assignment
    here = Path.cwd()
    folder = here if here.name == name else root / "student" / name
    package = folder.parent / "tinybench"
    if not package.is_dir() or folder.parent == root / "modules":
        print(f"{folder} is not in a student's folder (no tinybench/ beside it): nothing to build")
        return OK
    os.chdir(folder)
    print(build(folder / f"{name}.ipynb", package))
    return OK


def _status(root: Path, options: argparse.Namespace) -> int:
    from autograder.course.build import status

    for name, whose in status(root):
        print(f"{name:<16} {whose}")
    return OK


def _course(root: Path, options: argparse.Namespace) -> int:
    from autograder.serve import serve

    return serve(root, browser=not options.no_browser, port=options.port)


def _grade(root: Path, options: argparse.Namespace) -> int:
    from autograder.grading.grade import grade, print_grades

    if options.unsafe:
        print("unsafe: submissions run as you; they can read and change the gradebook and your files", file=sys.stderr)
    outcomes = grade(
        root,
        options.assignment or options.named,
        student=options.student,
        regrade=options.regrade,
        dry_run=options.dry_run,
        scheduler=options.scheduler,
        workers=options.workers,
        unsafe=options.unsafe,
        progress=not options.json,
    )
    if options.json:
        print(json.dumps([asdict(outcome) for outcome in outcomes], indent=1))
    else:
        print_grades(outcomes)
    lost = [outcome for outcome in outcomes if outcome.score is None and not options.dry_run]
    return FAILED if lost else OK


def _package(root: Path, options: argparse.Namespace) -> int:
    from autograder.grading.package_report import package, table

    modules = package(root, options.student, progress=not options.json)
    if options.json:
        print(json.dumps([asdict(module) for module in modules], indent=1))
    else:
        print("\n".join(table(modules)))
    return OK


def _similarity(root: Path, options: argparse.Namespace) -> int:
    from autograder.grading.similarity import as_csv, similarity, table

    report = similarity(root, options.assignment or options.named, options.top)
    if options.json:
        print(json.dumps(asdict(report), indent=1))
    elif options.csv:
        print(as_csv(report), end="")
    else:
        print("\n".join(table(report)))
    return OK


def _doctor(root: Path, options: argparse.Namespace) -> int:
    from autograder.sandbox.bubblewrap import available, doctor

    for name, works, line in doctor():
        print(f"{'ok     ' if works else 'MISSING'}  {name:<12} {line}")
    try:
        available()
    except SandboxUnavailable:
        print("this machine cannot confine submissions: `autograder grade` refuses here")
        return FAILED
    print("this machine can grade submissions of strangers")
    return OK


def _feedback(root: Path, options: argparse.Namespace) -> int:
    from autograder.grading.grade import feedback

    pages = feedback(root, options.assignment or options.named, student=options.student)
    print(f"{len(pages)} pages under {root / 'course' / 'feedback'}")
    return OK


def _demo(root: Path, options: argparse.Namespace) -> int:
    from autograder.demo import demo

    return demo(root, Path(options.out).resolve())


if __name__ == "__main__":
    sys.exit(main())
