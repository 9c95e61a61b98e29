#!/usr/bin/env bash
# Runs each fuzz target of the root module for a while: scripts/fuzz.sh 30s
set -euo pipefail
cd "$(dirname "$0")/.."
for_each=${1:-30s}
ran=0
while IFS=: read -r file target; do
	printf '== %s in %s, %s\n' "$target" "$(dirname "$file")" "$for_each"
	go test -run '^$' -fuzz "^$target\$" -fuzztime "$for_each" "./$(dirname "$file")"
	ran=$((ran + 1))
done < <(go list -f '{{$d := .Dir}}{{range .TestGoFiles}}{{$d}}/{{.}}{{"\n"}}{{end}}{{range .XTestGoFiles}}{{$d}}/{{.}}{{"\n"}}{{end}}' ./... |
	sed "s|^$PWD/||" | xargs grep -Eo '^func Fuzz[A-Za-z0-9_]+' /dev/null | sed 's/:func /:/')
if [ "$ran" -eq 0 ]; then
	printf '== no fuzz target found\n' >&2
	exit 1
fi
printf '== %d fuzz targets passed\n' "$ran"
