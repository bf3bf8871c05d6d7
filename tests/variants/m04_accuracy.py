"""Honest solutions of module 04 that are written otherwise."""

VARIANTS = {
    "wilson_interval": [
        ("wilson_by_scipy", "    ### BEGIN SOLUTION\n", '''    if worth is None:
        from scipy.stats import binomtest

        return binomtest(int(correct), int(total)).proportion_ci(confidence, method="wilson")
'''),
        ("wilson_as_list", "    return lower, upper\n", "    return [lower, upper]\n"),
        ("wilson_by_roots", "", '''
import statistics


def wilson_interval(correct, total, confidence=0.95, worth=None):
    """The two shares p with |correct/total − p| = z·√(p(1 − p)/total): the roots of a polynomial."""
    if total < 1 or not (0 <= correct <= total and correct == round(correct)):
        raise ValueError(f"{correct} of {total}")
    if confidence >= 1 or confidence <= 0:
        raise ValueError("confidence")
    z = statistics.NormalDist().inv_cdf((1 + confidence) / 2)
    if worth is not None and not 0 < worth <= total:
        raise ValueError("worth")
    share, squared = correct / total, z * z / (worth or total)
    ends = np.clip(np.sort(np.roots([1 + squared, -2 * share - squared, share * share]).real), 0, 1)
    if correct == 0:
        ends[0] = 0
    if correct == total:
        ends[1] = 1
    return ends
'''),
    ],
    "answer_rows": [("answer_rows_by_scipy", "return 1118", "return stats.norm.ppf(0.975) ** 2 * 0.97 * 0.03 / 0.01**2")],
    "design_effect": [
        ("effect_by_variance", '''    squares = np.sum((values - values.mean()) ** 2)
    return float(len(sums) / (len(sums) - 1) * np.sum(sums**2) / squares)
''', '''    return np.var(sums, ddof=1) * len(sums) / (np.var(values) * len(values))
'''),
        ("effect_by_loop", "np.sum(sums**2) / squares", "sum(float(each) ** 2 for each in sums) / float(squares)"),
    ],
    "effective_rows": [
        ("worth_by_scipy_stats", '''    narrower = ndtri(quantile) / stdtrit(freedom, quantile)
''', '''    from scipy.stats import norm, t

    narrower = norm.isf((1 - confidence) / 2) / t.isf((1 - confidence) / 2, freedom)
'''),
        ("worth_by_shares", '''    freedom = max(1.0, np.sum(sums**2) ** 2 / np.sum(sums**4) - 1)
''', '''    shares = sums**2 / np.sum(sums**2)
    freedom = max(1, 1 / (shares @ shares) - 1)
'''),
        ("worth_clipped", "float(min(max(rows, least), len(values)))", "np.clip(rows, least, len(values))"),
    ],
    "checked_outputs": [
        ("outputs_by_loop", "", '''
def checked_outputs(outputs, rows, name):
    found = np.array(outputs)
    if found.ndim < 1 or found.ndim > 2 or found.shape[0] != rows or not found.size:
        raise ValueError(f"dataset {name}: outputs of shape {found.shape} do not fit {rows} rows")
    if not np.issubdtype(found.dtype, np.floating):
        return found
    for number, row in enumerate(found):
        if np.isnan(row).any():
            raise ValueError(f"dataset {name}: NaN in row {number}")
    return found
'''),
    ],
    "measure_accuracy": [
        ("accuracy_by_keywords", '''    return BenchmarkResult("accuracy", values, metadata, confidence=confidence)
''', '''    fractions = np.array(values)
    return BenchmarkResult(unit="", confidence=confidence, metadata=dict(metadata), values=fractions, metric_name="accuracy")
'''),
        ("accuracy_by_loop", '''    answers = {name: checked_outputs(call(inputs), len(y), name) for name, (inputs, y) in named.items()}
''', '''    answers = {}
    for name in named:
        inputs, y = named[name]
        answers[name] = checked_outputs(outputs=call(inputs), rows=len(y), name=name)
'''),
    ],
    "recall_per_class": [
        ("recall_by_counter", "", '''
from collections import Counter


def recall_per_class(y, predicted):
    truth, said = checked_labels(y, predicted)
    total, hit = Counter(truth.tolist()), Counter(truth[truth == said].tolist())
    return {label: hit[label] / total[label] for label in sorted(total)}
'''),
        ("recall_numpy_keys", "float(np.mean(said[truth == label] == label)) for label in np.unique(truth).tolist()",
         "np.mean(said[truth == label] == label) for label in np.unique(truth)"),
        ("recall_by_sklearn", "", '''
def recall_per_class(y, predicted):
    from sklearn.metrics import recall_score

    truth, said = checked_labels(y, predicted)
    labels = np.unique(truth)
    return dict(zip(labels, recall_score(truth, said, labels=labels, average=None, zero_division=0)))
'''),
        ("recall_by_pandas", "", '''
def recall_per_class(y, predicted):
    import pandas

    truth, said = checked_labels(y, predicted)
    return pandas.Series(truth == said).groupby(truth).mean()
''', "return a dictionary of recalls, not a Series"),
    ],
    "balanced_accuracy": [
        ("balance_by_statistics", '''    recalls = recall_per_class(y, predicted)
    return math.fsum(recalls.values()) / len(recalls)
''', '''    from statistics import mean

    return mean(recall_per_class(y, predicted).values())
'''),
        ("balance_by_numpy", "return math.fsum(recalls.values()) / len(recalls)", "return np.mean(list(recalls.values()))"),
    ],
    "mcnemar": [
        ("mcnemar_by_scipy_stats", "        p_value = min(1.0, 2 * float(bdtr(min(only_a, only_b), discordant, 0.5)))\n", '''        from scipy import stats

        p_value = stats.binomtest(only_a, discordant).pvalue if discordant else 1
'''),
        ("mcnemar_by_loop", "    only_a, only_b = int(np.sum(right_a & ~right_b)), int(np.sum(right_b & ~right_a))\n", '''    only_a = only_b = 0
    for a, b in zip(right_a, right_b):
        only_a += bool(a and not b)
        only_b += bool(b and not a)
'''),
    ],
    "parity": [
        ("parity_by_keywords", "    return ParityResult(float(gap.max()), float(gap.mean()), agreement, len(a))\n", '''    mean = np.float64(sum(gap.ravel().tolist()) / gap.size)
    return ParityResult(np.max(gap), mean, label_agreement=np.float64(agreement), rows=a.shape[0])
'''),
        ("parity_by_sum", "    agreement = float(np.mean(label_a == label_b))\n", "    agreement = sum(one == other for one, other in zip(label_a, label_b)) / len(label_a)\n"),
    ],
    "answer_understanding": [
        ("answers_by_own_function", "return 0.989", "return wilson_interval(360, 360)[0]"),
        ("answers_as_numpy", "return 6", "return np.int64(6)"),
        ("answers_without_return", "return None", "pass"),
    ],
}  # fmt: skip
