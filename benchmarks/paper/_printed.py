"""The paper's own numbers (Tables 1 and 2: means over five trials), in percent."""

from benchmarks.runs import METRICS

__all__ = ["TABLE1_PRINTED", "TABLE2_PRINTED"]

_SETS = ("letter", "landsat", "card_default")

# For each base classifier and method: AUC, APC, APM on LetterRecognition, Landsat and CardDefault.
# fmt: off
_ROWS = {
    ("LR", "Confidence"): (85.28, 95.03, 61.25, 88.05, 97.77, 52.09, 65.19, 86.94, 33.44),
    ("LR", "TempScaling"): (84.67, 94.83, 59.72, 87.2, 97.63, 48.85, 65.22, 87.04, 33.5),
    ("LR", "TrustScore"): (95.75, 98.46, 86.93, 91.55, 98.39, 64.76, 61.61, 85.35, 28.42),
    ("LR", "TCP"): (90.78, 96.96, 74.85, 89.47, 98.06, 54.25, 68.79, 88.78, 34.14),
    ("LR", "TopLabel"): (78.58, 92.63, 44.85, 84.05, 96.45, 41.55, 64.8, 86.68, 33.91),
    ("LR", "Network"): (99.08, 99.72, 97.17, 93.4, 98.84, 72.54, 67.6, 87.45, 36.06),
    ("RF", "Confidence"): (93.94, 99.48, 51.41, 90.25, 98.69, 48.77, 68.89, 89.43, 33.24),
    ("RF", "TempScaling"): (94.58, 99.55, 55.41, 89.26, 98.56, 46.88, 68.68, 89.31, 33.07),
    ("RF", "TrustScore"): (90.96, 99.22, 39.19, 88.52, 98.51, 43.36, 59.68, 84.89, 25.84),
    ("RF", "TCP"): (85.83, 98.71, 29.4, 85.07, 97.97, 34.3, 67.96, 89.57, 30.08),
    ("RF", "TopLabel"): (83.99, 98.44, 26.79, 84.44, 97.57, 32.54, 67.64, 88.9, 32.14),
    ("RF", "Network"): (96.45, 99.69, 72.16, 91.23, 98.91, 53.6, 69.27, 89.61, 34.27),
    ("MLP", "Confidence"): (90.71, 99.18, 39.59, 84.41, 96.95, 40.26, 68.99, 89.05, 34.17),
    ("MLP", "TempScaling"): (93.83, 99.49, 52.68, 87.1, 97.98, 46.16, 68.46, 88.96, 34.69),
    ("MLP", "TrustScore"): (88.53, 99.05, 32.28, 88.09, 98.32, 41.85, 60.2, 84.82, 26.6),
    ("MLP", "TCP"): (79.91, 97.62, 25.61, 86.01, 97.78, 39.7, 67.77, 88.91, 31.17),
    ("MLP", "TopLabel"): (78.78, 98.09, 16.65, 81.29, 96.7, 30.16, 67.64, 88.68, 32.81),
    ("MLP", "Network"): (95.02, 99.58, 65.81, 91.75, 98.88, 57.8, 69.69, 89.51, 35.64),
}
# fmt: on

#: (set, base, method, metric) to the mean that the paper reports; its own method is "Network" here.
TABLE1_PRINTED = {
    (name, base, method, metric): values[3 * i + j]
    for (base, method), values in _ROWS.items()
    for i, name in enumerate(_SETS)
    for j, metric in enumerate(METRICS.values())
}

# For each method: AUC, APC, APM on MNIST, FashionMNIST and CIFAR10.
# fmt: off
_IMAGE_ROWS = {
    "Confidence": (90.48, 98.93, 46.71, 91.31, 99.10, 44.22, 83.72, 94.97, 54.42),
    "TempScaling": (90.50, 98.93, 47.27, 91.33, 99.11, 44.27, 83.75, 94.96, 54.81),
    "TrustScore": (96.40, 99.61, 78.53, 91.31, 99.10, 47.27, 86.98, 96.04, 63.29),
    "TCP": (92.11, 98.37, 69.91, 90.82, 98.83, 50.52, 86.63, 95.36, 64.06),
    "TopLabel": (90.35, 98.89, 43.31, 89.54, 98.62, 45.76, 85.24, 94.40, 60.90),
    "Mahalanobis": (75.88, 96.91, 21.96, 59.87, 94.26, 11.15, 55.73, 82.93, 23.47),
    "GCN-1hop": (91.38, 99.02, 53.77, 90.31, 98.92, 45.60, 84.08, 94.33, 62.63),
    "Network": (96.40, 99.55, 81.02, 91.52, 99.04, 48.83, 87.52, 96.05, 65.27),
}
# fmt: on
#: (set, network, method, metric) to the mean that the paper reports. Its network for CIFAR-10 is ResNet-50.
TABLE2_PRINTED = {
    (name, base, method, metric): values[3 * i + j]
    for method, values in _IMAGE_ROWS.items()
    for i, (name, base) in enumerate((("mnist", "cnn"), ("fashion_mnist", "cnn"), ("cifar10", "resnet50")))
    for j, metric in enumerate(METRICS.values())
}
