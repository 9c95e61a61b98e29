#!/usr/bin/env bash
# Runs each fuzz target of the root module for a while: scripts/fuzz.sh 30s
set -euo pipefail
cd "$(dirname "$0")/.."
for_each=${1:-30s}
ran=0
while IFS=: read -r file target; do
	printf '== %s in %s, %s\n' "$target" "$(dirname "$file")" "$for_each"
	go test -run '^$' -fuzz "^$target\$" -fuzztime "$for_each" "$(dirname "$file")"
	ran=$((ran + 1))
done < <(grep -rEo --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' . | sed 's/:func /:/' | sort)
printf '== %d fuzz targets passed\n' "$ran"
[ "$ran" -gt 0 ]
