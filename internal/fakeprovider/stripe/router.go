package stripe

import (
	"net/http"
	"slices"
	"strings"
)

// route is one endpoint.
type route struct {
	method string
	path   string // "{id}" stands for any one segment
	op     string
	do     func(*exec) (object, *failure)
	// params are the names of its top-level parameters. Nil is not checked.
	params []string
}

func (r *route) write() bool { return r.method != http.MethodGet }

func (r *route) creates() bool {
	return r.method == http.MethodPost && strings.HasSuffix(r.op, ".create")
}

// unknown refuses a parameter that the endpoint does not have.
func (r *route) unknown(p params) *failure {
	if r.params == nil {
		return nil
	}
	names := make([]string, 0, len(p))
	for name := range p {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if name != "expand" && !slices.Contains(r.params, name) {
			shown := name
			if len(shown) > 64 {
				shown = shown[:64]
			}
			return &failure{status: http.StatusBadRequest, typ: invalidRequest, code: "parameter_unknown", param: shown,
				message: "Received unknown parameter: " + shown + "."}
		}
	}
	return nil
}

// router finds routes by method and path; a literal segment wins over "{id}".
type router struct{ root *node }

type node struct {
	literal map[string]*node
	any     *node
	routes  map[string]*route // by method
}

func newNode() *node { return &node{literal: map[string]*node{}, routes: map[string]*route{}} }

func newRouter(all []route) *router {
	r := &router{root: newNode()}
	for i := range all {
		n := r.root
		for _, seg := range segments(all[i].path) {
			next := n.literal[seg]
			if seg == "{id}" {
				next = n.any
			}
			if next == nil {
				next = newNode()
				if seg == "{id}" {
					n.any = next
				} else {
					n.literal[seg] = next
				}
			}
			n = next
		}
		n.routes[all[i].method] = &all[i]
	}
	return r
}

// find returns the route and the segments that its wildcards stand for.
func (r *router) find(method, path string) (*route, []string) {
	return r.root.find(method, segments(path), nil)
}

func (n *node) find(method string, rest, ids []string) (*route, []string) {
	if len(rest) == 0 {
		return n.routes[method], ids
	}
	if next := n.literal[rest[0]]; next != nil {
		if rt, found := next.find(method, rest[1:], ids); rt != nil {
			return rt, found
		}
	}
	if n.any != nil && rest[0] != "" {
		return n.any.find(method, rest[1:], append(ids[:len(ids):len(ids)], rest[0]))
	}
	return nil, nil
}

// maxSegments bounds the work that a hostile path makes.
const maxSegments = 8

func segments(path string) []string {
	return strings.SplitN(strings.Trim(path, "/"), "/", maxSegments)
}
