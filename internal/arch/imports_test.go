package arch

import (
	"path"
	"slices"
	"strings"
)

// room is a folder's door: what its code, tests apart, may import beside the
// standard library.
type room struct {
	dir  string   // A pattern of path.Match.
	may  []string // Folders of this module and other modules' paths, and all below them.
	not  []string // Packages of the standard library that it may not import.
	why  string
	free bool // May import anything.
}

var (
	leaves = []string{"keyderive", "replaysemantics", "recordstore"}
	core   = slices.Concat(leaves, []string{"outbound"})

	uuid      = "github.com/google/uuid"
	pgx       = "github.com/jackc/pgx"
	sqlite    = "modernc.org/sqlite"
	retryable = "github.com/hashicorp/go-retryablehttp"
	jcs       = "github.com/gowebpki/jcs"
	otel      = "go.opentelemetry.io/otel"
	otelAPI   = []string{otel + "/attribute", otel + "/codes", otel + "/metric", otel + "/trace"}
)

// exactly names packages that are allowed without those below them.
var exactly = []string{"outbound", "recordstore", otel, otel + "/metric", otel + "/trace"}

// rooms is the table of docs/design.md, section 2. The first match counts.
var rooms = []room{
	{dir: "keyderive", may: []string{uuid}, why: "it is useful alone, under any SDK"},
	{dir: "replaysemantics", why: "it is data that every other part reads"},
	{dir: "recordstore", why: "it is the contract that stores are written against"},
	{dir: "recordstore/recordstoretest", may: []string{"recordstore"}, why: "it judges stores that it does not know"},
	{dir: "recordstore/memory", may: []string{"recordstore"}, why: "a store knows the contract and nothing of its users"},
	{dir: "recordstore/internal/groupcommit", may: []string{"recordstore"}, why: "it knows steps of a ledger and no database"},
	{dir: "recordstore/sqlite", may: []string{"recordstore", "recordstore/internal/groupcommit", sqlite}, why: "a store knows the contract, its database and nothing of its users"},
	{dir: "recordstore/postgres", may: []string{"recordstore", "recordstore/internal/groupcommit", pgx}, why: "a store knows the contract, its database and nothing of its users"},

	{dir: "outbound/internal/limit", why: "it knows time and nothing else"},
	{dir: "outbound", may: slices.Concat(leaves, []string{"outbound/internal/limit", uuid, otel}, otelAPI), not: []string{"net/http"}, why: "it holds the order of steps: no HTTP, no provider, no store, and of OpenTelemetry the API only"},
	{dir: "outbound/httpadapter", may: slices.Concat(core, []string{"outbound/internal/limit", retryable, jcs}), why: "all HTTP is here, and no provider"},
	{dir: "outbound/graphqladapter", may: slices.Concat(core, []string{"outbound/httpadapter"}), why: "it is a codec, and knows no provider"},
	{dir: "outbound/carriers", may: slices.Concat(core, []string{"outbound/httpadapter"}), why: "it puts adapters together and knows none of them"},
	{dir: "outbound/dropin", may: slices.Concat(core, []string{"outbound/httpadapter"}), why: "it ends in the same Do as every other caller"},

	{dir: "reprocess", may: slices.Concat(core, []string{"outbound/httpadapter"}), why: "it calls through any client, and knows no store and no provider"},

	{dir: "providers/providertest", may: slices.Concat(core, []string{"outbound/httpadapter", "recordstore/memory", "internal/fakeprovider", otel + "/attribute", otel + "/codes", otel + "/trace", otel + "/trace/embedded", otel + "/trace/noop"}), why: "it is the public face of the fakes and judges adapters: of OpenTelemetry it reads the spans"},
	{dir: "providers/*", may: slices.Concat(core, []string{"outbound/httpadapter"}), why: "an adapter is data and a codec, and knows no other provider and no store"},
	{dir: "internal/fakeprovider", may: []string{"replaysemantics"}, why: "the judge shares no code with the judged"},
	{dir: "internal/fakeprovider/*", may: []string{"replaysemantics", "internal/fakeprovider"}, why: "the judge shares no code with the judged"},

	{dir: "internal/fakeincident", why: "the judge shares no code with the judged"},

	{dir: "internal/arch", why: "it reads source and runs nothing"},
	{dir: "internal/endtoend", why: "it holds tests only"},
	{dir: "internal/simulation", why: "it holds tests only"},
	{dir: "internal/failures", why: "it holds tests only"},
	{dir: "internal/pgtest", may: []string{pgx}, why: "it starts a database and knows nothing of ledgers"},
	{dir: "internal/pgtest/*", may: []string{"internal/pgtest"}, why: "it starts a database and knows nothing of ledgers"},
	{dir: "internal/console", may: slices.Concat(core, []string{"cmd/samekey/explain"}), why: "it shows any ledger, and knows no store and no provider"},
	{dir: "internal/audit", may: slices.Concat(core, []string{"outbound/httpadapter"}), why: "it compares any ledger with any provider, and knows no store and none of them"},
	{dir: "internal/semanticsdoc", free: true},
	{dir: "internal/chaos", free: true},
	{dir: "internal/chaos/*", free: true},
	{dir: "cmd/*", free: true},
	{dir: "cmd/*/*", free: true},
}

