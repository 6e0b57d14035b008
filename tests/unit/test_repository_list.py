import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from autoinstall.errors import InvalidList
from autoinstall.repository_list import read_list
from autoinstall.values import Goal, Limits, RepositorySpec

URL = "https://example.org/o/n"
ROOT = Path(__file__).resolve().parents[2]


def written(tmp_path: Path, content: str, name: str = "list.csv") -> Path:
    path = tmp_path / name
    path.write_text(content, encoding="utf-8", newline="")
    return path


def test_csv_with_every_column(tmp_path: Path) -> None:
    goals = json.dumps([{"command": "make test", "description": "passes"}]).replace('"', '""')
    path = written(
        tmp_path,
        "\ufefftier, url ,ref,goals,base_image,env,limits\r\n"
        f'1,{URL},v1,"{goals}",python3.11,"A=1\nB = x=y ","{{""memory_mb"": 512}}"\r\n'
        f'2,{URL}/2,,,,"{{""C"": ""2""}}",\r\n'
        "\r\n",
    )
    assert read_list(path) == (
        RepositorySpec(
            url=URL,
            ref="v1",
            goals=(Goal(command="make test", description="passes"),),
            base_image="python3.11",
            env={"A": "1", "B": " x=y"},
            limits=Limits(memory_mb=512),
        ),
        RepositorySpec(url=f"{URL}/2", env={"C": "2"}),
    )


@pytest.mark.parametrize("ref", ["0123456", "1e10", "1.10", "NA", "null", "nan", "True", "007"])
def test_refs_that_look_like_something_else_stay_strings(ref: str, tmp_path: Path) -> None:
    assert read_list(written(tmp_path, f"url,ref\n{URL},{ref}\n"))[0].ref == ref
    line = json.dumps({"url": URL, "ref": ref})
    assert read_list(written(tmp_path, line, "list.jsonl"))[0].ref == ref
    pd.DataFrame({"url": [URL], "ref": [ref]}).to_parquet(tmp_path / "list.parquet")
    assert read_list(tmp_path / "list.parquet")[0].ref == ref


def test_duplicates_are_dropped_and_the_order_is_kept(tmp_path: Path) -> None:
    path = written(tmp_path, f"url,ref\n{URL}/b,\n{URL}/a,v1\n{URL}/b,\n{URL}/a,v2\n")
    assert [(spec.url[-1], spec.ref) for spec in read_list(path)] == [("b", None), ("a", "v1"), ("a", "v2")]


def test_short_rows_and_missing_columns_are_empty_cells(tmp_path: Path) -> None:
    assert read_list(written(tmp_path, f"url,ref,env\n{URL}\n")) == (RepositorySpec(url=URL),)
    assert read_list(written(tmp_path, f"url\n{URL}\n")) == (RepositorySpec(url=URL),)


def test_json_lines(tmp_path: Path) -> None:
    lines = [
        {"url": URL, "ref": None, "env": {"A": "1"}, "limits": {"cpus": 2}, "other": [1]},
        {"url": URL, "ref": "v1", "goals": [{"command": "x", "description": "y"}]},
    ]
    content = "\n".join(json.dumps(line) for line in lines) + "\n\n"
    first, second = read_list(written(tmp_path, content, "list.jsonl"))
    assert first == RepositorySpec(url=URL, env={"A": "1"}, limits=Limits(cpus=2))
    assert second.goals == (Goal(command="x", description="y"),)


def test_parquet_of_pandas_with_nested_columns(tmp_path: Path) -> None:
    goal = {"command": "x", "description": "y", "exit_codes": [0, 2]}
    frame = pd.DataFrame(
        {
            "url": [URL, f"{URL}/2"],
            "ref": ["v1", np.nan],
            "goals": [[goal], None],
            "env": [{"A": "1"}, {"B": "2"}],
            "limits": [{"pids": 100}, None],
            "score": [1.5, np.nan],
        }
    )
    frame.to_parquet(tmp_path / "list.parquet")
    first, second = read_list(tmp_path / "list.parquet")
    assert first.goals == (Goal(command="x", description="y", exit_codes=(0, 2)),)
    assert (first.env, first.limits) == ({"A": "1"}, Limits(pids=100))
    assert second == RepositorySpec(url=f"{URL}/2", env={"B": "2"})


