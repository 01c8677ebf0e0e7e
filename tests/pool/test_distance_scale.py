"""One meaning of far, near and missing neighbors."""

import numpy as np
import pytest

from neighboragg._pool.experts import DistanceScale, usual_counts

INF = np.inf


def test_scale_by_hand():
    scale = DistanceScale.of(np.array([[[1.0, 2.0], [4.0, INF]], [[3.0, 5.0], [2.0, 6.0]]]))
    assert scale.far == 12.0
    assert scale.offset == pytest.approx(0.05 * 1.5 + 6e-6)


def test_missing_neighbors_are_as_far_as_the_last_of_the_class():
    scale = DistanceScale(far=100.0, offset=0.5)
    found = scale.logs(np.array([[[1.0, 3.0, INF], [2.0, INF, INF]]]), 3)
    np.testing.assert_allclose(found, np.log([[[1.5, 3.5, 3.5], [2.5, 2.5, 2.5]]]))


@pytest.mark.parametrize(("near", "expected"), [(1.0, 100.0), (80.0, 160.0)])
def test_a_class_without_rows_is_farther_than_all_others(near, expected):
    scale = DistanceScale(far=100.0, offset=0.0)
    found = scale.logs(np.array([[[near], [INF]]]), 1)
    np.testing.assert_allclose(found[0, :, 0], np.log([near, expected]))


def test_distances_of_duplicates_and_none_at_all_stay_finite():
    for distances in (np.zeros((5, 2, 3)), np.full((5, 2, 3), INF)):
        assert np.isfinite(DistanceScale.of(distances).logs(distances, 3)).all()


def test_usual_counts():
    assert [usual_counts(k) for k in (1, 2, 5, 20)] == [[1], [1, 2], [1, 5], [1, 5, 20]]
