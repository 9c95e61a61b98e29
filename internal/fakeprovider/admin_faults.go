package fakeprovider

import (
	"bytes"
	"encoding/json"
	"time"
)

// faultJSON is a Fault on the wire. It has no Until: POST /release ends waits.
type faultJSON struct {
	Kind       Kind     `json:"kind"`
	Operation  string   `json:"operation,omitempty"`
	Times      int      `json:"times,omitempty"`
	Skip       int      `json:"skip,omitempty"`
	Chance     float64  `json:"chance,omitempty"`
	Delay      duration `json:"delay,omitempty"`
	RetryAfter duration `json:"retry_after,omitempty"`
	Applied    bool     `json:"applied,omitempty"`
	Stored     bool     `json:"stored,omitempty"`
	Running    bool     `json:"running,omitempty"`
	Location   string   `json:"location,omitempty"`
	Size       int64    `json:"size,omitempty"`
}

func toJSON(f Fault) faultJSON {
	return faultJSON{f.Kind, f.Operation, f.Times, f.Skip, f.Chance, duration(f.Delay), duration(f.RetryAfter),
		f.Applied, f.Stored, f.Running, f.Location, f.Size}
}

func (j faultJSON) fault() Fault {
	return Fault{Kind: j.Kind, Operation: j.Operation, Times: j.Times, Skip: j.Skip, Chance: j.Chance,
		Delay: time.Duration(j.Delay), RetryAfter: time.Duration(j.RetryAfter),
		Applied: j.Applied, Stored: j.Stored, Running: j.Running, Location: j.Location, Size: j.Size}
}

// oneOrMore is one T or an array of them.
type oneOrMore[T any] []T

func (l *oneOrMore[T]) UnmarshalJSON(b []byte) error {
	if bytes.HasPrefix(bytes.TrimSpace(b), []byte("[")) {
		return strict(b, (*[]T)(l))
	}
	*l = make([]T, 1)
	return strict(b, &(*l)[0])
}

// strict decodes as decode does, for a type that reads itself.
func strict(b []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

type armedJSON struct {
	Armed int `json:"armed"`
}

func (f *Fake) adminInject(_ adminCall, list oneOrMore[faultJSON]) (armedJSON, error) {
	faults := make([]Fault, len(list))
	for i, j := range list {
		faults[i] = j.fault()
	}
	if err := f.Inject(faults...); err != nil {
		return armedJSON{}, err
	}
	return armedJSON{len(f.Faults())}, nil
}

func (f *Fake) adminFaults(adminCall, none) ([]faultJSON, error) {
	list := f.Faults()
	out := make([]faultJSON, len(list))
	for i, x := range list {
		out[i] = toJSON(x)
	}
	return out, nil
}

func (f *Fake) adminClearFaults(adminCall, none) (none, error) {
	f.ClearFaults()
	return none{}, nil
}

func (f *Fake) adminRelease(adminCall, none) (none, error) {
	f.Release()
	return none{}, nil
}
