"""A plan is checked whole before its first notebook starts."""

import ast

import pytest

from lib import paths
from lib.plan import check, reading

CORPUS = """\
queries: int = 300  # how many
share: float = 0.5
names: list[str] = ["a"]
weights: dict[str, int] = {"dense": 2}
title: str = "corpus"
fast: bool = True
depth: int | None = None
texts_file: str = ""  # where the texts are
"""


def refused(checkout, plan: str, *options: str) -> str:
    checkout.notebook("01-corpus", CORPUS, "1 / 0")
    done = checkout.run(str(checkout.plan(plan)), *options)
    assert done.returncode == 1
    assert done.stdout == "" and not (checkout.run_folder / "notebooks").exists(), "nothing may start"
    assert "Traceback" not in done.stderr
    return done.stderr.strip()


def test_a_misspelt_parameter_is_refused_with_what_the_notebook_takes(checkout):
    said = refused(checkout, "01-corpus: {querys: 40}")
    takes = "queries, share, names, weights, title, fast, depth, texts_file"
    assert said == f"notebooks/01-corpus.ipynb has no parameter 'querys'; it takes {takes}"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("queries: '40'", "queries = '40' is str, it takes int; write it without quotes"),
        ("queries: true", "queries = True is bool, it takes int"),
        ("queries: 4.0", "queries = 4.0 is float, it takes int"),
        ("share: 1e-3", "share = '1e-3' is str, it takes float; write it without quotes, an exponent with point and sign, 1.0e-3"),
        ("share: .nan", "share = nan is float, it takes float"),
        ("share: true", "share = True is bool, it takes float"),
        ("title: 2024-01-01", "title = datetime.date(2024, 1, 1) is date, it takes str; put it in quotes"),
        ("title: 7", "title = 7 is int, it takes str; put it in quotes"),
        ("names: [a, 1]", "names = ['a', 1] is list, it takes list[str]"),
        ("weights: {dense: '2'}", "weights = {'dense': '2'} is dict, it takes dict[str, int]"),
        ("fast: 1", "fast = 1 is int, it takes bool"),
        ("depth: x", "depth = 'x' is str, it takes int | None"),
    ],
)
def test_a_value_of_another_type_is_refused(checkout, given, said):
    assert refused(checkout, f"01-corpus: {{{given}}}").startswith(f"notebooks/01-corpus.ipynb: {said}")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("queries: 010", "line 1: YAML reads 010 as another number"),
        ("queries: 1:30", "line 1: YAML reads 1:30 as another number"),
        ("queries: 0x10", "line 1: YAML reads 0x10 as another number"),
        ("title: on", "line 1: YAML reads on as a truth value"),
        ("fast: No", "line 1: YAML reads No as a truth value"),
        ("fast: true, fast: false", "line 1 repeats 'fast'"),
    ],
)
def test_yaml_that_means_something_else_than_it_looks_is_refused(checkout, given, said):
    assert refused(checkout, f"01-corpus: {{{given}}}").startswith(f"runs/small.yaml {said}")


def test_what_stands_everywhere_goes_to_each_notebook_that_takes_it_and_is_beaten_by_its_own(checkout, monkeypatch):
    monkeypatch.setattr(paths, "NOTEBOOKS", checkout.root / "notebooks")
    checkout.notebook("01-corpus", CORPUS, "1 / 0")
    checkout.notebook("02-more", "queries: int = 1  # how many", "1 / 0")
    plan = checkout.plan("everywhere: {queries: 7, share: 0.1}\n01-corpus: {share: 0.2}\n02-more: {}")
    jobs = check.jobs(plan)
    assert [(job.parameters["queries"], job.parameters.get("share")) for job in jobs] == [(7, 0.2), (7, None)]


def test_a_common_parameter_that_no_notebook_takes_or_of_another_type_is_refused(checkout):
    assert refused(checkout, "everywhere: {querys: 7}\n01-corpus: {}") == "everywhere: no notebook of the plan has a parameter 'querys'"
    assert refused(checkout, "everywhere: {queries: x}\n01-corpus: {}").startswith("notebooks/01-corpus.ipynb: queries = 'x' is str")


def test_a_value_that_the_comment_does_not_name_is_refused(checkout):
    checkout.notebook("02-more", 'kind: str = "a"  # one of a, b: what it is', "1 / 0")
    assert refused(checkout, "01-corpus: {}\n02-more: {kind: c}") == "notebooks/02-more.ipynb: kind = 'c' is none of a, b"
    assert checkout.run(str(checkout.plan("02-more: {kind: b}")), "--check").returncode == 0


def test_a_number_below_the_least_that_the_comment_names_is_refused(checkout):
    checkout.notebook("02-more", "n: int = 3  # at least 1: how many", "1 / 0")
    assert refused(checkout, "01-corpus: {}\n02-more: {n: 0}") == "notebooks/02-more.ipynb: n = 0 is less than 1"
    assert checkout.run(str(checkout.plan("02-more: {n: 1}")), "--check").returncode == 0


def test_a_judge_from_the_environment_needs_its_url(checkout):
    for name in ("02-more", "03-more"):
        checkout.notebook(name, 'judge: str = "sample"  # who', "1 / 0")
    said = refused(checkout, "everywhere: {judge: env}\n02-more: {}\n03-more: {}")
    assert said == "judge is env and QRELBOOK_JUDGE_URL is not set; set it to the url of the judge's server"


