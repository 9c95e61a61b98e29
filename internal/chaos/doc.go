// Package chaos kills processes that use a ledger, with SIGKILL, and asks the
// fake providers afterwards how often each command had an effect. A worker is the
// test's or runner's own program, started once more: see Worker.
//
// Run is the random part, which `make chaos` calls: many workers, faults, a kill
// every few hundred milliseconds. The package's tests add the matrix of steps at
// which a process is killed exactly.
package chaos
