"""What a check says at once: whether an answer is right, how far one has come, and the solution, explained.

A release puts `marks.SEALED` next to a notebook: digests of the reference's answers, and explanations that only open
with what a right solution computes. Where it is not there, as in grading, nothing is said.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import zlib
from collections.abc import Iterable, Mapping, Set
from decimal import Decimal
from numbers import Real
from typing import Any

from tinybench.course import marks
from tinybench.support.basics.numbers import number_of

ROUNDS = 20_000  # of the key's derivation: guessing takes a while, checking some ten milliseconds
HIDDEN_FAILS = (
    "the visible tests pass, a hidden one does not: on an input that no assert shows, your result differs from the "
    "reference's, so this check does not count yet. Look at {pieces}. Read the docstring again, and try your code on "
    "other inputs: longer ones, each type that the docstring allows, and the edge cases"
)
ACCEPTED: dict[str, list[str]] = {}  # the texts of answers that were right when they were checked last
RECORD: dict[str, Any] = {}  # while a release is made, under "on": what the reference answers and computes


def check_answer(name: str, answer: Any, digits: int = 2) -> None:
    """Say whether an answer is right, without showing it, and what may have gone wrong if it is not.

    Parameters
    ----------
    name
        The question, as its function is called.
    answer
        A number, a word, True or False, or a tuple of these.
    digits
        How many significant digits count where the right answer is not a whole number.

    Raises
    ------
    AssertionError
        With a hint where the mistake is a known one.
    """
    if RECORD:
        RECORD.setdefault("answers", {})[name] = (answer, digits)
    ACCEPTED.pop(name, None)
    question = marks.read_sealed().get("answers", {}).get(name)
    if question is None:
        return
    answer = answer.tolist() if hasattr(answer, "tolist") else answer  # NumPy's
    given = list(answer) if isinstance(answer, tuple | list) else [answer]
    if len(given) != len(question["parts"]):
        asked = len(question["parts"])
        raise AssertionError(f"{name}: expected {number_of(asked, 'value')}, got {len(given)}")
    wrong, accepted = [], []
    for place, (value, part) in enumerate(zip(given, question["parts"], strict=True)):
        found = {sealed(f"{name}[{place}]", text): text for text in _forms(value, digits, rounded=part["rounded"])}
        if part["right"] in found:
            accepted.append(found[part["right"]])
        else:
            hints = [hint for digest, hint in part["hints"].items() if digest in found]
            which = f", value {place + 1} of {len(given)}" if len(given) > 1 else ""
            wrong.append(f"{name}{which}: {hints[0] if hints else f'{value!r} is not right yet'}")
    if wrong:
        raise AssertionError("; ".join(wrong))
    ACCEPTED[name] = accepted


def passed(check: str, *proof: Any) -> None:
    """Say that a check has passed, mark it as passed, and open the explained solution.

    Parameters
    ----------
    check
        The check's name.
    proof
        Plain values that only a right solution computes: the key to the explanation. Where the check asks questions,
        the accepted answers are the key instead, because each may be rounded in several ways.

    Raises
    ------
    AssertionError
        If the proof is not the reference's. Then the check is not marked, and the explanation stays closed.
    RuntimeError
        If Python skips the asserts of the check.
    """
    if not __debug__:
        raise RuntimeError(
            f"{check} has checked nothing: this Python was started with -O or with PYTHONOPTIMIZE and skips every "
            "assert. Unset PYTHONOPTIMIZE and start Jupyter again"
        )
    if RECORD:
        RECORD.setdefault("proofs", {})[check] = canonical(proof)
    sealed = marks.read_sealed()
    explained = sealed.get("checks", {})
    if check not in explained:
        return
    about = marks.about(sealed).get(check, {})
    questions = about.get("questions")
    secret = answered(ACCEPTED, questions) if questions else canonical(proof)
    text = opened(check, secret, explained[check])
    if text is None:
        marks.withdraw([check])
        pieces = " and ".join(about.get("pieces", [])) or "your code"
        raise AssertionError(HIDDEN_FAILS.format(pieces=pieces))
    said = f"✓ **{check}** passed: {marks.note(check)} of {number_of(len(explained), 'check')} in this notebook"
    if text:
        said += f"\n\n<details><summary>The solution, explained</summary>\n\n{text}\n</details>"
    _show(said)


def answered(accepted: Mapping[str, Any], questions: Iterable[str]) -> str:
    """Return the key to the explanation of a check that asks questions: the accepted text of each part."""
    return canonical([accepted.get(question, []) for question in questions])


def canonical(value: Any) -> str:
    """Return a text that is the same for values that differ by their type or rounding only."""
    return json.dumps(_plain(value), sort_keys=True)


def form(value: Any, digits: int, *, rounded: bool, shift: float = 0.0) -> str:
    """Return the text that an answer is compared by: a number that is `rounded` to its first digits."""
    value = _plain(value)
    if not rounded or isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return canonical(value.strip().casefold() if isinstance(value, str) else value)
    unit = 10.0 ** (math.floor(math.log10(abs(value))) + 1 - digits) if value else 1.0
    return f"{round(value / unit + shift) * unit + 0.0:.{digits - 1}e}"


def _forms(value: Any, digits: int, *, rounded: bool) -> set[str]:
    """Return the texts under which an answer may be right: 2.25 may be 2.2 or 2.3."""
    return {form(value, digits, rounded=rounded, shift=shift) for shift in (-0.1, 0.0, 0.1)}


def sealed(name: str, secret: str) -> str:
    """Return a digest that takes time to guess."""
    return _key(name, secret).hex()


def closed(check: str, proof: str, text: str) -> str:
    """Return a text that `opened` returns for this proof only."""
    data = zlib.compress(text.encode(), 9)
    key = _key(check, proof)
    return base64.b64encode(hashlib.sha256(key).digest()[:8] + _mixed(data, key)).decode()


def opened(check: str, proof: str, box: str) -> str | None:
    """Return the text in a box, or none if the proof is another."""
    data, key = base64.b64decode(box), _key(check, proof)
    if data[:8] != hashlib.sha256(key).digest()[:8]:
        return None
    return zlib.decompress(_mixed(data[8:], key)).decode()


def _mixed(data: bytes, key: bytes) -> bytes:
    """Return data mixed with a key's stream of bytes: it keeps a surprise, not a secret of state."""
    stream = hashlib.shake_256(key).digest(len(data))
    return bytes(a ^ b for a, b in zip(data, stream, strict=True))


