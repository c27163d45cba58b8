"""The suite `wide` measures a row for each space."""

from __future__ import annotations

import json
from argparse import Namespace

import pytest

from mondrian_bo.benchmarks.suites import special_suite, wide


@pytest.mark.parametrize("space", wide.WIDE_SPACES)
def test_wide_spaces(space):
    (row,) = wide.wide_space(space, n_trials=4, n_timed=2)
    assert space in row.name and row.baseline_name == "TPE"
    assert row.details["trials_measured"] == 2


def test_suite(tmp_path, capsys):
    special_suite("wide")(Namespace(out=tmp_path / "new", trials=2))
    printed = capsys.readouterr().out
    content = json.loads((tmp_path / "new" / "wide.json").read_text(encoding="utf-8"))
    assert len(content["rows"]) == len(wide.WIDE_SPACES)
    assert all(row["name"] in printed for row in content["rows"])
