"""The 50 least trusted labels of the TREC questions, and 100 random others, beside what a reader says of them.

The list is made by `neighboragg audit`; the reader's verdicts are in trec_verdicts.csv. Data: NEIGHBORAGG_DATA.
"""

import argparse
import csv
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks._record import save
from benchmarks.datasets import load_dataset

VERDICTS = Path(__file__).with_name("trec_verdicts.csv")
N_FLAGGED, N_RANDOM = 50, 100


def audited(folder: Path) -> list[dict[str, Any]]:
    """Rows to read, the least trusted first, as the command puts them into its review set."""
    questions = load_dataset("trec_questions")
    with (folder / "questions.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("text", "label"), *zip(questions.text, questions.y, strict=True)])
    command = [
        sys.executable, "-m", "neighboragg", "audit", "questions.csv", "--label", "label",
        "--flag", str(N_FLAGGED), "--n-random", str(N_RANDOM), "-o", "least-trusted.csv",
    ]  # fmt: skip
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    found = json.loads((folder / "least-trusted.review.json").read_text())
    place = {label: i for i, label in enumerate(found["classes"])}
    return [
        {
            "row": item["row"], "queue": item["queue"], "text": item["content"]["text"], "given": item["given"],
            "suggested": item["suggested"], "trust": round(item["trust"][place[item["given"]]], 4),
        }
        for item in sorted(found["items"], key=lambda item: (item["queue"] != "flagged", item["score"]))
    ]  # fmt: skip


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    with VERDICTS.open(newline="") as file:
        verdicts = {int(line.pop("row")): line for line in csv.DictReader(file)}
    unread = {"verdict": "not read", "right_label": "", "comment": ""}
    with TemporaryDirectory() as folder:
        rows = [{**row, **verdicts.get(row["row"], unread)} for row in audited(Path(folder))]
    for queue in ("flagged", "random"):
        counts = Counter(row["verdict"] for row in rows if row["queue"] == queue)
        print(f"{queue}: {', '.join(f'{count} {verdict}' for verdict, count in counts.most_common())}")
    save("trec_case_study", rows, 0)


if __name__ == "__main__":
    main()