// doorFindings checks the table of rooms.
func doorFindings(m *module) (found []finding) {
	for _, p := range m.packages {
		for _, f := range p.files {
			if f.test {
				continue
			}
			i := slices.IndexFunc(rooms, func(r room) bool { ok, _ := path.Match(r.dir, p.dir); return ok })
			if i < 0 {
				found = append(found, m.at(f, f.ast.Package, "%s is in no row of the table of imports: add one that says what it may import and why", p.dir))
				continue
			}
			for _, spec := range f.ast.Imports {
				if imp := importPath(spec); !rooms[i].admits(imp) {
					found = append(found, m.at(f, spec.Pos(), "%s may not import %s: %s", p.dir, imp, rooms[i].why))
				}
			}
		}
	}
	return found
}

func (r room) admits(imp string) bool {
	if r.free {
		return true
	}
	if first, _, _ := strings.Cut(imp, "/"); !strings.Contains(first, ".") { // the standard library
		return !slices.Contains(r.not, imp)
	}
	imp = strings.TrimPrefix(imp, modulePath+"/")
	return slices.ContainsFunc(r.may, func(allowed string) bool {
		return imp == allowed || !slices.Contains(exactly, allowed) && within(imp, allowed)
	})
}

// confined are packages that only some folders may import. Tests are bound too,
// unless the row frees them.
var confined = []struct {
	imports []string
	dirs    []string // And all below them.
	tests   bool     // Tests may, wherever they are.
	why     string
}{
	{[]string{retryable}, []string{"outbound/httpadapter"}, false, "its traps are handled in one place"},
	{[]string{pgx}, []string{"recordstore/postgres", "internal/pgtest", "internal/chaos", "cmd"}, true, "a service without PostgreSQL does not compile pgx"},
	{[]string{otel + "/sdk", otel + "/exporters"}, []string{"cmd"}, true, "the SDK is the service's choice, ours is the API"},
	{[]string{"github.com/stripe", "github.com/plutov", "github.com/riverqueue", "go.temporal.io"}, nil, false, "other SDKs live in modules of their own"},
}

// confinedFindings checks the table of confined packages.
func confinedFindings(m *module) (found []finding) {
	for _, p := range m.packages {
		for _, f := range p.files {
			for _, spec := range f.ast.Imports {
				imp := importPath(spec)
				for _, c := range confined {
					here := c.tests && f.test || slices.ContainsFunc(c.dirs, func(d string) bool { return within(p.dir, d) })
					if !here && slices.ContainsFunc(c.imports, func(root string) bool { return within(imp, root) }) {
						found = append(found, m.at(f, spec.Pos(), "%s may not import %s: %s", p.dir, imp, c.why))
					}
				}
			}
		}
	}
	return found
}