def _key(name: str, secret: str) -> bytes:
    return hashlib.pbkdf2_hmac("sha256", secret.encode(), f"tinybench {name}".encode(), ROUNDS, 16)


def _plain(value: Any) -> Any:
    """Return a value as JSON's own types, floats with six digits unless they are whole."""
    if hasattr(value, "tolist"):  # NumPy's
        value = value.tolist()
    if isinstance(value, str | int | None):
        return value
    if isinstance(value, Real | Decimal):
        value = float(value)
        is_whole = math.isfinite(value) and abs(value - round(value)) <= 1e-9 * abs(value) and abs(value) < 1e15
        return round(value) if is_whole else float(f"{value:.6g}")
    if isinstance(value, Mapping):
        return {str(_plain(key)): _plain(each) for key, each in value.items()}
    if isinstance(value, Set):
        return sorted(map(canonical, value))
    if isinstance(value, Iterable):
        return [_plain(each) for each in value]
    return f"some {type(value).__name__}"  # no proof holds it, and it is no answer


def _show(text: str) -> None:
    try:
        from IPython import get_ipython
        from IPython.display import display
    except ImportError:
        return
    if get_ipython() is not None:
        summary = text.partition("\n")[0].replace("*", "")
        display({"text/markdown": text, "text/plain": summary}, raw=True)
