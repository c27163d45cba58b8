"""Checks of input that have short cuts."""

import numpy as np
import pytest

from mondrian_bo.surrogates.estimators.validation import check_squares

ABOVE = np.nextafter(1e145, np.inf)


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("largest", [0.0, 1.0, 1e72, 1e73, 1e145, ABOVE, 1e160, 1e308])
@pytest.mark.parametrize("n", [0, 1, 2, 2000])
def test_squares_of_labels(n, largest, sign):
    labels = np.linspace(0.0, 1.0, n)
    labels[-1:] = sign * largest
    if n > 0 and largest > 1e145:
        with pytest.raises(
            ValueError, match=r"y has values beyond 1e\+145, whose squares overflow"
        ):
            check_squares(labels)
    else:
        check_squares(labels)
