"""What a search draws from."""

from __future__ import annotations

import pytest

from mondrian_bo import Float, MondrianOptimizer, SearchSpace
from mondrian_bo.acquisitions import ExpectedImprovement, UpperConfidenceBound
from mondrian_bo.optimizer.portfolio import Arm, Portfolio, get_portfolio


@pytest.mark.parametrize("surrogate", ["gaussian_process", "forest", "amf", "kernel"])
def test_one_acquisition_takes_the_place_of_all(surrogate):
    default = get_portfolio(surrogate, "auto")
    portfolio = get_portfolio(surrogate, "ei")
    assert [arm.acquisitions for arm in portfolio.arms] == [(ExpectedImprovement(),)] * len(
        default.arms
    )
    assert [arm.options for arm in portfolio.arms] == [arm.options for arm in default.arms]
    assert not portfolio.restarts


def test_the_default_starts_afresh_and_the_papers_forest_does_not():
    assert get_portfolio("gaussian_process", "auto").restarts
    assert not get_portfolio("forest", "auto").restarts


def test_a_portfolio_of_ones_own():
    used = []

    class Spy:
        def __init__(self, name):
            self.name = name

        def __call__(self, prediction, incumbent):
            used.append(self.name)
            return UpperConfidenceBound()(prediction, incumbent)

    portfolio = Portfolio((Arm((Spy("a"), Spy("b"))), Arm((Spy("c"),), power=False)))
    assert get_portfolio("forest", portfolio) is portfolio
    space = SearchSpace({"x": Float(0.0, 1.0)})
    optimizer = MondrianOptimizer(space, surrogate="forest", acquisition=portfolio, seed=0)
    for _ in range(30):
        params = optimizer.ask()
        optimizer.tell(params, (params["x"] - 0.3) ** 2)
    assert set(used) == {"a", "b", "c"}
    assert optimizer.best[1] < 1e-3
