"""Questions that a text classifier does not know: gibberish, other languages, nothing at all, other topics.

TREC questions become words, characters or counts, which a logistic regression and familiarity both work on. Each time
2,000 questions are fitted on and 2,000 others are ordinary. For other topics one of the six classes is left out of fit,
and its questions are to be noticed among the 2,000. Beside familiarity stands the largest probability, with alarms by
conformal p-values from the same validation rows. AUROC is that of unknown against ordinary questions.
"""

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline

from benchmarks._record import save
from benchmarks.datasets import load_dataset
from neighboragg import NeighborAgg, TrustedClassifier

VECTORIZERS = {
    "words": TfidfVectorizer(),
    "characters": TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 4)),
    "counts": CountVectorizer(),
}
N_SPLITS, N_FIT, N_NEW, N_UNKNOWN = 1, 2000, 2000, 150
LEVEL = 0.05
CONSONANTS = [*"bcdfghjklmnpqrstvwxyz"]
BEGINNINGS = (
    "wo liegt die Hauptstadt von", "wie viele Menschen leben in", "wer schrieb das Buch über",
    "wann endete der Krieg in", "où se trouve la capitale de", "combien de personnes vivent dans",
    "qui a écrit le livre sur", "quand a fini la guerre", "dónde está la capital de", "cuántas personas viven en",
    "quién escribió el libro sobre", "cuándo terminó la guerra en",
)  # fmt: skip
ENDINGS = (
    "Frankreich und Spanien",
    "meinem Nachbarn",
    "la montagne blanche",
    "cette maison",
    "esta ciudad",
    "la ventana",
)


def unknown_texts(rng, questions):
    """Texts of each kind that are not questions of the data set."""
    words = sorted({word for question in questions for word in question.split() if len(word) > 3})
    nonsense = [
        " ".join("".join(rng.choice(CONSONANTS, rng.integers(3, 9))) for _ in range(6))
        for _ in range(N_UNKNOWN)
    ]
    mixed = [
        " ".join("".join(rng.permutation([*word])) for word in rng.choice(words, 6)) for _ in range(N_UNKNOWN)
    ]
    foreign = [f"{rng.choice(BEGINNINGS)} {rng.choice(ENDINGS)}" for _ in range(N_UNKNOWN)]
    return {
        "gibberish": nonsense,
        "shuffled letters": mixed,
        "other languages": foreign,
        "no text": [""] * 20,
    }


def alarms(model, texts, validation):
    """Familiarity of texts, and the p-values of their largest probability."""
    seen = np.sort(-model.predict_proba(validation).max(axis=1))
    doubts = -model.predict_proba(texts).max(axis=1)
    together = 1.0 + len(seen)
    return model.familiarity(texts), (together - seen.searchsorted(doubts)) / together


def fitted(vectorizer, texts, labels, seed):
    pipeline = make_pipeline(vectorizer, LogisticRegression(max_iter=500))
    return TrustedClassifier(pipeline, NeighborAgg(effort="fast"), random_state=seed).fit(texts, labels)


def compared(model, fit, ordinary, unknown):
    """AUROC, power and false alarms of both, for one kind of unknown texts."""
    validation = [fit[i] for i in model.validation_indices_]
    is_unknown = np.arange(len(ordinary) + len(unknown)) >= len(ordinary)
    found = {}
    for name, p in zip(
        ("familiarity", "max_softmax"), alarms(model, [*ordinary, *unknown], validation), strict=True
    ):
        found[f"{name}_auroc"] = float(roc_auc_score(is_unknown, -p))
        found[f"{name}_power"] = float((p[is_unknown] <= LEVEL).mean())
        found[f"{name}_false_alarms"] = float((p[~is_unknown] <= LEVEL).mean())
    return found


def split_results(name, texts, labels, seed):
    """All kinds of unknown texts for one vectorizer and one split, by kind."""
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(texts))[: N_FIT + N_NEW]
    fit, new = rows[:N_FIT], rows[N_FIT:]
    model = fitted(VECTORIZERS[name], texts[fit].tolist(), labels[fit], seed)
    for kind, unknown in unknown_texts(rng, texts[fit]).items():
        yield kind, compared(model, texts[fit], texts[new], unknown)
    for topic in np.unique(labels[labels != "ABBR"]):  # too rare
        known = fit[labels[fit] != topic]
        model = fitted(VECTORIZERS[name], texts[known].tolist(), labels[known], seed)
        other = labels[new] == topic
        yield f"topic {topic}", compared(model, texts[known], texts[new[~other]], texts[new[other]])


def main() -> None:
    dataset = load_dataset("trec_questions")
    texts, labels = np.asarray(dataset.text, dtype=object), np.asarray(dataset.y)
    results = []
    for name in VECTORIZERS:
        found: dict[str, list[dict[str, float]]] = {}
        for seed in range(N_SPLITS):
            for kind, values in split_results(name, texts, labels, seed):
                found.setdefault(kind, []).append(values)
        for kind, values in found.items():
            means = {key: round(float(np.mean([row[key] for row in values])), 4) for key in values[0]}
            row = {"vectors": name, "unknown": kind, "splits": N_SPLITS, **means}
            print(row, flush=True)
            results.append(row)
    save("unknown_texts", results, 0)


if __name__ == "__main__":
    main()