def test_the_content_tells_where_the_suffix_does_not(tmp_path: Path) -> None:
    assert read_list(written(tmp_path, f"url\n{URL}\n", "list.txt"))[0].url == URL
    assert read_list(written(tmp_path, f'\n {{"url": "{URL}"}}\n', "list"))[0].url == URL
    pd.DataFrame({"url": [URL]}).to_parquet(tmp_path / "list.data")
    assert read_list(tmp_path / "list.data")[0].url == URL


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "no column url"),
        ("repository,ref\nx,y\n", "line 1: there is no column url"),
        ("url,url\nx,y\n", "line 1: the column url is there twice"),
        ("url\n", "has no row"),
        (f"url,ref\n{URL},v1\n,v2\n", "line 3: the url is empty"),
        (f"url,ref\n{URL},a,b\n", "line 2: more cells than columns"),
        (f'url,ref\n{URL},"open\n', "unexpected end of data"),
        (f"url,goals\n{URL},pytest\n", "line 2: goals: not JSON"),
        (f"url,goals\n{URL},[]\n", "line 2: goals: The list has no goal"),
        (f'url,goals\n{URL},"[{{""command"": ""x""}}]"\n', "line 2: goals: Goal 1, description"),
        (f"url,env\n{URL},=1\n", "line 2: env: neither"),
        (f"url,env\n{URL},A\n", "line 2: env: neither"),
        (f'url,env\n{URL},"{{""A"": 1}}"\n', "line 2: env: the value of A must be a string"),
        (f"url,limits\n{URL},[1]\n", "line 2: limits: must be an object"),
        (f'url,limits\n{URL},"{{""memory"": 1}}"\n', "line 2: limits: memory"),
    ],
)
def test_bad_csv_is_told_with_file_and_line(content: str, reason: str, tmp_path: Path) -> None:
    path = written(tmp_path, content)
    with pytest.raises(InvalidList, match=reason) as caught:
        read_list(path)
    assert str(path) in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "line 2: not JSON"),
        ("[]", "line 2: not an object"),
        ('{"ref": "v1"}', "line 2: the url is empty"),
        ('{"url": 5}', "line 2: url: must be a string"),
        ('{"url": "https://example.org/o/n", "ref": 123}', "line 2: ref: must be a string, is 123; quote it"),
    ],
)
def test_bad_json_lines_are_told_with_file_and_line(line: str, reason: str, tmp_path: Path) -> None:
    path = written(tmp_path, f'{{"url": "{URL}"}}\n{line}\n', "list.jsonl")
    with pytest.raises(InvalidList, match=reason) as caught:
        read_list(path)
    assert str(path) in caught.value.message


def test_all_bad_rows_are_told_at_once_up_to_ten(tmp_path: Path) -> None:
    mixed = written(tmp_path, f'url,ref,env\n,v1,\n{URL},v1,\n{URL},a,b,c\n{URL},v1,=1\n{URL},"open\n')
    with pytest.raises(InvalidList) as caught:
        read_list(mixed)
    first, *told = caught.value.message.splitlines()
    assert first == f"{mixed} has 4 malformed rows:"
    assert [line.strip().split(":")[0] for line in told] == ["line 2", "line 4", "line 5", "line 6"]
    assert "Columns: url" in caught.value.hint
    assert "Quote cells" in caught.value.hint
    many = written(tmp_path, '{"ref": "v1"}\n' * 25, "list.jsonl")
    with pytest.raises(InvalidList, match="has 25 malformed rows") as caught:
        read_list(many)
    assert len(caught.value.message.splitlines()) == 12
    assert "line 10: the url is empty" in caught.value.message
    assert "line 11" not in caught.value.message
    assert caught.value.message.endswith("and 15 more")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InvalidList, match="cannot be read"):
        read_list(tmp_path)
    (tmp_path / "latin.csv").write_bytes(b"url\nhttps://example.org/\xe9\n")
    with pytest.raises(InvalidList, match="line 2: not UTF-8"):
        read_list(tmp_path / "latin.csv")
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 and then nothing")
    with pytest.raises(InvalidList, match="not a readable Parquet file"):
        read_list(tmp_path / "broken.parquet")
    pd.DataFrame({"name": [URL]}).to_parquet(tmp_path / "other.parquet")
    with pytest.raises(InvalidList, match="no column url"):
        read_list(tmp_path / "other.parquet")


def test_a_list_that_is_not_there_is_told_with_what_to_write(tmp_path: Path) -> None:
    with pytest.raises(InvalidList, match=r"There is no repository list .*absent\.csv") as caught:
        read_list(tmp_path / "absent.csv")
    assert "`url,ref`" in caught.value.hint
    assert "data/repositories.example.csv" in caught.value.hint


def test_the_example_is_a_list_and_the_copy_that_people_make_of_it_is_no_part_of_the_project() -> None:
    assert "data/repositories.csv" in (ROOT / ".gitignore").read_text().split()
    assert all(spec.url.startswith("https://") for spec in read_list(ROOT / "data/repositories.example.csv"))


def test_a_slash_at_the_end_makes_no_other_repository(tmp_path: Path) -> None:
    listed = tmp_path / "list.csv"
    listed.write_text("url\nhttps://example.org/o/n\nhttps://example.org/o/n/\n")
    assert [spec.url for spec in read_list(listed)] == ["https://example.org/o/n"]
