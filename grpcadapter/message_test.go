package grpcadapter_test

import (
	"bytes"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/seed-6b5e302b/samekey/grpcadapter"
	"github.com/seed-6b5e302b/samekey/grpcadapter/internal/incidents"
	"github.com/seed-6b5e302b/samekey/outbound"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

// file is a method whose request has lists, numbers and nested messages.
func file() grpcadapter.Method {
	return grpcadapter.Method{
		Row: rs.Operation{
			Name: "file.store", Path: "/files.v1.Files/Store", Resend: rs.Original,
			Keys: []rs.Place{rs.Custom("options.go_package")}, Marks: []rs.Place{rs.Custom("package")},
			Volatile: []rs.Place{rs.Custom("syntax")}, Unordered: []rs.Place{rs.Custom("dependency")},
			Facts: []rs.Fact{{States: "test", URL: "https://example.com", Read: "2026-12-01"}},
		},
		Request: &descriptorpb.FileDescriptorProto{}, Response: &descriptorpb.FileDescriptorProto{},
	}
}

// R7, R22, R23: a fingerprint is of what a request means: fields in any order, without
// key and volatile fields, lists in their order unless it does not count.
func TestCanonical(t *testing.T) {
	m := file()
	a := grpcadapter.New(grpcadapter.Config{Provider: "p", Account: "a", Mode: "test", Conn: connect(t, "passthrough:///none"), Methods: []grpcadapter.Method{m}})
	if _, err := a.Profile(); err != nil {
		t.Fatal(err)
	}
	canonical := func(change func(*descriptorpb.FileDescriptorProto)) string {
		request := &descriptorpb.FileDescriptorProto{Name: proto.String("f"), Dependency: []string{"x", "y"}, PublicDependency: []int32{1, 2}}
		change(request)
		var b bytes.Buffer
		if err := a.Canonical(&b, 1, m.Row, m.Call(outbound.Command{ID: "c"}, request).Message, true); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	same := canonical(func(*descriptorpb.FileDescriptorProto) {})
	for name, c := range map[string]struct {
		change func(*descriptorpb.FileDescriptorProto)
		equal  bool
	}{
		"key": {func(f *descriptorpb.FileDescriptorProto) {
			f.Options = &descriptorpb.FileOptions{GoPackage: proto.String("k")}
		}, true},
		"volatile":              {func(f *descriptorpb.FileDescriptorProto) { f.Syntax = proto.String("proto3") }, true},
		"order that does not":   {func(f *descriptorpb.FileDescriptorProto) { f.Dependency = []string{"y", "x"} }, true},
		"order that counts":     {func(f *descriptorpb.FileDescriptorProto) { f.PublicDependency = []int32{2, 1} }, false},
		"another value":         {func(f *descriptorpb.FileDescriptorProto) { f.Name = proto.String("g") }, false},
		"value split otherwise": {func(f *descriptorpb.FileDescriptorProto) { f.Dependency = []string{"xy"} }, false},
		"nested value": {func(f *descriptorpb.FileDescriptorProto) {
			f.Options = &descriptorpb.FileOptions{Deprecated: proto.Bool(true)}
		}, false},
		"nested, beside the key": {func(f *descriptorpb.FileDescriptorProto) {
			f.Options = &descriptorpb.FileOptions{GoPackage: proto.String("k"), Deprecated: proto.Bool(true)}
		}, false},
		"value of another length": {func(f *descriptorpb.FileDescriptorProto) { f.Name = proto.String("ff") }, false},
	} {
		if got := canonical(c.change) == same; got != c.equal {
			t.Errorf("%s: the same request is %v, want %v", name, got, c.equal)
		}
	}
	unknown := m.Call(outbound.Command{ID: "c"}, &descriptorpb.FileDescriptorProto{}).Message
	unknown.Body = []byte{0xf8, 0x3f, 0x01} // field 1023
	if err := a.Canonical(&bytes.Buffer{}, 1, m.Row, unknown, true); err == nil || !strings.Contains(err.Error(), "fields that are not in") {
		t.Errorf("an unknown field: %v", err)
	}
}

// R4, R14: what is stored holds the mark where the place is free, and no key.
func TestFreeze(t *testing.T) {
	m := file()
	a := grpcadapter.New(grpcadapter.Config{
		Provider: "p", Account: "a", Mode: "test", Conn: connect(t, "passthrough:///none"), Methods: []grpcadapter.Method{m}, Frozen: []string{"x-tenant"},
	})
	request := &descriptorpb.FileDescriptorProto{Options: &descriptorpb.FileOptions{GoPackage: proto.String("own-key")}}
	call := m.Call(outbound.Command{ID: "c"}, request)
	call.Message.Header = []outbound.Field{{Name: "X-Tenant", Value: "t"}, {Name: "authorization", Value: "Bearer x"}}
	frozen, err := a.Freeze(m.Row, call.Message, "mark")
	if err != nil {
		t.Fatal(err)
	}
	got := &descriptorpb.FileDescriptorProto{}
	if err := proto.Unmarshal(frozen.Message.Body, got); err != nil || got.GetPackage() != "mark" || got.Options != nil {
		t.Errorf("frozen %v, %v", got, err)
	}
	if h := frozen.Message.Header; len(h) != 1 || h[0] != (outbound.Field{Name: "x-tenant", Value: "t"}) {
		t.Errorf("frozen metadata %v", h)
	}
	request.Package = proto.String("taken")
	frozen, err = a.Freeze(m.Row, m.Call(outbound.Command{ID: "c"}, request).Message, "mark")
	if err != nil || !bytes.Contains(frozen.Message.Body, []byte("taken")) || bytes.Contains(frozen.Message.Body, []byte("mark")) {
		t.Errorf("a taken place: %v", err)
	}
}

// What cannot work is said by Profile and by the call, before anything is sent.
func TestRefusals(t *testing.T) {
	types, err := incidents.NewTypes()
	if err != nil {
		t.Fatal(err)
	}
	conn := connect(t, "passthrough:///none")
	for says, change := range map[string]func(*grpcadapter.Config, *grpcadapter.Method){
		"Config.Conn is required":    func(c *grpcadapter.Config, _ *grpcadapter.Method) { c.Conn = nil },
		"Config.Account is required": func(c *grpcadapter.Config, _ *grpcadapter.Method) { c.Account = "" },
		"no name of plain metadata":  func(c *grpcadapter.Config, _ *grpcadapter.Method) { c.Frozen = []string{"grpc-timeout"} },
		"no full method":             func(_ *grpcadapter.Config, m *grpcadapter.Method) { m.Row.Path = "/Create" },
		"has no HTTP method":         func(_ *grpcadapter.Config, m *grpcadapter.Method) { m.Row.Method = "POST" },
		"no field of text":           func(_ *grpcadapter.Config, m *grpcadapter.Method) { m.Row.Keys = []rs.Place{rs.Custom("key")} },
		"stands in metadata":         func(_ *grpcadapter.Config, m *grpcadapter.Method) { m.Row.Keys = []rs.Place{rs.JSON("/key")} },
		"Config.Find is not set":     func(_ *grpcadapter.Config, m *grpcadapter.Method) { m.Row.Lookup = "by list" },
		"Response are required":      func(_ *grpcadapter.Config, m *grpcadapter.Method) { m.Response = nil },
		"no field (Custom)":          func(_ *grpcadapter.Config, m *grpcadapter.Method) { m.Row.Volatile = []rs.Place{rs.Custom("x.y")} },
	} {
		m := incidents.Method(types)
		cfg := grpcadapter.Config{Provider: "p", Account: "a", Mode: "test", Conn: conn}
		change(&cfg, &m)
		cfg.Methods = []grpcadapter.Method{m}
		if _, err := grpcadapter.New(cfg).Profile(); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
	if call := incidents.Method(types).Call(outbound.Command{ID: "c"}, &descriptorpb.FileDescriptorProto{}); call.Err == nil {
		t.Error("a request of another type makes a call")
	}
}
