from flask import Flask, abort, jsonify, request

app = Flask(__name__)
notes = {}


@app.get("/health")
def health():
    return jsonify(status="ok", notes=len(notes))


@app.get("/notes")
def list_notes():
    return jsonify([{"id": number, "text": text} for number, text in sorted(notes.items())])


@app.post("/notes")
def add_note():
    text = (request.get_json(silent=True) or {}).get("text", "").strip()
    if not text:
        abort(400, "a note needs text")
    number = max(notes, default=0) + 1
    notes[number] = text
    return jsonify(id=number, text=text), 201


@app.delete("/notes/<int:number>")
def delete_note(number):
    if notes.pop(number, None) is None:
        abort(404)
    return "", 204
