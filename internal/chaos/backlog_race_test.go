//go:build race

package chaos

// backlogSize is what the race detector's slowness leaves of the backlog.
const backlogSize = 5_000
