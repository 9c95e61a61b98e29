#!/usr/bin/env bash
# Runs the tests of all modules against a private PostgreSQL. Needs Go; installs
# PostgreSQL, PgBouncer, Node.js and Chromium where that is possible and needed.
# Nothing is skipped: what cannot run has failed.
#
#   scripts/test.sh            everything
#   scripts/test.sh ./outbound/...   these packages of the root module only
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf '== %s\n' "$*"; }

# install installs Debian packages, where that is possible.
install() {
	[ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 1
	say "installing $*"
	apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

# find_postgres succeeds if PostgreSQL 15 or newer is on this machine.
find_postgres() { go run ./internal/pgtest/withserver -find; }

if [ "${1:-}" != inside ]; then
	if ! found=$(find_postgres 2>&1); then
		install postgresql postgresql-client || { printf '%s\n' "$found" >&2; exit 1; }
		found=$(find_postgres)
	fi
	# Its tests say how to install it where this cannot.
	[ -x /usr/sbin/pgbouncer ] || command -v pgbouncer >/dev/null || install pgbouncer || true
	{ command -v node && command -v npm; } >/dev/null || install nodejs npm || true
	command -v chromium >/dev/null || install chromium || true
	say "PostgreSQL: $found"
	exec go run ./internal/pgtest/withserver "$0" inside "$@"
fi
shift

# The race detector without checkptr, which follows unsafe pointers: this code has
# none, and SQLite, which is translated from C, runs half as fast under it.
go_test() { go test -race -gcflags=all=-d=checkptr=0 -count=1 -timeout 10m "$@"; }

if [ $# -gt 0 ]; then
	go_test "$@"
	exit
fi

# Packages that start processes and servers and watch leases of seconds: one at a
# time, since each of them uses the whole machine.
alone='/internal/(chaos|endtoend|failures)$|/recordstore/(postgres|sqlite)$|/integration/console$'

# test_module vets and tests the module in a folder, all of it whatever fails.
# Where it is called bash does not stop at a command that fails: each is asked.
test_module() {
	say "go vet, go test -race: $1"
	(
		cd "$1" && packages=$(go list ./...) || exit 1
		mapfile -t together < <(grep -vE "$alone" <<<"$packages")
		mapfile -t by_themselves < <(grep -E "$alone" <<<"$packages")
		status=0
		go vet ./... || status=1
		[ ${#together[@]} = 0 ] || go_test "${together[@]}" || status=1
		[ ${#by_themselves[@]} = 0 ] || go_test -p 1 "${by_themselves[@]}" || status=1
		exit $status
	)
}

failed=()
while IFS= read -r mod; do
	dir=$(dirname "$mod")
	case $dir in
	./bench) # measures, so that it is only compiled here
		say "go vet, compile: $dir"
		(cd "$dir" && go vet ./... && go test -run '^$' ./...) || failed+=("$dir")
		;;
	*) test_module "$dir" || failed+=("$dir") ;;
	esac
done < <(find . -name go.mod -not -path '*/node_modules/*' -not -path '*/testdata/*' -not -path './.tmp/*' | sort)

if [ ${#failed[@]} -gt 0 ]; then
	say "FAILED: ${failed[*]}"
	exit 1
fi
say "all modules passed"
