# Takes each module that nothing pins at its newest release of no later than a day, where it has one.
#
# Argument: the day, as 2019-12-31. Run in the directory of the go.mod, which names what the sources import.
go list -m -f '{{if not (or .Main .Indirect)}}{{.Path}}{{end}}' all | while read -r module; do
  for version in $(go list -m -versions -f '{{range .Versions}}{{println .}}{{end}}' "$module" | tac | head -n 40); do
    released=$(go list -m -f '{{.Time.Format "2006-01-02"}}' "$module@$version" 2>/dev/null) || continue
    [[ $released > $1 ]] || { go get -d "$module@$version"; break; }
  done
done
