"""The immediate feedback of a check: whether an answer is right, the progress so far, and the explained solution.

A release of the course puts the file `marks.SEALED` next to each notebook. This file holds digests of the reference
solution's answers, and explanations that are encrypted with values that only a right solution computes. Without this
file, as in grading, there is no feedback.
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

from tinybench.course import passed_checks
from tinybench.support.basics.numbers import number_of

ROUNDS = 20_000  # iterations of the key derivation: a check takes about ten milliseconds, so guessing takes long
HIDDEN_FAILS = (
    "the visible tests pass, a hidden one does not: on an input that no assert shows, your result differs from the "
    "reference's, so this check does not count yet. Look at {pieces}. Read the docstring again, and try your code on "
    "other inputs: longer ones, each type that the docstring allows, and the edge cases"
)
ACCEPTED: dict[str, list[str]] = {}  # accepted answers as text, by question, from its latest check
RECORD: dict[str, Any] = {}  # the reference's answers and proofs, filled while a release is made ("on" is set)


def check_answer(name: str, answer: Any, digits: int = 2) -> None:
    """Raise AssertionError if an answer is wrong, with a hint at the mistake. The right answer is not shown.

    Parameters
    ----------
    name
        The name of the question, and of the function that returns the answer.
    answer
        A number, a word, True or False, or a tuple of these.
    digits
        Number of significant digits that count if the right answer is not a whole number.

    Raises
    ------
    AssertionError
        If the answer is wrong; with a hint if the mistake is a known one.
    """
    if RECORD:
        RECORD.setdefault("answers", {})[name] = (answer, digits)
    ACCEPTED.pop(name, None)
    question = passed_checks.read_sealed().get("answers", {}).get(name)
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
    """Report that a check has passed, mark it as passed, and show the explained solution.

    Parameters
    ----------
    check
        The check's name.
    proof
        Plain values that only a right solution computes. These values decrypt the explanation. If the check asks
        questions, the accepted answers decrypt the explanation instead of `proof`, because students may round an answer
        in several ways.

    Raises
    ------
    AssertionError
        If the proof differs from the reference's. Then the check is not marked as passed, and no explanation is shown.
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
    sealed = passed_checks.read_sealed()
    explained = sealed.get("checks", {})
    if check not in explained:
        return
    about = passed_checks.about(sealed).get(check, {})
    questions = about.get("questions")
    secret = answered(ACCEPTED, questions) if questions else canonical(proof)
    text = opened(check, secret, explained[check])
    if text is None:
        passed_checks.withdraw([check])
        pieces = " and ".join(about.get("pieces", [])) or "your code"
        raise AssertionError(HIDDEN_FAILS.format(pieces=pieces))
    said = f"✓ **{check}** passed: {passed_checks.note(check)} of {number_of(len(explained), 'check')} in this notebook"
    if text:
        said += f"\n\n<details><summary>The solution, explained</summary>\n\n{text}\n</details>"
    _show(said)


def answered(accepted: Mapping[str, Any], questions: Iterable[str]) -> str:
    """Return the secret that decrypts the explanation of a check with questions: its accepted answers as one text."""
    return canonical([accepted.get(question, []) for question in questions])


def canonical(value: Any) -> str:
    """Return a value as text. Values that differ only in type or rounding give the same text."""
    return json.dumps(_plain(value), sort_keys=True)


def form(value: Any, digits: int, *, rounded: bool, shift: float = 0.0) -> str:
    """Return an answer as text for comparison. If `rounded`, round a number to `digits` significant digits."""
    value = _plain(value)
    if not rounded or isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return canonical(value.strip().casefold() if isinstance(value, str) else value)
    unit = 10.0 ** (math.floor(math.log10(abs(value))) + 1 - digits) if value else 1.0
    return f"{round(value / unit + shift) * unit + 0.0:.{digits - 1}e}"


def _forms(value: Any, digits: int, *, rounded: bool) -> set[str]:
    """Return the possible texts of an answer: with two digits, 2.25 may be rounded to 2.2 or 2.3."""
    return {form(value, digits, rounded=rounded, shift=shift) for shift in (-0.1, 0.0, 0.1)}


def sealed(name: str, secret: str) -> str:
    """Return a digest of a secret. It is slow to compute, so that guessing the secret takes long."""
    return _key(name, secret).hex()


def closed(check: str, proof: str, text: str) -> str:
    """Encrypt a text so that `opened` can decrypt it only with the same proof."""
    data = zlib.compress(text.encode(), 9)
    key = _key(check, proof)
    return base64.b64encode(hashlib.sha256(key).digest()[:8] + _mixed(data, key)).decode()


def opened(check: str, proof: str, box: str) -> str | None:
    """Decrypt a text that `closed` has encrypted. Return None if the proof does not match."""
    data, key = base64.b64decode(box), _key(check, proof)
    if data[:8] != hashlib.sha256(key).digest()[:8]:
        return None
    return zlib.decompress(_mixed(data[8:], key)).decode()


def _mixed(data: bytes, key: bytes) -> bytes:
    """Encrypt or decrypt data by XOR with bytes derived from a key. This is too weak for real secrets."""
    stream = hashlib.shake_256(key).digest(len(data))
    return bytes(a ^ b for a, b in zip(data, stream, strict=True))


def _key(name: str, secret: str) -> bytes:
    return hashlib.pbkdf2_hmac("sha256", secret.encode(), f"tinybench {name}".encode(), ROUNDS, 16)


def _plain(value: Any) -> Any:
    """Return a value converted to JSON types. Whole floats become integers; other floats keep six digits."""
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
    return f"some {type(value).__name__}"  # not a valid proof or answer


def _show(text: str) -> None:
    try:
        from IPython import get_ipython
        from IPython.display import display
    except ImportError:
        return
    if get_ipython() is not None:
        summary = text.partition("\n")[0].replace("*", "")
        display({"text/markdown": text, "text/plain": summary}, raw=True)
