package readme_test

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// The worked table of docs/sizing.md is what the page's formulas make of its measured
// figures.
func TestSizingIsComputed(t *testing.T) {
	t.Parallel()
	page := strings.Join(read(t, "../../docs/sizing.md"), "\n")
	number := func(pattern string) float64 {
		m := regexp.MustCompile(pattern).FindStringSubmatch(page)
		if m == nil {
			t.Fatalf("the page has no %q", pattern)
		}
		return parsed(t, m[1])
	}
	var (
		bare       = number(`days of evidence × (\d+) \+ days of replay × \(settled`)
		bareSQLite = number(`days of evidence × (\d+) \+ days of replay × \(settled − 600`)
		settled    = number(`\| 1 KB \| [\d,]+–([\d,]+) \|`)
		inSQLite   = number(`\| 1 KB \|.*\| ([\d,]+) \|`)
		logOfCall  = number(`\| 1 KB \| [\d,–]+ \| [\d,]+ \| \d+ \| ([\d,]+) \|`)
		logAfter   = number(`log of a call \+ (\d+) \+ 110`) + 110
		speed      = number(`purging at ([\d,]+) a second`)
		replay     = number(`sealed answers of 1 KB, (\d+) days of replay`)
	)
	rows := regexp.MustCompile(`(?m)^\| ([\d,]+) \| ([\d.]+) \| ([\d.,]+) \| ([\d,]+) \| (.+?) \| (.+?) \| (.+?) \| (\d+) (s|min) \| (.+?) \|$`).FindAllStringSubmatch(page, -1)
	if len(rows) != 4 {
		t.Fatalf("the worked table has %d rows, want 4", len(rows))
	}
	for _, row := range rows {
		calls := parsed(t, row[1])
		near(t, row[1]+": mean", parsed(t, row[2]), calls/86400)
		near(t, row[1]+": peak", parsed(t, row[3]), calls/86400*10)
		near(t, row[1]+": records", parsed(t, row[4]), calls*400)
		near(t, row[1]+": bytes", sized(t, row[5]), calls*(400*bare+replay*(settled-bare)))
		near(t, row[1]+": bytes of 90 days", sized(t, row[6]), calls*(90*bare+replay*(settled-bare)))
		near(t, row[1]+": log", sized(t, row[7]), calls*(logOfCall+logAfter))
		seconds := parsed(t, row[8]) * map[string]float64{"s": 1, "min": 60}[row[9]]
		near(t, row[1]+": purging", seconds, 2*calls/speed)
		if calls < 1e7 {
			near(t, row[1]+": SQLite", sized(t, row[10]), calls*(400*bareSQLite+replay*(inSQLite-bareSQLite)))
		}
	}
}

// near allows for what a reader rounds.
func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 0.05*want && math.Abs(got-want) > 0.06 {
		t.Errorf("%s: the page has %v, computed %.4g", what, got, want)
	}
}

func parsed(t *testing.T, text string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(strings.ReplaceAll(text, ",", ""), 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// sized reads a size as 3.4 GB, in bytes.
func sized(t *testing.T, text string) float64 {
	t.Helper()
	var v float64
	var unit string
	if _, err := fmt.Sscanf(text, "%g %s", &v, &unit); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	factor, known := map[string]float64{"MB": 1e6, "GB": 1e9, "TB": 1e12}[unit]
	if !known {
		t.Fatalf("%q has an unknown unit", text)
	}
	return v * factor
}
