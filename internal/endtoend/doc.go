// Package endtoend proves the whole path: real adapters over real stores before
// fakes that count what really happened. It holds tests only.
package endtoend
