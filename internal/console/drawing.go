package console

import (
	"fmt"
	"strings"
	"time"

	"github.com/seed-6b5e302b/samekey/cmd/samekey/explain"
)

// point is one event of a record's timeline, with its number in the drawing.
type point struct {
	explain.Event
	No   int
	lane int
}

// lanes are who moves a record, from top to bottom.
var lanes = []string{"Callers", "Provider", "Reconciler", "People", "Keeping"}

const (
	callers = iota
	provider
	reconciler
	people
	keeping
)

func pointsOf(events []explain.Event) []point {
	points := make([]point, len(events))
	for i, e := range events {
		points[i] = point{e, i + 1, laneOf(e)}
	}
	return points
}

func laneOf(e explain.Event) int {
	switch {
	case e.Person:
		return people
	case e.Who == "reconciler", e.What == "check":
		return reconciler
	}
	switch e.What {
	case "answer", "webhook", "report", "window_ends":
		return provider
	case "purge", "erase", "answer_kept", "evidence_kept":
		return keeping
	}
	return callers
}

// drawing is a timeline as lanes with one step for each event: between two of them
// lie milliseconds or months, so that the steps are equal and the gaps are written.
type drawing struct {
	Width, Height int
	Lanes         []drawnLane
	Marks         []mark
	Gaps          []gap
	Path          string // Through the events.
	Now           int    // Where now is; 0: after all of them.
	LineEnd       int
	Left          int // Earlier events that are not drawn.
	About         string
}

type drawnLane struct {
	Name string
	Y    int
}

type mark struct {
	No, X, Y int
	Ahead    bool
	Title    string
}

type gap struct {
	X    int
	Text string
}

// What is drawn, in pixels.
const (
	maxDrawn   = 40
	laneHeight = 46
	step       = 92
	firstX     = 150
	firstY     = 34
)

// draw draws the latest points.
func draw(points []point) drawing {
	d := drawing{Left: max(0, len(points)-maxDrawn)}
	points = points[d.Left:]
	used := map[int]int{} // Lane to its height.
	for lane, name := range lanes {
		for _, p := range points {
			if _, there := used[lane]; p.lane == lane && !there {
				used[lane] = firstY + len(used)*laneHeight
				d.Lanes = append(d.Lanes, drawnLane{name, used[lane]})
			}
		}
	}
	d.Height = firstY + len(used)*laneHeight
	d.Width = firstX + max(0, len(points)-1)*step + 60
	d.LineEnd = d.Width - 20
	var path strings.Builder
	for i, p := range points {
		x, y := firstX+i*step, used[p.lane]
		d.Marks = append(d.Marks, mark{p.No, x, y, p.Ahead, spaced(p.What) + ", " + explain.Clock(p.At)})
		letter := "L"
		if i == 0 {
			letter = "M"
		} else {
			d.Gaps = append(d.Gaps, gap{x - step/2, "+" + short(p.At.Sub(points[i-1].At))})
			if p.Ahead && !points[i-1].Ahead {
				d.Now = x - step/2
			}
		}
		fmt.Fprintf(&path, "%s%d %d", letter, x, y)
	}
	d.Path = path.String()
	d.About = fmt.Sprintf("%d events in order, one lane for each who moved the record; the table below says the same in words.", len(points))
	return d
}

// short writes the time between two events, also where it is below a second.
func short(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return explain.Span(d)
}
