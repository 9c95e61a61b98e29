package httpadapter

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"strings"

	"github.com/seed-6b5e302b/samekey/outbound"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

// content is a body as its content type says to read it.
type content struct {
	kind      contentKind
	mediaType string
	raw       []byte
	form      []pair // of a form
	tree      any    // of JSON
	parts     []part // of a multipart body
}

type contentKind int

const (
	noContent contentKind = iota
	formContent
	jsonContent
	multipartContent
	otherContent
)

// part is one part of a multipart body.
type part struct {
	name, filename, mediaType string
	body                      []byte
}

// readContent reads a body. An error shows nothing of it.
func readContent(contentType string, body []byte) (content, error) {
	c := content{raw: body}
	var params map[string]string
	switch contentType {
	case "":
	case formType, jsonType: // as nearly all say it
		c.mediaType = contentType
	default:
		var err error
		if c.mediaType, params, err = mime.ParseMediaType(contentType); err != nil {
			return content{}, errors.New("the Content-Type header is malformed")
		}
	}
	isJSON := c.mediaType == jsonType || strings.HasSuffix(c.mediaType, "+json")
	var err error
	switch {
	case len(body) == 0 || isJSON && len(bytes.TrimSpace(body)) == 0:
		c.kind = noContent
	case isJSON:
		c.kind = jsonContent
		c.tree, err = parseJSON(body)
	case c.mediaType == formType:
		c.kind = formContent
		c.form, err = parsePairs(string(body))
	case strings.HasPrefix(c.mediaType, "multipart/"):
		c.kind = multipartContent
		c.parts, err = readParts(body, params["boundary"])
	default:
		c.kind = otherContent
	}
	return c, err
}

func readParts(body []byte, boundary string) ([]part, error) {
	malformed := errors.New("the multipart body is malformed")
	if boundary == "" {
		return nil, malformed
	}
	r := multipart.NewReader(bytes.NewReader(body), boundary)
	var parts []part
	for {
		p, err := r.NextRawPart()
		if err == io.EOF { //nolint:errorlint // a wrapped EOF is a body that was cut off
			return parts, nil
		}
		if err != nil {
			return nil, malformed
		}
		b, err := io.ReadAll(p)
		if err != nil {
			return nil, malformed
		}
		parts = append(parts, part{p.FormName(), p.FileName(), p.Header.Get("Content-Type"), b})
	}
}

// become makes an empty body one that can hold a place of kind k.
func (c *content) become(k rs.PlaceKind) {
	isJSON := c.mediaType == jsonType || strings.HasSuffix(c.mediaType, "+json")
	switch {
	case c.kind != noContent:
	case k == rs.InJSON && (c.mediaType == "" || isJSON):
		c.kind, c.tree = jsonContent, map[string]any{}
		if c.mediaType == "" {
			c.mediaType = jsonType
		}
	case k == rs.InForm && (c.mediaType == "" || c.mediaType == formType):
		c.kind, c.mediaType = formContent, formType
	}
}

// drop takes out what stands at place.
func (c *content) drop(place rs.Place) {
	switch {
	case place.Kind == rs.InJSON && c.kind == jsonContent:
		c.tree, _ = without(c.tree, pointer(place.Name))
	case place.Kind == rs.InForm && c.kind == formContent:
		c.form = withoutField(c.form, place.Name)
	case place.Kind == rs.InForm && c.kind == multipartContent:
		kept := c.parts[:0]
		for _, p := range c.parts {
			if !covers(place.Name, p.name) {
				kept = append(kept, p)
			}
		}
		c.parts = kept
	}
}

// fills reports whether a value stands at place.
func (c *content) fills(place rs.Place) bool {
	switch {
	case place.Kind == rs.InJSON && c.kind == jsonContent:
		return filled(c.tree, pointer(place.Name))
	case place.Kind == rs.InForm && c.kind == formContent:
		return fieldFilled(c.form, place.Name)
	case place.Kind == rs.InForm && c.kind == multipartContent:
		for _, p := range c.parts {
			if len(p.body) > 0 && covers(place.Name, p.name) {
				return true
			}
		}
	}
	return false
}

// value is the text that stands at place; "" if none does.
func (c *content) value(place rs.Place) string {
	switch {
	case place.Kind == rs.InJSON && c.kind == jsonContent:
		s, _ := at(c.tree, place.Name).(string)
		return s
	case place.Kind == rs.InForm && c.kind == formContent:
		for _, p := range c.form {
			if p.name == place.Name {
				return p.value
			}
		}
	}
	return ""
}

// bytes is the body as it is sent. What was not changed keeps its bytes.
func (c *content) bytes(changed bool) ([]byte, error) {
	if !changed {
		return c.raw, nil
	}
	switch c.kind {
	case jsonContent:
		return encodeTree(c.tree)
	case formContent:
		return joinPairs(c.form), nil
	}
	return c.raw, nil
}

// placeKey puts the key into a body; headers are set at each attempt.
func (a *Adapter) placeKey(op rs.Operation, m outbound.Message, key string) ([]byte, error) {
	body := m.Body
	for _, place := range op.Keys {
		var err error
		switch place.Kind {
		case rs.InForm, rs.InJSON:
			body, err = placeInBody(fieldValue(m.Header, "Content-Type"), body, place, key)
		case rs.InCustom:
			placer, ok := a.codec.(KeyPlacer)
			if !ok {
				return nil, fmt.Errorf("%s: the codec places no keys", op.Name)
			}
			body, err = placer.PlaceKey(op, body, key)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: the key found no place: %w", op.Name, err)
		}
	}
	return body, nil
}

func placeInBody(contentType string, body []byte, place rs.Place, key string) ([]byte, error) {
	c, err := readContent(contentType, body)
	if err != nil {
		return nil, err
	}
	c.become(place.Kind)
	placed := false
	switch {
	case place.Kind == rs.InForm && c.kind == formContent:
		c.form = append(withoutField(c.form, place.Name), newPair(place.Name, key))
		placed = true
	case place.Kind == rs.InJSON && c.kind == jsonContent:
		c.tree, placed = with(c.tree, pointer(place.Name), key, true)
	}
	if !placed {
		return nil, errors.New("the body has no such place")
	}
	return c.bytes(true)
}
