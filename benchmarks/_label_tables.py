"""Tables of wrong labels: who finds them, what the rules keep, and what it costs."""

from benchmarks._record import RESULTS, read
from benchmarks.paper import LabelNoiseResults
from benchmarks.runs import ResultStore
from neighboragg.promises._intervals import clopper_pearson


def mislabel() -> str:
    """Who finds labels that were made wrong on purpose."""
    results = LabelNoiseResults(ResultStore(RESULTS / "mislabel.jsonl").rows)
    return "\n".join(grid.to_markdown() for grid in results.tables())


def label_guarantees() -> str:
    """The promises about wrong labels on real data."""
    rows = read("label_guarantees")
    alarms = [row for row in rows if row["rule"] == "false alarms"]
    n = alarms[0]["repetitions"]
    lines = [
        f"*FalseAlarms*: share of the right labels that are flagged, in {n} repetitions a line; *new* are rows scored "
        "after the fit, and *chance* is the share that their number would explain once in a thousand.",
        "",
        "| set | α | noise rate | mean share | largest | above α | new rows | chance | wrong labels found |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    lines += [
        f"| {r['set']} | {r['level']:g} | {r['noise_rate']} | {r['mean']:.3f} | {r['largest']:.3f} | {r['broken']} | "
        f"{r['new']:.3f} | {r['new_bound']:.3f} | {r['found']:.0%} |"
        for r in alarms
    ]
    lines += [
        "",
        "*FDR*: share of false alarms among the flags, with 300 verified rows.",
        "",
        "| set | q | mean share ± standard error | wrong labels found |",
        "| --- | --- | --- | --- |",
    ]
    lines += [
        f"| {r['set']} | {r['level']:g} | {r['mean']:.3f} ± {r['error']:.3f} | {r['found']:.0%} |"
        for r in rows
        if r["rule"] == "FDR"
    ]
    return "\n".join(lines)


def label_scale() -> str:
    """Wrong labels among 100,000 rows, beside cleanlab."""
    rows = read("label_scale")
    lines = [
        f"| {rows[0]['rows']:,} × 64, 10 classes | s | CPU s | time / cleanlab | memory, MiB | average precision |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    lines += [
        f"| {r['contender']} | {r['seconds']:.0f} | {r['cpu_seconds']:.0f} | {r['time_over_cleanlab']:.2f} | "
        f"{r['extra_memory_mib']:,.0f} | {r['average_precision']:.2f} |"
        for r in rows
    ]
    return "\n".join(lines)


def trec_counts() -> str:
    """How many of the least trusted labels, and of random ones, a reader finds wrong."""
    lines = ["| read | wrong | 95% interval | debatable | right |", "| --- | --- | --- | --- | --- |"]
    for queue, title in (("flagged", "the least trusted"), ("random", "random others")):
        verdicts = [row["verdict"] for row in read("trec_case_study") if row["queue"] == queue]
        wrong = verdicts.count("wrong")
        low, high = clopper_pearson(wrong, len(verdicts))
        lines.append(
            f"| {len(verdicts)}, {title} | {wrong} | {low:.1%} to {high:.1%} | {verdicts.count('debatable')} | "
            f"{verdicts.count('right')} |"
        )
    return "\n".join(lines)


def trec_list() -> str:
    """The least trusted questions with a reader's verdict."""
    lines = [
        "| | question | given | suggested | trust in the given | verdict | because |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    flagged = [row for row in read("trec_case_study") if row["queue"] == "flagged"]
    for rank, row in enumerate(flagged, start=1):
        verdict = row["verdict"]
        if verdict == "wrong":
            verdict = f"**wrong**, {row['right_label']}"
        text = row["text"].replace("|", "\\|")
        lines.append(
            f"| {rank} | {text} | {row['given']} | {row['suggested']} | {row['trust']:.4f} | {verdict} | "
            f"{row['comment']} |"
        )
    return "\n".join(lines)
