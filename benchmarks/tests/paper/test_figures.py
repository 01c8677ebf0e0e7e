"""Figures: one bar or curve for each method, at the height of the means."""

import numpy as np
import pytest

from benchmarks.paper import ablation_figure, sensitivity_figure

SETS, BASES, METHODS = ("letter", "adult", "landsat"), ("LR", "RF"), ("TrustScore", "Pool")


@pytest.mark.parametrize("metric", ["auroc", "ap_success", "ap_error"])
def test_ablation_bars(tmp_path, result, figures, metric):
    rows = [
        result(name, base, seed, method, 0.7 + 0.1 * seed, ap_success=0.9, ap_error=0.5)
        for name in SETS
        for base in BASES
        for seed in (0, 1)
        for method in METHODS
        if (name, base) != ("landsat", "RF")
    ]
    path = tmp_path / "bars.png"
    ablation_figure(rows, SETS, BASES, METHODS, metric, path)
    assert path.read_bytes().startswith(b"\x89PNG")
    (figure,) = figures
    assert len(figure.axes) == len(BASES)
    for ax, base in zip(figure.axes, BASES, strict=True):
        heights = np.array([bar.get_height() for bar in ax.patches])
        assert len(heights) == len(SETS) * len(METHODS)
        mean = {"auroc": 75.0, "ap_success": 90.0, "ap_error": 50.0}[metric]
        assert np.isnan(heights).sum() == (len(METHODS) if base == "RF" else 0)
        assert heights[~np.isnan(heights)] == pytest.approx(mean)
        assert [tick.get_text() for tick in ax.get_xticklabels()] == list(SETS)
        assert ax.get_ylabel().startswith(base)
    assert [text.get_text() for text in figure.axes[0].get_legend().get_texts()] == list(METHODS)


def test_sensitivity_curves(tmp_path, result, figures):
    rows = [
        result("card_default", "LR", seed, method, 0.7, ap_success=0.8 + k / 100, ap_error=0.4, n_neighbors=k)
        for k in (3, 1, 2)
        for seed in (0, 1)
        for method in METHODS
    ]
    path = tmp_path / "curves.png"
    sensitivity_figure(rows, METHODS, path)
    assert path.read_bytes().startswith(b"\x89PNG")
    (figure,) = figures
    assert len(figure.axes) == 2
    for ax in figure.axes:
        assert [line.get_label() for line in ax.lines] == list(METHODS)
        assert len(ax.collections) == len(METHODS)
    for line in figure.axes[0].lines:
        np.testing.assert_allclose(line.get_xydata(), [[1, 81], [2, 82], [3, 83]])
    for line in figure.axes[1].lines:
        np.testing.assert_allclose(line.get_ydata(), 40)
