package stripe

import (
	"maps"
	"slices"
)

// object is a Stripe object, or a part of one.
type object = map[string]any

// state is what one account in one mode holds. The engine's lock guards it.
type state struct {
	index  map[string]object   // by id
	byKind map[string][]object // in order of creation
	meters map[string]int64    // meter event identifiers and their times
}

func newState() *state {
	return &state{index: map[string]object{}, byKind: map[string][]object{}, meters: map[string]int64{}}
}

func (s *state) add(o object) {
	kind := text(o, "object")
	s.index[text(o, "id")] = o
	s.byKind[kind] = append(s.byKind[kind], o)
}

// remove takes an object away. Its id stays known with what replaces it.
func (s *state) remove(o, instead object) {
	kind, id := text(o, "object"), text(o, "id")
	s.byKind[kind] = slices.DeleteFunc(s.byKind[kind], func(e object) bool { return text(e, "id") == id })
	s.index[id] = instead
}

// get returns an object of a kind, or nil.
func (s *state) get(kind, id string) object {
	o := s.index[id]
	if o == nil || text(o, "object") != kind || o["deleted"] == true {
		return nil
	}
	return o
}

// expand replaces the id at path by its object, in a copy.
func (s *state) expand(o object, path []string) object {
	name := path[0]
	out := maps.Clone(o)
	switch v := out[name].(type) {
	case string:
		if found, ok := s.index[v]; ok {
			if len(path) > 1 {
				found = s.expand(found, path[1:])
			}
			out[name] = found
		}
	case object:
		if len(path) > 1 {
			out[name] = s.expand(v, path[1:])
		}
	case []object:
		if len(path) > 1 {
			items := make([]object, len(v))
			for i, e := range v {
				items[i] = s.expand(e, path[1:])
			}
			out[name] = items
		}
	}
	return out
}

// text returns a string member, "" for null and for anything else.
func text(o object, name string) string {
	s, _ := o[name].(string)
	return s
}

// whole returns an integer member.
func whole(o object, name string) int64 {
	n, _ := o[name].(int64)
	return n
}

// list wraps objects that belong to another one.
func list(url string, items []object) object {
	if items == nil {
		items = []object{}
	}
	return object{"object": "list", "data": items, "has_more": false, "url": url}
}

// part returns an object inside another one, never nil.
func part(o object, name string) object {
	p, _ := o[name].(object)
	return p
}
