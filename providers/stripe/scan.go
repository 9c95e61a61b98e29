package stripe

import "encoding/json"

// decode reads the body of an answer as encoding/json does. Most are plain, and are
// read in one pass, without the work of a decoder for any type.
func (a *answer) decode(body []byte) error {
	if a.scan(body) {
		return nil
	}
	*a = answer{}
	return json.Unmarshal(body, a)
}

// scan reads a plain answer: an object whose names are in lower case, whose fields
// that count are strings without escapes, small numbers or null, and that holds no
// error. It reports whether body is one; then a is what encoding/json makes of it.
func (a *answer) scan(body []byte) bool {
	s := scanner{text: body}
	s.space()
	if !s.take('{') {
		return false
	}
	for first := true; ; first = false {
		s.space()
		if first && s.take('}') {
			break
		}
		name, ok := s.plain()
		if !ok || !isLower(name) {
			return false
		}
		s.space()
		if !s.take(':') {
			return false
		}
		s.space()
		if !a.field(&s, name) {
			return false
		}
		s.space()
		if s.take('}') {
			break
		}
		if !s.take(',') {
			return false
		}
	}
	s.space()
	return s.at == len(s.text)
}

// field reads the value of one field.
func (a *answer) field(s *scanner, name []byte) bool {
	var to *string
	switch string(name) {
	case "id":
		to = &a.ID
	case "object":
		to = &a.Object
	case "status":
		to = &a.Status
	case "failure_code":
		to = &a.FailureCode
	case "failure_reason":
		to = &a.FailureReason
	case "amount_received":
		return s.word("null") || s.small(&a.AmountReceived)
	case "last_payment_error", "last_setup_error", "error":
		return s.word("null")
	default:
		return s.skip(maxDepth)
	}
	if s.word("null") {
		return true
	}
	text, ok := s.plain()
	if ok {
		*to = string(text)
	}
	return ok
}

// maxDepth is how deep a plain answer nests; encoding/json reads deeper ones.
const maxDepth = 32

// isLower reports whether a name can only be meant as it stands: encoding/json does
// not heed its case.
func isLower(name []byte) bool {
	for _, c := range name {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' {
			return false
		}
	}
	return true
}

// scanner walks over JSON text. Its methods report whether what they look for comes
// next, and then stand behind it. Where they do not the text is not read on.
type scanner struct {
	text []byte
	at   int
}

func (s *scanner) space() {
	for s.at < len(s.text) {
		switch s.text[s.at] {
		case ' ', '\n', '\t', '\r':
			s.at++
		default:
			return
		}
	}
}

func (s *scanner) take(c byte) bool {
	if s.at < len(s.text) && s.text[s.at] == c {
		s.at++
		return true
	}
	return false
}

func (s *scanner) word(w string) bool {
	if end := s.at + len(w); end <= len(s.text) && string(s.text[s.at:end]) == w {
		s.at = end
		return true
	}
	return false
}

// plain is a string of ASCII without escapes.
func (s *scanner) plain() ([]byte, bool) {
	if !s.take('"') {
		return nil, false
	}
	for i, c := range s.text[s.at:] {
		switch {
		case c == '"':
			text := s.text[s.at : s.at+i]
			s.at += i + 1
			return text, true
		case c < ' ' || c == '\\' || c > '~':
			return nil, false
		}
	}
	return nil, false
}

// str is any string.
func (s *scanner) str() bool {
	if !s.take('"') {
		return false
	}
	for s.at < len(s.text) {
		c := s.text[s.at]
		s.at++
		switch {
		case c == '"':
			return true
		case c < ' ' || c == '\\' && !s.escape():
			return false
		}
	}
	return false
}

// escape is what follows a backslash.
func (s *scanner) escape() bool {
	if s.at == len(s.text) {
		return false
	}
	c := s.text[s.at]
	s.at++
	switch c {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return true
	case 'u':
		for range 4 {
			if s.at == len(s.text) || !isHex(s.text[s.at]) {
				return false
			}
			s.at++
		}
		return true
	}
	return false
}

func isHex(c byte) bool { return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F' }

// digits takes digits and returns how many.
func (s *scanner) digits() int {
	from := s.at
	for s.at < len(s.text) && '0' <= s.text[s.at] && s.text[s.at] <= '9' {
		s.at++
	}
	return s.at - from
}

// whole is the part of a number before its fraction.
func (s *scanner) whole() bool {
	s.take('-')
	return s.take('0') || s.digits() > 0
}

// number is any number.
func (s *scanner) number() bool {
	if !s.whole() || s.take('.') && s.digits() == 0 {
		return false
	}
	if s.take('e') || s.take('E') {
		if !s.take('+') {
			s.take('-')
		}
		return s.digits() > 0
	}
	return true
}

// small is a whole number from zero that fits into n for sure.
func (s *scanner) small(n *int64) bool {
	from := s.at
	if s.at < len(s.text) && s.text[s.at] == '-' || !s.whole() || s.at-from > 18 {
		return false
	}
	*n = 0
	for _, c := range s.text[from:s.at] {
		*n = 10**n + int64(c-'0')
	}
	return true
}

// skip is any value that nests at most so deep.
func (s *scanner) skip(depth int) bool {
	if s.at == len(s.text) || depth == 0 {
		return false
	}
	switch s.text[s.at] {
	case '"':
		return s.str()
	case '{':
		s.at++
		return s.list('}', func() bool {
			if !s.str() {
				return false
			}
			s.space()
			if !s.take(':') {
				return false
			}
			s.space()
			return s.skip(depth - 1)
		})
	case '[':
		s.at++
		return s.list(']', func() bool { return s.skip(depth - 1) })
	case 'n':
		return s.word("null")
	case 't':
		return s.word("true")
	case 'f':
		return s.word("false")
	}
	return s.number()
}

// list is items with commas between them, up to end.
func (s *scanner) list(end byte, item func() bool) bool {
	s.space()
	if s.take(end) {
		return true
	}
	for {
		s.space()
		if !item() {
			return false
		}
		s.space()
		if s.take(end) {
			return true
		}
		if !s.take(',') {
			return false
		}
	}
}
