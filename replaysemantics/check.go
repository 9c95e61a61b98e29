package replaysemantics

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// keyLength is the length of a derived key in characters.
const keyLength = 36

var (
	nameForm  = regexp.MustCompile(`^[a-z0-9_]+(\.[a-z0-9_]+)+$`)
	tokenForm = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$") // RFC 9110, section 5.6.2
	fieldForm = regexp.MustCompile(`^[_A-Za-z][_0-9A-Za-z]{0,99}$`)
	variable  = regexp.MustCompile(`\{[^{}/]+\}`)
	escape    = regexp.MustCompile(`~([^01]|$)`) // what RFC 6901 does not allow
)

// Check returns an error for every row that cannot work, all of them at once,
// each with the row's name and what to change; nil if there is none. It looks
// for: names and routes that are unusable or given twice, keys that cannot hold
// 36 characters, a Resend without a key or a key without a Resend, unusable
// places, unknown words, and missing facts. outbound.New calls it; authors of
// adapters may call it in a test.
func Check(rows []Operation) error {
	var errs []error
	names, routes := map[string]bool{}, map[string]string{}
	for _, o := range rows {
		for _, wrong := range o.faults() {
			errs = append(errs, fmt.Errorf("operation %q: %s", o.Name, wrong))
		}
		if names[o.Name] {
			errs = append(errs, fmt.Errorf("operation %q: the name stands in two rows; a name is part of every key, give one row another", o.Name))
		}
		names[o.Name] = true
		if o.Path == "" {
			continue
		}
		route := strings.TrimSuffix(o.Method+" "+variable.ReplaceAllString(o.Path, "{}")+" "+o.Selector, " ")
		if first, taken := routes[route]; taken {
			errs = append(errs, fmt.Errorf("operation %q: its route %s is that of %q; a request must lead to one row", o.Name, route, first))
			continue
		}
		routes[route] = o.Name
	}
	return errors.Join(errs...)
}

// Find returns the row with this name, and whether there is one.
func Find(rows []Operation, name string) (Operation, bool) {
	i := slices.IndexFunc(rows, func(o Operation) bool { return o.Name == name })
	if i < 0 {
		return Operation{}, false
	}
	return rows[i], true
}

// faults returns what is wrong with the row taken alone.
func (o Operation) faults() (wrong []string) {
	say := func(bad bool, format string, args ...any) {
		if bad {
			wrong = append(wrong, fmt.Sprintf(format, args...))
		}
	}
	say(!nameForm.MatchString(o.Name), "Name needs the form refund.create: lower-case letters, digits and _, with a dot between words")
	say(o.Method != "" && (!tokenForm.MatchString(o.Method) || o.Method != strings.ToUpper(o.Method)), "Method %q is no HTTP method in upper case", o.Method)
	say(!strings.HasPrefix(o.Path, "/") || strings.ContainsAny(variable.ReplaceAllString(o.Path, ""), "{} ?#"),
		"Path needs the form /v1/refunds/{id}, with no query, no blank and a name in each pair of braces")

	say(o.Selector != "" && !fieldForm.MatchString(o.Selector), "Selector %q is no name of a field", o.Selector)
	say(!known(o.Class, Money, Object, Notification), "Class %q is unknown", o.Class)
	say(!known(o.Resend, Never, Original, Latest, LatestOrRunAgain, ConflictWithLink), "Resend %q is unknown", o.Resend)
	say(!known(o.Failures, RunAgain, Stored), "Failures %q is unknown", o.Failures)

	say(o.KeyMax != 0 && o.KeyMax < keyLength, "KeyMax is %d, but a key has %d characters: use another place for the key, or none", o.KeyMax, keyLength)
	say(o.Window < 0 || o.Horizon < 0, "Window and Horizon may not be negative")
	if o.HasKey() {
		say(o.Resend == Never, "it has Keys and no Resend: state what the same key gives, or take the Keys away")
		say(o.ResendAfterAbsence, "ResendAfterAbsence is for rows without Keys: with a key a proof of absence is enough")
	} else {
		say(o.Resend != Never, "it has a Resend and no Keys: state where the key goes")
		say(o.KeyMax != 0 || o.Window != 0 || o.Failures != RunAgain, "KeyMax, Window and Failures need Keys")
		say(o.ResendAfterAbsence && o.Lookup == "", "ResendAfterAbsence needs a Lookup that can prove absence")
	}

	say(o.Absence != "" && o.Lookup == "", "Absence needs a Lookup: state how the effect is found")

	for _, list := range o.places() {
		for i, p := range list.places {
			say(p.fault() != "", "%s[%d]: %s", list.name, i, p.fault())
			say(slices.Contains(list.places[:i], p), "%s[%d] is there twice", list.name, i)
			say(p.Quoted && (list.name != "Keys" || p.Kind != InHeader), "%s[%d]: only a key's header is Quoted", list.name, i)
		}
	}
	for i, e := range o.ConclusiveEventTypes {
		say(strings.TrimSpace(e) == "", "ConclusiveEventTypes[%d] is blank", i)
	}
	say(len(o.Facts) == 0, "Facts are missing: state where the row was read, and when")
	for i, f := range o.Facts {
		say(f.fault() != "", "Facts[%d]: %s", i, f.fault())
	}
	return wrong
}

type placeList struct {
	name   string
	places []Place
}

func (o Operation) places() []placeList {
	return []placeList{
		{"Keys", o.Keys}, {"Marks", o.Marks}, {"Volatile", o.Volatile},
		{"Unordered", o.Unordered}, {"Sensitive", o.Sensitive}, {"Codes", o.Codes},
	}
}

// fault says what is wrong with the place, "" if nothing is.
func (p Place) fault() string {
	switch p.Kind {
	case InHeader:
		if !tokenForm.MatchString(p.Name) {
			return fmt.Sprintf("%q is no header name", p.Name)
		}
	case InJSON:
		if !strings.HasPrefix(p.Name, "/") || escape.MatchString(p.Name) {
			return fmt.Sprintf("%q is no JSON pointer: it begins with a slash and knows only the escapes ~0 and ~1", p.Name)
		}
	case InForm, InCustom:
		if strings.TrimSpace(p.Name) == "" {
			return "a place needs a name"
		}
	default:
		return fmt.Sprintf("the kind of place %q is unknown: use Header, Form, JSON or Custom", p.Kind)
	}
	return ""
}

// fault says what is wrong with the fact, "" if nothing is.
func (f Fact) fault() string {
	switch {
	case strings.TrimSpace(f.States) == "":
		return "States is missing: say what the source shows"
	case !strings.HasPrefix(f.URL, "https://"):
		return "URL needs the https address of the source"
	case !known(f.Grade, Unverified, Reported, Documented, Specified, SourceCode, Wire, Measured):
		return fmt.Sprintf("Grade %q is unknown", f.Grade)
	}
	if _, err := time.Parse(time.DateOnly, f.Read); err != nil {
		return "Read needs the day it was read, as 2026-11-30"
	}
	return ""
}

func known[T comparable](word T, words ...T) bool { return slices.Contains(words, word) }
