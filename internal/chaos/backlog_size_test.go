//go:build !race

package chaos

// backlogSize is how many records are due; `make chaos` drains so many.
const backlogSize = 100_000
