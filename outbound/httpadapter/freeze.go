package httpadapter

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/seed-6b5e302b/samekey/outbound"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

const maxHeader = 64 << 10 // bytes of names and values, of a request and of a stored answer

// anyKey has the length of a derived key.
const anyKey = "000000000000000000000000000000000000"

// read is a caller's message, checked and without what does not belong to it:
// credentials, key, trace headers.
type read struct {
	location
	query    []pair
	header   []outbound.Field // Sorted by canonical name.
	content  content
	stripped bool // The key or a credential stood in the body.
}

// read checks a message for its row, and reads it into r.
func (a *Adapter) read(op rs.Operation, m outbound.Message, r *read) (err error) {
	if r.location, err = a.locate(m.Target); err != nil {
		return err
	}
	if m.Method != op.Method || !follows(op.Path, r.path) {
		return fmt.Errorf("the request is no %s %s", op.Method, op.Path)
	}
	if r.query, err = parsePairs(r.location.query); err != nil {
		return err
	}
	if r.header, err = a.keep(op, m.Header); err != nil {
		return err
	}
	if r.content, err = readContent(fieldValue(r.header, "Content-Type"), m.Body); err != nil {
		return err
	}
	for _, place := range a.neverStored(op) {
		if place.Kind == rs.InForm {
			r.query = withoutField(r.query, place.Name)
			r.location.query = string(joinPairs(r.query))
		}
		if r.content.fills(place) {
			r.content.drop(place)
			r.stripped = true
		}
	}
	return nil
}

// keep returns the headers that are frozen, in one order.
func (a *Adapter) keep(op rs.Operation, header []outbound.Field) ([]outbound.Field, error) {
	kept := make([]outbound.Field, 0, len(header)+len(op.Marks)+len(a.cfg.Defaults))
	size := 0
	for _, f := range header {
		name := http.CanonicalHeaderKey(f.Name)
		if !a.frozen[name] && !isMark(op, name) || isKey(op, name) {
			continue
		}
		if hasControl(f.Value) {
			return nil, fmt.Errorf("the header %s holds a control character", name)
		}
		if size += len(name) + len(f.Value); size > maxHeader {
			return nil, fmt.Errorf("the headers have more than %d bytes", maxHeader)
		}
		kept = append(kept, outbound.Field{Name: name, Value: strings.Trim(f.Value, " \t")})
	}
	slices.SortStableFunc(kept, func(x, y outbound.Field) int { return cmp.Compare(x.Name, y.Name) })
	return kept, nil
}

// hasControl reports whether a header's value holds what would end it.
func hasControl(value string) bool {
	return strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f })
}

// notInName reports whether r cannot stand in a header's name. Source: RFC 9110,
// section 5.6.2.
func notInName(r rune) bool {
	letter := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
	return !letter && !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
}

func isKey(op rs.Operation, name string) bool  { return holdsHeader(op.Keys, name) }
func isMark(op rs.Operation, name string) bool { return holdsHeader(op.Marks, name) }

func holdsHeader(places []rs.Place, name string) bool {
	return slices.ContainsFunc(places, func(p rs.Place) bool {
		return p.Kind == rs.InHeader && http.CanonicalHeaderKey(p.Name) == name
	})
}

func fieldValue(header []outbound.Field, name string) string {
	for _, f := range header {
		if strings.EqualFold(f.Name, name) {
			return f.Value
		}
	}
	return ""
}

