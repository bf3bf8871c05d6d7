"""What `test_degenerate` does not call, each with the reason."""

from __future__ import annotations

CONVENTION = "documented: of one value the deviation is 0 and both ends are the value; outputs and cautions say so"
OF_COUNTS = "of the counts of a `Reference`, which are neither negative nor all 0; `production.psi` is tried"
OF_BETS = "the capital of bets on p-values; `DriftAlarm` is tried, and `test_drifting` simulates it"
WRAPS = "hands on what a function that is tried returns, or shows it"
NOT_STATISTICAL = "returns two numbers that are not the ends of an interval"
MEASURES = "measures: its values are those of a `BenchmarkResult`, which refuses what is not a finite number"
NO_NUMBER = "gives no interval, p-value or effect size"

# By the name of the file and of the function.
ELSEWHERE = {
    "arguments.check_percentile": "raises for what is not a percentile, which is tried wherever it is called",
    "capital.Capital.evidence": OF_BETS,
    "drift_monitor.Looker._psi": OF_COUNTS,
    "energy.energy_reading": NOT_STATISTICAL,
    "entry._ratio": "of two checked results, by `median_ratio`, which is tried",
    "e_values.Evidence.e_values": "products of `harm_e_value`, which is tried; 1 without events",
    "fitted_laws.free_usl": "of the speed-ups that `check_rounds` let pass",
    "what_if_gains.WhatIf.saved": "by `gain_interval`, which is tried",
    "formatting.interval": WRAPS,
    "formatting.interval_of": WRAPS,
    "operator_formulas.work_of": NOT_STATISTICAL,
    "gate_run.sessions_needed": "a rough number of sessions, from none on; `test_gate_run` tries it",
    "load_summary._percentile": WRAPS,
    "numbers.with_ends": WRAPS,
    "ship_decision._percentile": WRAPS,
    "ship_decision._share": WRAPS,
    "onnx.check_parity": "by `accuracy.parity`, which is tried",
    "options.stalls": NOT_STATISTICAL,
    "ranked_values.objective_values": "the values themselves; NaN is refused",
    "queries.quantile": "the text of a query",
    "timed_comparison._interval": WRAPS,
    "ranking.Entry.point": NOT_STATISTICAL,
    "sections._shown_interval": WRAPS,
    "result.BenchmarkResult.mean_ci": CONVENTION,
    **dict.fromkeys(("result_report.ResultReport.mean_ci", "result_report.ResultReport.median_ci"), "an interface"),
    "result.BenchmarkResult.percentile": "a percentile of the values, without an interval",
    "result_text.format_interval": WRAPS,
    "ranked_values.counted_interval": WRAPS,
    "race.RaceTally._evidence": "the e value of a count of rounds; `sign_e_value` is tried",
    "two_samples._t_test": "by `compare_batches`, whose `few_batches` refuses batches that do not differ",
    "two_samples.smallest_p": "the least p-value of a sign test over a count of rounds",
    "result_text.is_interval": "says whether two ends are an interval; `test_one_value` tries what shows them",
    "result.mean_and_std": CONVENTION,
    "result.runs_for_percentile": "a number of runs; `percentile_interval` calls it",
    "result.t_interval": CONVENTION,
    "roofs.median_with_interval": WRAPS,
    "series._errors": "of the checked values of entries",
    "steps._most_evidence": "sums of scores within `find_steps`, which is tried",
    "steps._usual": "level and scale within `find_steps`, which is tried",
    "tally.Tally.latencies": "two medians, NaN without requests",
    "process_conditions.spent_seconds": NOT_STATISTICAL,
    "drift_watch.Ranks.p_values": "`test_drifting` compares it with `conformal_p`, which is tried",
    "drift_watch.Stream.evidence": OF_BETS,
    "drift_watch.DriftWatch.evidence": OF_BETS,
    "detectors.Detector.evidence": "an interface; the detectors of ours are tried",
    "watch_command._quantile": WRAPS,
    "ratio_words.no_ends": "the words for ends that are not shown as an interval",
}

# Of the public names.
FACE = {
    **dict.fromkeys(
        ("measure_accuracy", "measure_cold_start", "measure_energy", "measure_latencies", "measure_latency"), MEASURES
    ),
    **dict.fromkeys(("measure_memory", "measure_session_latency", "memory_stages", "resident_growth"), MEASURES),
    **dict.fromkeys(("arguments", "best_meter", "in_order", "low_rank", "machine_check", "model_size"), NO_NUMBER),
    **dict.fromkeys(("open_loop", "precise_timer"), NO_NUMBER),
    **dict.fromkeys(("prune_units", "prune_weights", "quantize_dynamic_int8", "quantize_static_int8"), NO_NUMBER),
    **dict.fromkeys(
        ("OnnxModel", "Requirements", "operator_profile", "pareto_frontier", "plot_pareto_frontier"), NO_NUMBER
    ),
    **dict.fromkeys(("simulate_queue", "system_info", "to_onnx"), NO_NUMBER),
    **dict.fromkeys(("Benchmark", "BenchmarkSuite", "tradeoff_study", "what_if"), "puts together what is tried"),
    **dict.fromkeys(("Comparison", "Gate"), "holds what `compare` and `regression_gate` found"),
    "check_parity": "by `accuracy.parity`, which is tried",
    "compare_live": "by `anytime_interval` and `sign_e_value`, which are tried",
    "regression_gate": "by `compare`, which is tried; `test_gate` tries few rounds and one session",
    "required_runs": "a number of runs; `test_result` tries what it refuses",
}
