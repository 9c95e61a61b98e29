package httpadapter

import (
	"cmp"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-6b5e302b/samekey/outbound"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

// canonicalVersion is the version of Canonical that this build writes and reads.
const canonicalVersion = 1

// Canonical writes what a message means. Version 1 is, each value with its
// length before it:
//
//   - the method, the origin where it is not the base URL's, and the path;
//   - the decoded query and form fields, sorted by name, the values of one name
//     in their order; where the row calls a list unordered, sorted too;
//   - JSON by RFC 8785, unordered arrays sorted;
//   - multipart parts by name, without their boundary, and any other body whole;
//   - the body's media type, and conditions (If-Match and the like) among the
//     frozen headers, which change what is executed.
//
// Other headers do not count: an SDK's update that changes the version header,
// or how much of the object it wants back (Prefer), is the same intent. Neither
// do the key, credentials, volatile fields and security codes, and sensitive
// fields only if sensitive is true. An object that held nothing else is as good
// as none, and so is an empty body, or {} for one.
func (a *Adapter) Canonical(w io.Writer, version int, op rs.Operation, m outbound.Message, sensitive bool) error {
	if version != canonicalVersion {
		return fmt.Errorf("%s: canonical version %d is not known to this build", op.Name, version)
	}
	var r read
	if err := a.read(op, m, &r); err != nil {
		return fmt.Errorf("%s: %w", op.Name, err)
	}
	r.leaveOut(op.Volatile)
	r.leaveOut(op.Codes)
	if !sensitive {
		r.leaveOut(op.Sensitive)
	}
	r.leaveOut(a.neverStored(op))
	c := canonical{w: w, pending: make([]byte, 0, canonicalChunk)}
	c.line("samekey canonical 1")
	c.line("method", op.Method)
	c.line("target", r.origin, normalPath(r.path))
	c.pairs("query", r.query, op.Unordered)
	for _, f := range r.header {
		if strings.HasPrefix(f.Name, "If-") {
			c.line("header", f.Name, f.Value)
		}
	}
	c.content(&r.content, op.Unordered)
	c.flush()
	if c.err != nil {
		return fmt.Errorf("%s: %w", op.Name, c.err)
	}
	return nil
}

func (r *read) leaveOut(places []rs.Place) {
	for _, place := range places {
		r.content.drop(place)
		switch place.Kind {
		case rs.InJSON:
			prune(r.content.tree, pointer(place.Name))
		case rs.InForm:
			r.query = withoutField(r.query, place.Name)
		case rs.InHeader:
			r.header = slices.DeleteFunc(r.header, func(f outbound.Field) bool { return strings.EqualFold(f.Name, place.Name) })
		}
	}
}

// normalPath escapes every segment in one way.
func normalPath(path string) string {
	if isPlain(path) {
		return path
	}
	steps := segments(path)
	for i, s := range steps {
		steps[i] = url.PathEscape(s)
	}
	return strings.Join(steps, "/")
}

// canonicalChunk is how many bytes of text are gathered before they are written.
const canonicalChunk = 256

// canonical writes lines of length-prefixed values, so that no two messages
// share their text. The first error stops it.
type canonical struct {
	w       io.Writer
	pending []byte // its capacity stays
	err     error
}

func (c *canonical) line(name string, values ...string) {
	gather(c, name)
	for _, v := range values {
		c.value(v)
	}
	gather(c, "\n")
}

// bytes is line with one more value, the last, which is not copied.
func (c *canonical) bytes(name string, last []byte, values ...string) {
	gather(c, name)
	for _, v := range values {
		c.value(v)
	}
	c.length(len(last))
	gather(c, last)
	gather(c, "\n")
}

func (c *canonical) value(v string) {
	c.length(len(v))
	gather(c, v)
}

func (c *canonical) length(n int) {
	var digits [20]byte
	gather(c, " ")
	gather(c, strconv.AppendInt(digits[:0], int64(n), 10))
	gather(c, ":")
}

// gather adds text, a chunk at a time however long it is.
func gather[T string | []byte](c *canonical, text T) {
	for len(text) > 0 {
		n := copy(c.pending[len(c.pending):cap(c.pending)], text)
		c.pending, text = c.pending[:len(c.pending)+n], text[n:]
		if len(c.pending) == cap(c.pending) {
			c.flush()
		}
	}
}

func (c *canonical) flush() {
	if c.err == nil {
		_, c.err = c.w.Write(c.pending)
	}
	c.pending = c.pending[:0]
}

// pairs sorts pairs in place.
func (c *canonical) pairs(name string, pairs []pair, unordered []rs.Place) {
	for _, place := range unordered {
		if place.Kind == rs.InForm {
			unorderList(pairs, place.Name)
		}
	}
	sortPairs(pairs)
	for _, p := range pairs {
		c.line(name, p.name, p.value)
	}
}

func (c *canonical) content(body *content, unordered []rs.Place) {
	switch body.kind {
	case formContent:
		if len(body.form) > 0 {
			c.line("type", body.mediaType)
		}
		c.pairs("form", body.form, unordered)
	case jsonContent:
		c.json(body, unordered)
	case multipartContent:
		c.line("type", body.mediaType)
		parts := slices.Clone(body.parts)
		slices.SortStableFunc(parts, func(x, y part) int { return cmp.Compare(x.name, y.name) })
		for _, p := range parts {
			c.bytes("part", p.body, p.name, p.filename, p.mediaType)
		}
	case otherContent:
		c.line("type", body.mediaType)
		c.bytes("body", body.raw)
	}
}

func (c *canonical) json(body *content, unordered []rs.Place) {
	if object, ok := body.tree.(map[string]any); ok && len(object) == 0 {
		return
	}
	for _, place := range unordered {
		if place.Kind == rs.InJSON && c.err == nil {
			c.err = sortArrays(body.tree, pointer(place.Name))
		}
	}
	text, err := canonicalJSON(body.tree)
	if c.err == nil {
		c.err = err
	}
	c.line("type", body.mediaType)
	c.bytes("json", text)
}
