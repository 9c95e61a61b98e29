package outbound

import (
	"net/http" // want imports
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5" // want imports confined_packages
)

var (
	limit    = 1
	table    = map[string]int{"a": 1}
	settings struct{ name string }
	list     = []int{1, 2}
	fixed    = func() map[string]int { m := map[string]int{}; m["a"] = 1; return m }()

	mu      sync.Mutex             // want no_changing_vars
	counter atomic.Int64           // want no_changing_vars
	shared  atomic.Pointer[string] // want no_changing_vars
	pool    = sync.Pool{}          // want no_changing_vars
	once    = sync.OnceValue(func() int { return 1 })
)

func init() { // want no_init
	limit = 2 // want no_changing_vars
}

func changes() {
	limit++                  // want no_changing_vars
	table["b"] = limit       // want no_changing_vars
	delete(table, "a")       // want no_changing_vars
	settings.name = "x"      // want no_changing_vars
	list[0], _ = 3, 4        // want no_changing_vars
	elsewhere(&limit)        // want no_changing_vars
	http.DefaultClient = nil // want no_changing_vars
	pgx.ErrNoRows = nil      // want no_changing_vars
	for limit = range list { // want no_changing_vars
	}
	*(&other) = 2 // want no_changing_vars
}

func changesNothing(in struct{ limit int }) {
	limit := limit
	limit = 2
	in.limit = 3
	table := map[string]int{}
	table["a"] = 1
	func() { limit++ }()
	_ = fixed["a"]
}

type client struct{ limit int }

func (c *client) init() { c.limit = 1 }
