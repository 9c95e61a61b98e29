package providertest

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/seed-6b5e302b/samekey/outbound"
)

// recorder is a testing.TB that keeps failures to itself.
type recorder struct {
	testing.TB
	mu     sync.Mutex
	failed bool
	log    strings.Builder
}

func (r *recorder) note(failed bool, format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = r.failed || failed
	fmt.Fprintf(&r.log, format+"\n", args...)
}

func (r *recorder) Failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

func (r *recorder) Logf(format string, args ...any)   { r.note(false, format, args...) }
func (r *recorder) Errorf(format string, args ...any) { r.note(true, format, args...) }
func (r *recorder) Fatalf(format string, args ...any) {
	r.note(true, format, args...)
	runtime.Goexit()
}

// verdict runs the case in a bubble and returns what it recorded.
func (c testCase) verdict(t *testing.T, k Kit) *recorder {
	t.Helper()
	var r *recorder
	synctest.Test(t, func(t *testing.T) {
		r = &recorder{TB: t}
		done := make(chan struct{})
		go func() { // a fatal failure ends its goroutine
			defer close(done)
			c.judge(r, k, k.Samples[0])
		}()
		<-done
	})
	return r
}

// failing runs every case that fits and returns those that fail, and what they
// said.
func failing(t *testing.T, s *shape) (names []string, said map[string]string) {
	t.Helper()
	said = map[string]string{}
	for _, c := range cases() {
		if !c.needs.fits(s.row) {
			continue
		}
		if r := c.verdict(t, s.kit()); r.failed {
			names = append(names, c.name)
			said[c.name] = r.log.String()
		}
	}
	slices.Sort(names)
	return names, said
}

func TestKitAcceptsSoundAdapters(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]*shape{"header": byHeader(), "body": inBody(), "link": linking(), "without a key": unkeyed()} {
		_, said := failing(t, s)
		for c, log := range said {
			t.Errorf("%s: %s fails a sound adapter:\n%s", name, c, log)
		}
	}
}

// What a Kit lacks ends the test with the reason, before any case.
func TestKitsAreChecked(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*Kit)
		says   string
	}{
		"no adapter":  {func(k *Kit) { k.New = nil }, "needs New"},
		"no provider": {func(k *Kit) { k.Provider = nil }, "needs New, Provider"},
		"no samples":  {func(k *Kit) { k.Samples = nil }, "Samples"},
		"no call":     {func(k *Kit) { k.Samples[0].Call = nil }, "needs a Call"},
		"a call that cannot be made": {func(k *Kit) {
			k.Samples[0].Call = func(outbound.Command, string) outbound.Call { return outbound.Call{Err: errNoRoute} }
		}, "cannot be made"},
		"an unknown operation": {func(k *Kit) {
			k.Samples[0].Call = func(outbound.Command, string) outbound.Call { return outbound.Call{Operation: "no.such"} }
		}, "in no row"},
		"another name at the provider": {func(k *Kit) {
			k.Provider = JSONDialect(JSONProvider{Operations: []JSONOperation{{Name: "payment.make", Path: "/v1/payments"}}})
		}, "name its operations as the rows do"},
		"wrong settings": {func(k *Kit) {
			s := byHeader()
			s.row.KeyMax = 20
			k.New = s.kit().New
		}, "settings are wrong"},
	} {
		t.Run(name, func(t *testing.T) {
			k := byHeader().kit()
			tt.change(&k)
			r := &recorder{TB: t}
			done := make(chan struct{})
			go func() { // a fatal failure ends its goroutine
				defer close(done)
				k.rows(r)
			}()
			<-done
			if !r.failed || !strings.Contains(r.log.String(), tt.says) {
				t.Errorf("got %q, want it to say %q", r.log.String(), tt.says)
			}
		})
	}
}

// A case that needs what a sample lacks is named, not lost.
func TestMissingPartsAreNamed(t *testing.T) {
	row, s := byHeader().row, Sample{}
	var missing []string
	for _, c := range cases() {
		if lacks := c.without(row, s); lacks != "" && !slices.Contains(missing, lacks) {
			missing = append(missing, lacks)
		}
	}
	slices.Sort(missing)
	if want := []string{"Card", "Other", "Refused", "Rejected"}; !slices.Equal(missing, want) {
		t.Errorf("missing %v, want %v", missing, want)
	}
}

func TestCasesAreNamedOnceAndExplainThemselves(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range cases() {
		if c.why == "" || c.mend == "" || seen[c.name] {
			t.Errorf("%s: named twice, or without a reason, or without what to change", c.name)
		}
		seen[c.name] = true
	}
}
