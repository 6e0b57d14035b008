import pytest

from notes.app import app, notes


@pytest.fixture
def client():
    notes.clear()
    return app.test_client()


def test_health(client):
    assert client.get("/health").get_json() == {"status": "ok", "notes": 0}


def test_a_note_is_added_listed_and_deleted(client):
    created = client.post("/notes", json={"text": " milk "})
    assert created.status_code == 201
    assert client.get("/notes").get_json() == [{"id": 1, "text": "milk"}]
    assert client.delete("/notes/1").status_code == 204
    assert client.get("/notes").get_json() == []


def test_an_empty_note_is_refused(client):
    assert client.post("/notes", json={"text": " "}).status_code == 400
    assert client.post("/notes", data="no json").status_code == 400


def test_an_unknown_note_is_not_found(client):
    assert client.delete("/notes/7").status_code == 404
