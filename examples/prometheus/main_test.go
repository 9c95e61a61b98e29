package main

import (
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/providers/providertest"
	"github.com/seed-6b5e302b/samekey/providers/stripe"
)

// scraped is what Prometheus reads after a few calls: names of series, and of each
// the labels.
func scraped(t *testing.T) map[string][]string {
	t.Helper()
	fake := providertest.Stripe(t, nil)
	charge := fake.Seed(providertest.Charge{Amount: 1000, Currency: "eur"})
	meters, metrics, err := Metrics()
	if err != nil {
		t.Fatal(err)
	}
	payments, err := Payments(fake.URL, meters)
	if err != nil {
		t.Fatal(err)
	}
	cmd := outbound.Command{ID: outbound.NewCommandID()}
	for range 2 {
		if _, err := payments.Do(t.Context(), stripe.RefundCreate(cmd, url.Values{"charge": {charge}, "amount": {"1"}})); err != nil {
			t.Fatal(err)
		}
	}
	_, err = payments.Do(t.Context(), stripe.RefundCreate(cmd, url.Values{"charge": {charge}, "amount": {"2"}}))
	if !errors.Is(err, outbound.ErrFingerprintConflict) {
		t.Fatalf("another amount under one command: %v, want a conflict", err)
	}
	fake.Inject(providertest.Fault{Kind: providertest.DropAfterApply, Operation: "refund.create", Times: 9})
	_, err = payments.Do(t.Context(), stripe.RefundCreate(outbound.Command{ID: outbound.NewCommandID()}, url.Values{"charge": {charge}, "amount": {"1"}}))
	if !errors.Is(err, outbound.ErrUncertain) {
		t.Fatalf("lost answers: %v, want uncertain", err)
	}
	reconciler, err := outbound.NewReconciler(nil, payments)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := reconciler.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}

	answer := httptest.NewRecorder()
	metrics.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), "GET", "/metrics", nil))
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	series := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		if m := regexp.MustCompile(`^(samekey_\w+)\{(.*)\}`).FindStringSubmatch(line); m != nil {
			for _, label := range regexp.MustCompile(`(\w+)="`).FindAllStringSubmatch(m[2], -1) {
				if !slices.Contains(series[m[1]], label[1]) {
					series[m[1]] = append(series[m[1]], label[1])
				}
			}
		}
	}
	return series
}

// documented are the metrics of docs/telemetry.md: Prometheus' name, and the
// attributes as Prometheus writes them.
func documented(t *testing.T) map[string][]string {
	t.Helper()
	row := regexp.MustCompile("^\\| `samekey\\.[a-z0-9._]+` \\| `(samekey_\\w+)` \\|[^|]*\\|([^|]*)\\|")
	all := map[string][]string{}
	for line := range strings.Lines(read(t, "telemetry.md")) {
		if m := row.FindStringSubmatch(line); m != nil {
			all[m[1]] = []string{"samekey_provider"}
			for _, a := range regexp.MustCompile("`(samekey\\.[a-z.]+)`").FindAllStringSubmatch(m[2], -1) {
				all[m[1]] = append(all[m[1]], strings.ReplaceAll(a[1], ".", "_"))
			}
		}
	}
	if len(all) < 10 {
		t.Fatalf("docs/telemetry.md has %d metrics", len(all))
	}
	return all
}

func read(t *testing.T, name ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{"..", "..", "docs"}, name...)...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// R15, R26: what Prometheus reads is what docs/telemetry.md says.
func TestDocumentedNamesAreScraped(t *testing.T) {
	t.Parallel()
	docs := documented(t)
	got := scraped(t)
	for name, labels := range got {
		base := name
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			base = strings.TrimSuffix(base, suffix)
		}
		known, ok := docs[base]
		if !ok {
			t.Errorf("docs/telemetry.md does not tell of %s", name)
		}
		for _, label := range labels {
			if label != "le" && !strings.HasPrefix(label, "otel_scope_") && !slices.Contains(known, label) {
				t.Errorf("docs/telemetry.md does not tell of %s{%s}", name, label)
			}
		}
	}
	for _, name := range []string{"samekey_calls_total", "samekey_call_duration_seconds_bucket", "samekey_became_uncertain_total", "samekey_uncertain", "samekey_uncertain_age_p95_seconds", "samekey_review"} {
		if got[name] == nil {
			t.Errorf("Prometheus reads no %s, only %v", name, slices.Sorted(maps.Keys(got)))
		}
	}
}

// R26: the dashboard and the alerts name what exists, and only that.
func TestDashboardAndAlertsNameWhatExists(t *testing.T) {
	t.Parallel()
	docs := documented(t)
	name := regexp.MustCompile(`samekey_[a-z0-9_]+`)
	for _, file := range []string{"samekey-dashboard.json", "samekey-alerts.yaml"} {
		text := read(t, "monitoring", file)
		found := 0
		for _, n := range name.FindAllString(text, -1) {
			isLabel := slices.ContainsFunc(slices.Collect(maps.Values(docs)), func(labels []string) bool { return slices.Contains(labels, n) })
			if _, ok := docs[strings.TrimSuffix(n, "_bucket")]; !ok && !isLabel {
				t.Errorf("%s names %s, which does not exist", file, n)
			}
			found++
		}
		if found < 7 {
			t.Errorf("%s names %d series", file, found)
		}
	}
}

// R26: the first row of the dashboard shows its four figures.
func TestDashboardBeginsWithFourFigures(t *testing.T) {
	t.Parallel()
	var board struct {
		Panels []struct {
			Title   string `json:"title"`
			GridPos struct {
				Y int `json:"y"`
			} `json:"gridPos"`
		} `json:"panels"`
	}
	if err := json.Unmarshal([]byte(read(t, "monitoring", "samekey-dashboard.json")), &board); err != nil {
		t.Fatal(err)
	}
	var first []string
	for _, p := range board.Panels {
		if p.GridPos.Y == 0 {
			first = append(first, p.Title)
		}
	}
	want := []string{"Replay rate", "Payload mismatches, 24 h", "Leases expired, 24 h", "Age of uncertain records, p95"}
	if !slices.Equal(first, want) {
		t.Errorf("first row shows %q, want %q", first, want)
	}
}