// Freeze fixes what is sent at every delivery: the target on one of the
// adapter's hosts, the frozen headers, the defaults among them, and the body with
// its marks. The key is
// taken out where the caller put one. A body whose marks all found their place
// taken, and that held no key, keeps its bytes. Its length is bounded by
// outbound.Options.MaxBody.
func (a *Adapter) Freeze(op rs.Operation, m outbound.Message, mark string) (outbound.Frozen, error) {
	var r read
	if err := a.read(op, m, &r); err != nil {
		return outbound.Frozen{}, fmt.Errorf("%s: %w", op.Name, err)
	}
	for _, f := range a.cfg.Defaults {
		if fieldValue(r.header, f.Name) == "" {
			r.setHeader(http.CanonicalHeaderKey(f.Name), f.Value)
		}
	}
	sensitive := r.sensitive(op)
	body, err := a.stamp(op, &r, mark)
	if err != nil {
		return outbound.Frozen{}, fmt.Errorf("%s: %w", op.Name, err)
	}
	frozen := outbound.Message{Method: op.Method, Target: r.target(), Header: r.header, Body: body}
	if checker, ok := a.codec.(Checker); ok {
		if err := checker.Check(op, frozen); err != nil {
			return outbound.Frozen{}, err
		}
	}
	if op.HasKey() { // a message that cannot carry its key is refused before it is stored
		if _, err := a.placeKey(op, frozen, anyKey); err != nil {
			return outbound.Frozen{}, err
		}
	}
	if a.cfg.BodyCredential != nil { // nor one that cannot carry its credential
		if _, err := placeInBody(fieldValue(r.header, "Content-Type"), body, a.cfg.BodyCredential.Place, anyKey); err != nil {
			return outbound.Frozen{}, fmt.Errorf("%s: the credential found no place: %w", op.Name, err)
		}
	}
	return outbound.Frozen{Message: frozen, Sensitive: sensitive}, nil
}

// sensitive reports whether the message fills a sensitive field or a code.
func (r *read) sensitive(op rs.Operation) bool {
	fills := func(place rs.Place) bool {
		return r.content.fills(place) || place.Kind == rs.InForm && fieldFilled(r.query, place.Name)
	}
	return slices.ContainsFunc(op.Sensitive, fills) || slices.ContainsFunc(op.Codes, fills)
}

// stamp puts the mark where the row says and the caller left the place free, and
// returns the body.
func (a *Adapter) stamp(op rs.Operation, r *read, mark string) ([]byte, error) {
	changed := r.stripped
	for _, place := range op.Marks {
		if mark == "" || place.Kind == rs.InCustom {
			continue
		}
		changed = r.stampAt(place, mark) || changed
	}
	body, err := r.content.bytes(changed)
	if err != nil {
		return nil, err
	}
	for _, place := range op.Marks {
		if mark == "" || place.Kind != rs.InCustom {
			continue
		}
		marker, ok := a.codec.(Marker)
		if !ok {
			return nil, errors.New("the codec places no marks")
		}
		if body, err = marker.PlaceMark(op, body, mark); err != nil {
			return nil, err
		}
	}
	return body, nil
}

func (r *read) stampAt(place rs.Place, mark string) (changed bool) {
	if place.Kind == rs.InHeader {
		if fieldValue(r.header, place.Name) == "" {
			r.setHeader(http.CanonicalHeaderKey(place.Name), mark)
		}
		return false
	}
	was := r.content.kind
	r.content.become(place.Kind)
	switch {
	case place.Kind == rs.InForm && r.content.kind == formContent:
		r.content.form, changed = withMark(r.content.form, place.Name, mark)
	case place.Kind == rs.InJSON && r.content.kind == jsonContent:
		r.content.tree, changed = with(r.content.tree, pointer(place.Name), mark, false)
	}
	if was == noContent && !changed {
		r.content.kind = noContent
	}
	if changed && fieldValue(r.header, "Content-Type") == "" {
		r.setHeader("Content-Type", r.content.mediaType)
	}
	return changed
}

func (r *read) setHeader(name, value string) {
	r.header = slices.DeleteFunc(r.header, func(f outbound.Field) bool { return f.Name == name })
	r.header = append(r.header, outbound.Field{Name: name, Value: value})
	slices.SortStableFunc(r.header, func(x, y outbound.Field) int { return cmp.Compare(x.Name, y.Name) })
}
