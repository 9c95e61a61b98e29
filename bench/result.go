package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"
)

// result is everything that a run found out, as it stands in results.json.
type result struct {
	Date         time.Time
	Mode         string
	Machine      machine
	Measurements []measurement
	Ratios       []ratio
	Figures      []figure
}

// machine is where it was measured.
type machine struct {
	Processor  string
	Cores      int
	Kernel     string
	Go         string
	PostgreSQL string `json:",omitempty"`
}

// measurement is what one contender did at one number of callers.
type measurement struct {
	Work      string
	Contender string
	Callers   int
	Unit      string // Of the next four.
	Rounds    []float64
	Median    float64
	Low       float64
	High      float64
	P50       float64 `json:",omitempty"` // Milliseconds, as the next two.
	P99       float64 `json:",omitempty"`
	Worst     float64 `json:",omitempty"`
}

func (m measurement) String() string {
	s := fmt.Sprintf("%s %s (%s to %s)", number(m.Median), m.Unit, number(m.Low), number(m.High))
	if m.Worst > 0 {
		s += fmt.Sprintf(", p50 %s p99 %s worst %s ms", number(m.P50), number(m.P99), number(m.Worst))
	}
	return s
}

// ratio is one comparison's outcome: the median of its rounds, each of which
// compares what was measured within seconds.
type ratio struct {
	Name    string
	Callers int
	Value   float64
	Low     float64
	High    float64
	Unit    string  `json:",omitempty"` // Where it is a difference, not a quotient.
	Want    float64 `json:",omitempty"` // The bound that it should keep; 0 for none.
	AtMost  bool    `json:",omitempty"` // The bound is an upper one.
	Kept    bool
}

// figure is a single value.
type figure struct {
	Name  string
	Value float64
	Unit  string
	Note  string `json:",omitempty"`
}

// atMost are the ratios whose bound is an upper one; 0 callers stand for any
// number.
var bounds = map[string]map[int]struct {
	want   float64
	atMost bool
}{
	"ledger_vs_pgbench":      {1: {0.80, false}, 8: {0.75, false}, 32: {1.5, false}, 64: {2.3, false}},
	"call_vs_dbos":           {1: {2.5, false}, 64: {8, false}},
	"sqlite_group_vs_single": {1: {0.7, false}, 64: {6, false}},
	"do_overhead":            {1: {12, true}},
	"do_allocations":         {1: {90, true}},
	"dropin_vs_stripego":     {1: {1.5, true}},
	"inflight_10000":         {10_000: {400, true}},
	"purge_batches":          {8: {0.8, false}},
	"purge_partition":        {8: {0.9, false}},
	"growth_10m_vs_10k":      {8: {0.9, false}},
	"growth_wal":             {8: {1.3, true}},
	"growth_bytes":           {64: {1100, true}},
	"growth_hot":             {64: {0.98, false}},
	"growth_bytes_at_once":   {64: {1100, true}},
	"growth_hot_at_once":     {64: {0.98, false}},
	"latency_connections":    {1: {0, true}, 64: {0, true}},
}

func newResult(mode string) *result {
	return &result{Date: time.Now().UTC().Truncate(time.Second), Mode: mode, Machine: thisMachine()}
}

func (r *result) measured(m measurement) { r.Measurements = append(r.Measurements, m) }

// ratio notes a comparison's outcome and prints its line.
func (r *result) ratio(name string, callers int, unit string, rounds ...float64) {
	x := ratio{Name: name, Callers: callers, Unit: unit}
	x.Value, x.Low, x.High = spread(rounds)
	x.Kept = true
	if b, bound := bounds[name][callers]; bound {
		x.Want, x.AtMost = b.want, b.atMost
		x.Kept = x.Value >= b.want
		if b.atMost {
			x.Kept = x.Value <= b.want
		}
	}
	r.Ratios = append(r.Ratios, x)
	fmt.Printf("ratio %s %d %s\n", name, callers, number(x.Value))
}

func (r *result) figure(name string, value float64, unit, note string) {
	r.Figures = append(r.Figures, figure{name, value, unit, note})
	fmt.Printf("figure %s %s %s\n", name, number(value), unit)
}

// print prints the tables.
func (r *result) print(w io.Writer) {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	defer tw.Flush() //nolint:errcheck // of a terminal
	fmt.Fprintln(tw, "\nwork\tcallers\tcontender\tmedian\tlow\thigh\tunit\tp50 ms\tp99 ms\tworst ms")
	for _, m := range r.Measurements {
		fmt.Fprintf(tw, "%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", m.Work, m.Callers, m.Contender,
			number(m.Median), number(m.Low), number(m.High), m.Unit, number(m.P50), number(m.P99), number(m.Worst))
	}
	fmt.Fprintln(tw, "\nratio\tcallers\tvalue\tlow\thigh\twanted\t")
	for _, x := range r.Ratios {
		fmt.Fprintf(tw, "%s\t%d\t%s\t%s\t%s\t%s\t\n", x.Name, x.Callers, strings.TrimSpace(number(x.Value)+" "+x.Unit), number(x.Low), number(x.High), x.wanted())
	}
	if len(r.Figures) > 0 {
		fmt.Fprintln(tw, "\nfigure\tvalue\tunit\t")
	}
	for _, f := range r.Figures {
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\n", f.Name, number(f.Value), f.Unit, f.Note)
	}
}

// wanted says which bound a ratio should keep, and whether it does.
func (x ratio) wanted() string {
	if _, bound := bounds[x.Name][x.Callers]; !bound {
		return ""
	}
	sign, kept := "≥", "kept"
	if x.AtMost {
		sign = "≤"
	}
	if !x.Kept {
		kept = "missed"
	}
	return fmt.Sprintf("%s %s, %s", sign, number(x.Want), kept)
}

// number prints three digits that count.
func number(v float64) string {
	switch {
	case v == 0:
		return "0"
	case v >= 1000 || v <= -1000:
		return fmt.Sprintf("%.0f", v)
	case v >= 100 || v <= -100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10 || v <= -10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

// write writes results.json, the plots, and the figures of the page beside the
// folder. An empty folder's name writes nothing.
func (r *result) write(folder string) error {
	if folder == "" {
		return nil
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	text, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, "results.json"), append(text, '\n'), 0o644); err != nil {
		return err
	}
	if err := r.plot(folder); err != nil {
		return err
	}
	return r.quote(folder + ".md")
}

func thisMachine() machine {
	m := machine{Processor: "unknown", Cores: runtime.NumCPU(), Kernel: runtime.GOOS, Go: runtime.Version()}
	if release, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.Kernel += " " + strings.TrimSpace(string(release))
	}
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return m
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if name, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(name) == "model name" {
			m.Processor = cmp.Or(strings.TrimSpace(value), m.Processor)
			break
		}
	}
	return m
}