def test_a_missing_input_file_is_refused(checkout):
    said = refused(checkout, "01-corpus: {texts_file: data/none.jsonl}")
    assert said.startswith("notebooks/01-corpus.ipynb: texts_file = 'data/none.jsonl' is no file")
    (checkout.root / "data").mkdir()
    said = refused(checkout, "01-corpus: {texts_file: data}")
    assert said.startswith("notebooks/01-corpus.ipynb: texts_file = 'data' is no file"), "a folder is no file"


def test_all_problems_of_all_notebooks_come_at_once(checkout):
    checkout.notebook("02-probe", "k: int = 60")
    said = refused(checkout, "01-corpus: {querys: 1, share: x}\n02-probe: {k: a, run: other}\n03-none:\n")
    assert [line.split(";")[0].split(" (")[0] for line in said.splitlines()] == [
        "there is no notebook notebooks/03-none.ipynb",
        "notebooks/01-corpus.ipynb has no parameter 'querys'",
        "notebooks/01-corpus.ipynb: share = 'x' is str, it takes float",
        "notebooks/02-probe.ipynb: k = 'a' is str, it takes int",
        "notebooks/02-probe.ipynb: run is set to the plan's name, small",
    ]


def test_check_stops_before_the_first_notebook(checkout):
    checkout.notebook("01-corpus", CORPUS, "1 / 0")
    done = checkout.run(str(checkout.plan("01-corpus: {queries: 40, share: 1, depth: 3}")), "--check")
    assert (done.returncode, done.stdout) == (0, "runs/small.yaml: 1 notebooks, their parameters and input files are right\n")
    assert not checkout.run_folder.exists()


def test_a_value_set_on_the_command_line_is_checked_too(checkout):
    assert "'querys'" in refused(checkout, "01-corpus:", "--set", "01-corpus.querys=4")
    assert refused(checkout, "01-corpus:", "--set", "01-corpus.queries=x").endswith("is str, it takes int")
    assert refused(checkout, "01-corpus:", "--set", "02.queries=4") == "--set 02.queries=4: the plan has no notebook '02'; it has 01-corpus"
    assert "is not NOTEBOOK.PARAMETER=VALUE" in refused(checkout, "01-corpus:", "--set", "queries=4")
    assert "run is set to the plan's name" in refused(checkout, "01-corpus:", "--set", "01-corpus.run=other")
    path = str(checkout.plan("01-corpus:"))
    assert checkout.run(path, "--check", "--set", "01-corpus.title=007", "--set", "01-corpus.queries=40").returncode == 0


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        ("", "runs/small.yaml is no mapping of notebooks to parameters"),
        ("- 01-corpus", "runs/small.yaml is no mapping of notebooks to parameters"),
        ("01-corpus: 3", "runs/small.yaml: '01-corpus' needs a mapping of parameter names to values"),
        ("01-corpus: {", "runs/small.yaml is no YAML"),
    ],
)
def test_a_plan_that_is_no_mapping_is_refused(checkout, plan, said):
    assert refused(checkout, plan).startswith(said)


def test_a_plan_or_a_notebook_number_that_is_not_there_is_refused(checkout):
    assert refused(checkout, "01-corpus:", "--only", "7") == "--only 7: the plan has no such notebook; it has 01-corpus"
    done = checkout.run("runs/none.yaml")
    assert (done.returncode, done.stderr) == (1, "there is no plan runs/none.yaml; name a YAML file such as runs/sample.yaml\n")
    done = checkout.run("runs/.hidden.yaml")
    assert done.returncode == 1 and done.stderr.startswith("the run '.hidden' is no name of a folder; take a plain name") and done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "cell",
    ["queries = 3", "import os", "queries: int = len([1])", "queries: int", "a: int = 'x'", "a: Path = 1", "a: int = 1\na: int = 2"],
)
def test_a_parameters_cell_is_a_list_of_annotated_literals(checkout, cell):
    path = checkout.notebook("01-corpus", cell)
    with pytest.raises(reading.PlanError, match="the parameters cell is no list of `name: type = literal"):
        reading.notebook(path)


def test_the_parameters_carry_their_comments(checkout):
    found = reading.notebook(checkout.notebook("01-corpus", 'sign: str = "#"  # what marks a line\nk: int = 60')).parameters
    assert (found["sign"].default, found["sign"].comment, found["k"].comment) == ("#", "what marks a line", "")


def test_a_notebook_without_run_is_refused(checkout):
    path = checkout.notebook("01-corpus", "")
    path.write_text(path.read_text().replace("run: str", "folder: str"))
    said = checkout.run(str(checkout.plan("01-corpus:"))).stderr
    assert said == "notebooks/01-corpus.ipynb has no parameter `run: str`; it needs one for the name of the run folder\n"


def test_an_int_becomes_a_float_and_a_bool_is_never_a_number():
    assert isinstance(reading.fitted(1, "float"), float)
    assert reading.fitted({"a": [1, 2]}, "dict[str, list[float]]") == {"a": [1.0, 2.0]}
    for kind in ("int", "float", "list[int]"):
        with pytest.raises(TypeError):
            reading.fitted([True] if "list" in kind else True, kind)
    assert ast.literal_eval("1e-3") == 0.001, "Python reads what YAML 1.1 does not"


def test_a_parameters_cell_of_one_line_is_refused(checkout):
    path = checkout.notebook("01-corpus", "")
    path.write_text(path.read_text().replace("# on the sample\\n", "").replace("# run folder\\n", "# run folder"))
    with pytest.raises(reading.PlanError, match="reads a cell of the one line `run: ...` as its magic %run"):
        reading.notebook(path)
