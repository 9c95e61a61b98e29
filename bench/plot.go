package main

import (
	"fmt"
	"image/color"
	"path/filepath"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// plotted is the work that has a plot.
var plotted = []string{"ledger", "call", "sqlite"}

// of returns the measurements of one kind of work.
func (r *result) of(work string) []measurement {
	return slices.DeleteFunc(slices.Clone(r.Measurements), func(m measurement) bool { return m.Work != work })
}

// plot draws the calls per second of each kind of work that has several
// contenders, as an SVG in folder.
func (r *result) plot(folder string) error {
	for _, work := range plotted {
		rows := r.of(work)
		if len(rows) == 0 {
			continue
		}
		if err := bars(work, rows, filepath.Join(folder, work+".svg")); err != nil {
			return fmt.Errorf("the plot of %s: %w", work, err)
		}
	}
	return nil
}

// palette holds colours that the colour-blind tell apart, after Okabe and Ito.
func palette() []color.Color {
	return []color.Color{
		color.RGBA{0x00, 0x72, 0xb2, 0xff}, color.RGBA{0xe6, 0x9f, 0x00, 0xff},
		color.RGBA{0x00, 0x9e, 0x73, 0xff}, color.RGBA{0xcc, 0x79, 0xa7, 0xff},
	}
}

// bars draws a group of bars for each number of callers.
func bars(title string, rows []measurement, path string) error {
	var names, callers []string
	for _, m := range rows {
		if !slices.Contains(names, m.Contender) {
			names = append(names, m.Contender)
		}
		if n := fmt.Sprint(m.Callers); !slices.Contains(callers, n) {
			callers = append(callers, n)
		}
	}
	p := plot.New()
	p.Title.Text = title + ": calls per second, median"
	p.X.Label.Text = "callers at once"
	p.Y.Min = 0
	p.Legend.Top, p.Legend.Left = true, true
	width := vg.Points(360 / float64(len(callers)*(len(names)+1)))
	for i, name := range names {
		values := make(plotter.Values, len(callers))
		for _, m := range rows {
			if m.Contender == name {
				values[slices.Index(callers, fmt.Sprint(m.Callers))] = m.Median
			}
		}
		bar, err := plotter.NewBarChart(values, width)
		if err != nil {
			return err
		}
		colours := palette()
		bar.Color, bar.LineStyle.Width = colours[i%len(colours)], 0
		bar.Offset = width * vg.Length(float64(i)-float64(len(names)-1)/2)
		p.Add(bar)
		p.Legend.Add(name, bar)
	}
	p.NominalX(callers...)
	p.Y.Max *= 1.35 // room for the legend
	return p.Save(16*vg.Centimeter, 9*vg.Centimeter, path)
}
