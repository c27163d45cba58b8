import optuna
import pytest
from optuna.samplers import RandomSampler

from mondrian_bo.benchmarks.peers import PEERS, Peer, get_peer, installed_peers
from mondrian_bo.benchmarks.problems import get_problem, suggest

MISSING = Peer(lambda seed: RandomSampler(seed=seed), "no_such_module", "pip install it")


@pytest.mark.parametrize("name", ["random", "tpe", "cmaes"])
def test_seed_decides_the_suggestions(name):
    pytest.importorskip(PEERS[name].requires or "optuna")

    def points(seed):
        problem = get_problem("branin")
        study = optuna.create_study(sampler=get_peer(name).factory(seed))
        study.optimize(lambda trial: problem.function(suggest(trial, problem.space)), 15)
        return [trial.params for trial in study.trials]

    assert points(3) == points(3)
    assert points(3) != points(4)


def test_a_missing_peer_is_left_out_with_a_notice(monkeypatch):
    monkeypatch.setitem(PEERS, "absent", MISSING)
    notices = []
    assert installed_peers(["random", "absent", "tpe"], notices.append) == ["random", "tpe"]
    assert notices == ["skipping absent: needs no_such_module (pip install it)"]


def test_nothing_left(monkeypatch):
    monkeypatch.setitem(PEERS, "absent", MISSING)
    with pytest.raises(ValueError, match="none of the samplers"):
        installed_peers(["absent"], lambda _: None)


def test_unknown_peer():
    with pytest.raises(ValueError, match=r"unknown sampler 'tpo'; known: .*tpe"):
        installed_peers(["random", "tpo"], lambda _: None)
