#!/bin/sh
# Adds, lists and deletes a note on a running server.
set -eu
base=${1:-http://localhost:8000}

id=$(curl --fail --silent -H 'Content-Type: application/json' -d '{"text": "hello"}' "$base/notes" |
    sed -n 's/.*"id": *\([0-9]*\).*/\1/p')
curl --fail --silent "$base/notes" | grep -q hello
curl --fail --silent -X DELETE "$base/notes/$id"
echo "smoke test passed"
