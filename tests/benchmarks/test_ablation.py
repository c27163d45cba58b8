"""The ablation: every variant runs, and nothing runs twice."""

from __future__ import annotations

import json

import numpy as np
import pytest

from mondrian_bo.acquisitions import LogExpectedImprovement, UpperConfidenceBound
from mondrian_bo.benchmarks.ablation import VARIANTS, Learnt, main, run, summary, table


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_variant_runs(variant):
    [record] = run(variant, "branin", 0, [14])
    assert record["run"] == [variant, "branin", 0, 14]
    quarter, half, end = record["regrets"]
    assert quarter >= half >= end >= 0.0
    [again] = run(variant, "branin", 0, [14])
    assert record == again | {"milliseconds": record["milliseconds"]}


def test_one_search_gives_what_shorter_searches_give():
    found = run("default", "branin", 0, [8, 12, 20])
    for record, length in zip(found, [8, 12, 20], strict=True):
        [alone] = run("default", "branin", 0, [length])
        assert (record["run"], record["regrets"]) == (alone["run"], alone["regrets"])
    regrets = [record["regrets"][-1] for record in found]
    assert regrets[0] >= regrets[1] >= regrets[2] and regrets[0] > regrets[2]
    assert all(record["milliseconds"] > 0.0 for record in found)


def test_the_command_runs_missing_numbers_of_trials(tmp_path):
    out = tmp_path / "results.jsonl"
    arguments = ["--problems", "branin", "--variants", "default", "--seeds", "1"]
    main([*arguments, "--trials", "4", "--out", str(out)])
    before = out.read_text()
    main([*arguments, "--trials", "4,6", "--out", str(out)])
    assert out.read_text().startswith(before)
    assert [json.loads(line)["run"][3] for line in out.read_text().splitlines()] == [4, 6]


def test_the_table_holds_the_moments():
    records = [
        {
            "run": ["default", "branin", seed, 4],
            "regrets": [9.0, 3.0, value],
            "milliseconds": 1.0 + seed,
        }
        for seed, value in enumerate([0.0, 1.0, 5.0])
    ]
    _, [row] = table(records)
    assert row == ["branin, 4", "default", "3", "9", "3", "2", "1", "5", "33%", "", "2"]


def test_the_table_compares_with_the_default_seed_by_seed():
    def records(variant, ends):
        runs = [[variant, "branin", seed, 4] for seed in range(len(ends))]
        return [
            {"run": run, "regrets": [9.0, 3.0, end], "milliseconds": 1.0}
            for run, end in zip(runs, ends, strict=True)
        ]

    base = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 1e-7, 7.0]
    worse = records("worse", [end + 1.0 for end in base[:6]] + [1e-8])
    mixed = records("mixed", [end + (-1.0) ** k for k, end in enumerate(base[:6])])
    _, rows = table([*worse, *mixed, *records("default", base), *records("few", base[:1])])
    assert [row[1] for row in rows] == ["default", "few", "mixed", "worse"]
    # Six of six are worse: 2 / 2^6.
    assert [row[-2] for row in rows] == ["", "1", "1", "0.031"]


def test_the_summary_pairs_runs_over_problems_and_seeds():
    def record(variant, name, seed, end, milliseconds):
        run = [variant, name, seed, 4]
        return {"run": run, "regrets": [9.0, 9.0, end], "milliseconds": milliseconds}

    # Seven pairs: six are ten times worse, one is a thousandth against less than the resolution.
    cells = [("branin", seed) for seed in range(4)] + [("mixed6", seed) for seed in range(3)]
    records = [record("default", *cell, 0.1, 2.0) for cell in cells[:6]]
    records += [record("default", *cells[6], 1e-9, 2.0)]
    records += [record("worse", *cell, 1.0, 4.0) for cell in cells[:6]]
    records += [record("worse", *cells[6], 1e-3, 4.0), record("worse", "levy", 0, 1.0, 4.0)]
    records += [record("same", *cell, 0.1, 1.0) for cell in cells[:6]]
    _, rows = summary(records)
    error = np.std([1.0] * 6 + [3.0], ddof=1) / np.sqrt(7)
    assert rows == [
        ["4", "same", "2", "6", "+0.000 ± 0.000", "1", "0.50"],
        # All seven signs agree, and there are two rows: 2 x 2 / 2^7.
        ["4", "worse", "2", "7", f"{9 / 7:+.3f} ± {error:.3f}", "0.031", "2.00"],
    ]


def test_resumes(tmp_path, capsys):
    out = tmp_path / "sub" / "results.jsonl"
    arguments = [
        "--problems",
        "branin",
        "--variants",
        "default",
        "--trials",
        "4",
        "--out",
        str(out),
    ]
    main([*arguments, "--seeds", "1"])
    before = out.read_text()
    main([*arguments, "--seeds", "2"])
    assert out.read_text().startswith(before)
    assert [json.loads(line)["run"][2] for line in out.read_text().splitlines()] == [0, 1]
    assert "| branin, 4 | default | 2 |" in capsys.readouterr().out


def test_acquisitions_that_improve_on_the_incumbent_are_chosen_more_often():
    few, many = UpperConfidenceBound(), LogExpectedImprovement()
    choice = Learnt((few, many), 0)
    assert len(choice) == 1
    chosen = []
    rng = np.random.default_rng(0)
    for _ in range(400):
        chosen.append(choice[0])
        choice.note(bool(rng.random() < (0.6 if chosen[-1] is many else 0.2)))
        choice.note(True)  # a trial that no acquisition has suggested
    assert {*map(id, chosen[:50])} == {id(few), id(many)}
    assert sum(one is many for one in chosen[200:]) > 170
