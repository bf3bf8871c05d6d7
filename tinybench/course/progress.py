"""What a check says at once: whether an answer is right, how far one has come, and the solution, explained.

A release puts `SEALED` next to a notebook: digests of the reference's answers, and explanations that only open with
what a right solution computes. Where it is not there, as in grading, nothing is said.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import math
import time
import zlib
from collections.abc import Iterable, Mapping, Set
from numbers import Real
from pathlib import Path
from typing import Any

SEALED, PROGRESS = ".explained.json", ".progress.json"
ROUNDS = 20_000  # of the key's derivation: guessing takes a while, checking some ten milliseconds
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
    question = _sealed().get("answers", {}).get(name)
    if question is None:
        return
    given = list(answer) if isinstance(answer, tuple | list) else [answer]
    if len(given) != len(question["parts"]):
        raise AssertionError(f"{name}: {len(question['parts'])} values are asked for, you gave {len(given)}")
    wrong = []
    for place, (value, part) in enumerate(zip(given, question["parts"], strict=True)):
        found = {sealed(f"{name}[{place}]", text) for text in _forms(value, digits, rounded=part["rounded"])}
        if part["right"] not in found:
            hints = [hint for digest, hint in part["hints"].items() if digest in found]
            which = f", value {place + 1} of {len(given)}" if len(given) > 1 else ""
            wrong.append(f"{name}{which}: {hints[0] if hints else f'{value!r} is not right yet'}")
    if wrong:
        raise AssertionError("; ".join(wrong))


def passed(check: str, *proof: Any) -> None:
    """Say that a check has passed, keep it as progress, and open the explained solution.

    Parameters
    ----------
    check
        The check's name.
    proof
        Plain values that only a right solution computes: the key to the explanation.
    """
    if RECORD:
        RECORD.setdefault("proofs", {})[check] = canonical(proof)
    explained = _sealed().get("checks", {})
    if check not in explained:
        return
    done = _note(check, list(explained))
    said = f"✓ **{check}** passed: {done} of {len(explained)} checks in this notebook"
    text = opened(check, canonical(proof), explained[check])
    if text is None:
        said += (
            "\n\nYet on an input that is not shown here your code gives another result than the reference, so the "
            "explained solution stays closed. Read the docstring once more: which case does your code leave out?"
        )
    elif text:
        said += f"\n\n<details><summary>The solution, explained</summary>\n\n{text}\n</details>"
    _show(said)


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
    """Return a value as JSON's own types, floats with six digits."""
    if hasattr(value, "tolist"):  # NumPy's
        value = value.tolist()
    if isinstance(value, str | int | None):
        return value
    if isinstance(value, Real):
        value = float(f"{float(value):.6g}") + 0.0
        return int(value) if value.is_integer() and abs(value) < 1e15 else value
    if isinstance(value, Mapping):
        return {str(_plain(key)): _plain(each) for key, each in value.items()}
    if isinstance(value, Set):
        return sorted(map(canonical, value))
    if isinstance(value, Iterable):
        return [_plain(each) for each in value]
    return f"some {type(value).__name__}"  # no proof holds it, and it is no answer


def _sealed() -> dict[str, Any]:
    return read_json(Path(SEALED))


def read_json(path: Path) -> dict[str, Any]:
    """Return what a file holds, nothing where there is none or it holds something else than an object."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _note(check: str, checks: list[str]) -> int:
    """Keep that a check has passed, and return how many have; a folder that cannot be written to keeps nothing."""
    kept = read_json(Path(PROGRESS)).get("checks", {})
    kept = {name: when for name, when in kept.items() if name in checks} | {check: time.strftime("%Y-%m-%dT%H:%M:%S")}
    with contextlib.suppress(OSError):
        Path(PROGRESS).write_text(json.dumps({"checks": kept, "of": len(checks)}, indent=1), encoding="utf-8")
    return len(kept)


def _show(text: str) -> None:
    try:
        from IPython import get_ipython
        from IPython.display import display
    except ImportError:
        return
    if get_ipython() is not None:
        summary = text.partition("\n")[0].replace("*", "")
        display({"text/markdown": text, "text/plain": summary}, raw=True)
