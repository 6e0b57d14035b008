from textstats.__main__ import main


def test_prints_statistics(tmp_path, capsys):
    file = tmp_path / "a.txt"
    file.write_text("One two. Three four five.", encoding="utf-8")
    assert main([str(file)]) == 0
    assert capsys.readouterr().out.splitlines()[0].split() == ["words", "5"]
