package stripe

import (
	"strconv"
	"strings"
)

// searchOf returns the handler of GET /v1/…/search. New objects are found only
// after Config.SearchLag.
func searchOf(kind string) handler {
	return func(x *exec) (object, *failure) {
		query, limit := x.need("query"), x.limit()
		start, _ := x.number("page")
		if x.err != nil {
			return nil, x.err
		}
		clauses, ok := parseQuery(query)
		if !ok || start < 0 {
			return nil, invalid("query", "The search query or page is malformed.")
		}
		items := []object{}
		var next any
		seen := int64(0)
		for _, o := range x.s.byKind[kind] {
			if x.tx.Now.Unix()-whole(o, "created") < int64(x.d.cfg.SearchLag.Seconds()) || !matches(o, clauses) {
				continue
			}
			if seen++; seen <= start {
				continue
			}
			if len(items) == limit {
				next = strconv.FormatInt(seen-1, 10)
				break
			}
			items = append(items, o)
		}
		return object{"object": "search_result", "url": x.path, "has_more": next != nil, "next_page": next, "data": items}, nil
	}
}

// clause is one condition of a search query.
type clause struct {
	field    string
	metadata bool
	op       string
	value    string
	negated  bool
}

const maxClauses = 10

// parseQuery reads conditions joined by AND, such as
// metadata['order']:'7' AND status:'succeeded' AND created>1700000000.
func parseQuery(q string) ([]clause, bool) {
	var out []clause
	for rest := strings.TrimSpace(q); rest != ""; {
		c, left, ok := parseClause(rest)
		if !ok || len(out) == maxClauses {
			return nil, false
		}
		out = append(out, c)
		if rest = strings.TrimSpace(left); rest == "" {
			break
		}
		var joined bool
		if len(rest) > 4 && strings.EqualFold(rest[:4], "AND ") {
			rest, joined = strings.TrimSpace(rest[4:]), true
		}
		if !joined {
			return nil, false
		}
	}
	return out, len(out) > 0
}

func parseClause(s string) (c clause, rest string, ok bool) {
	if after, found := strings.CutPrefix(s, "-"); found {
		c.negated, s = true, after
	}
	i := strings.IndexAny(s, "[:=<>~")
	if i <= 0 {
		return c, "", false
	}
	c.field, s = strings.TrimSpace(s[:i]), s[i:]
	if strings.HasPrefix(s, "[") {
		if c.field != "metadata" {
			return c, "", false
		}
		c.metadata = true
		if c.field, s, ok = quoted(strings.TrimSpace(s[1:])); !ok {
			return c, "", false
		}
		s = strings.TrimSpace(s)
		if !strings.HasPrefix(s, "]") {
			return c, "", false
		}
		s = strings.TrimSpace(s[1:])
	}
	for _, op := range []string{">=", "<=", ":", "=", ">", "<", "~"} {
		if after, found := strings.CutPrefix(s, op); found {
			c.op, s = op, strings.TrimSpace(after)
			break
		}
	}
	if c.op == "" || s == "" {
		return c, "", false
	}
	if s[0] == '\'' || s[0] == '"' {
		c.value, rest, ok = quoted(s)
		return c, rest, ok
	}
	c.value, rest, _ = strings.Cut(s, " ")
	return c, rest, c.value != ""
}

// quoted reads a text in single or double quotes; a backslash escapes.
func quoted(s string) (value, rest string, ok bool) {
	if s == "" || s[0] != '\'' && s[0] != '"' {
		return "", "", false
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s):
			i++
			b.WriteByte(s[i])
		case s[i] == s[0]:
			return b.String(), s[i+1:], true
		default:
			b.WriteByte(s[i])
		}
	}
	return "", "", false
}

func matches(o object, clauses []clause) bool {
	for _, c := range clauses {
		if c.holds(o) == c.negated {
			return false
		}
	}
	return true
}

func (c clause) holds(o object) bool {
	var v any = o[c.field]
	if c.metadata {
		v = part(o, "metadata")[c.field]
	}
	switch v := v.(type) {
	case string:
		if c.op == "~" {
			return strings.Contains(strings.ToLower(v), strings.ToLower(c.value))
		}
		return (c.op == ":" || c.op == "=") && v == c.value
	case int64:
		want, err := strconv.ParseInt(c.value, 10, 64)
		if err != nil {
			return false
		}
		switch c.op {
		case ">":
			return v > want
		case ">=":
			return v >= want
		case "<":
			return v < want
		case "<=":
			return v <= want
		case ":", "=":
			return v == want
		}
	}
	return v == nil && strings.EqualFold(c.value, "null")
}
