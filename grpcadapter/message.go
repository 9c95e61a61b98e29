package grpcadapter

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/seed-6b5e302b/samekey/outbound"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

// canonicalVersion is the version of Canonical that this build writes and reads.
const canonicalVersion = 1

// read is a caller's message, checked and without its key.
func (a *Adapter) read(op rs.Operation, m outbound.Message) (protoreflect.Message, []outbound.Field, error) {
	if m.Method != "" || m.Target != op.Path {
		return nil, nil, fmt.Errorf("the request is no %s", op.Path)
	}
	request := a.methods[op.Name].Request.ProtoReflect().New()
	if err := proto.Unmarshal(m.Body, request.Interface()); err != nil {
		return nil, nil, fmt.Errorf("the body is no %s", request.Descriptor().FullName())
	}
	for _, place := range op.Keys {
		if place.Kind == rs.InCustom {
			clearAt(request, place.Name)
		}
	}
	var kept []outbound.Field
	size := 0
	for _, f := range m.Header {
		name := strings.ToLower(f.Name)
		same := func(n string) bool { return strings.EqualFold(n, name) }
		if !slices.ContainsFunc(a.cfg.Frozen, same) || isKey(op, name) {
			continue
		}
		if strings.ContainsFunc(f.Value, func(r rune) bool { return r < ' ' || r > '~' }) {
			return nil, nil, fmt.Errorf("the metadata %s holds more than printable ASCII", name)
		}
		if size += len(name) + len(f.Value); size > maxMetadata {
			return nil, nil, fmt.Errorf("the metadata has more than %d bytes", maxMetadata)
		}
		kept = append(kept, outbound.Field{Name: name, Value: f.Value})
	}
	slices.SortStableFunc(kept, func(x, y outbound.Field) int { return cmp.Compare(x.Name, y.Name) })
	return request, kept, nil
}

func isKey(op rs.Operation, name string) bool {
	return slices.ContainsFunc(op.Keys, func(p rs.Place) bool { return p.Kind == rs.InHeader && strings.EqualFold(p.Name, name) })
}

// Freeze fixes the request's bytes, with its marks and without its key, and the
// metadata that Config.Frozen names.
func (a *Adapter) Freeze(op rs.Operation, m outbound.Message, mark string) (outbound.Frozen, error) {
	request, header, err := a.read(op, m)
	if err != nil {
		return outbound.Frozen{}, fmt.Errorf("%s: %w", op.Name, err)
	}
	sensitive := slices.ContainsFunc(slices.Concat(op.Sensitive, op.Codes), func(p rs.Place) bool { return filled(request, p.Name) })
	for _, place := range op.Marks {
		switch free := !slices.ContainsFunc(header, func(f outbound.Field) bool { return strings.EqualFold(f.Name, place.Name) }); {
		case mark == "":
		case place.Kind == rs.InCustom && !filled(request, place.Name):
			setAt(request, place.Name, mark)
		case place.Kind == rs.InHeader && free:
			header = append(header, outbound.Field{Name: strings.ToLower(place.Name), Value: mark})
		}
	}
	body, err := marshal(request.Interface())
	if err != nil {
		return outbound.Frozen{}, fmt.Errorf("%s: the request does not encode", op.Name)
	}
	return outbound.Frozen{Message: outbound.Message{Target: op.Path, Header: header, Body: body}, Sensitive: sensitive}, nil
}

// withKey returns the body with the key, where the row puts it there.
func (a *Adapter) withKey(op rs.Operation, body []byte, key string) ([]byte, error) {
	request := a.methods[op.Name].Request.ProtoReflect().New()
	if err := proto.Unmarshal(body, request.Interface()); err != nil {
		return nil, fmt.Errorf("the body is no %s", request.Descriptor().FullName())
	}
	for _, place := range op.Keys {
		if place.Kind == rs.InCustom {
			setAt(request, place.Name, key)
		}
	}
	return marshal(request.Interface())
}

// Canonical writes what a request means. Version 1 is the full method and the fields
// that are set, by number: message and map entries each with its length, maps sorted
// by key, lists in their order unless the row calls them unordered. A field that is
// set to its default is as good as none, unless its presence counts. Metadata does not
// count, nor do the key, volatile fields and security codes, and sensitive fields only
// if sensitive is true. A field that this build's descriptor does not know is an error.
func (a *Adapter) Canonical(w io.Writer, version int, op rs.Operation, m outbound.Message, sensitive bool) error {
	if version != canonicalVersion {
		return fmt.Errorf("%s: canonical version %d is not known to this build", op.Name, version)
	}
	request, _, err := a.read(op, m)
	if err != nil {
		return fmt.Errorf("%s: %w", op.Name, err)
	}
	out := slices.Concat(op.Volatile, op.Codes)
	if !sensitive {
		out = append(out, op.Sensitive...)
	}
	for _, place := range out {
		clearAt(request, place.Name)
	}
	var unordered []string
	for _, place := range op.Unordered {
		unordered = append(unordered, place.Name)
	}
	text := appendBytes([]byte("samekey grpc canonical 1\n"), []byte(op.Path))
	if text, err = appendMessage(text, request, "", unordered); err != nil {
		return fmt.Errorf("%s: %w", op.Name, err)
	}
	_, err = w.Write(text)
	return err
}

func appendBytes(b, part []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(len(part))), part...)
}

func appendMessage(b []byte, m protoreflect.Message, at string, unordered []string) ([]byte, error) {
	if len(m.GetUnknown()) > 0 {
		return nil, fmt.Errorf("the request has fields that are not in %s", m.Descriptor().FullName())
	}
	var fields []protoreflect.FieldDescriptor
	m.Range(func(f protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
		fields = append(fields, f)
		return true
	})
	slices.SortFunc(fields, func(x, y protoreflect.FieldDescriptor) int { return cmp.Compare(x.Number(), y.Number()) })
	for _, f := range fields {
		name := strings.TrimPrefix(at+"."+string(f.Name()), ".")
		value, err := appendField(nil, f, m.Get(f), name, unordered)
		if err != nil {
			return nil, err
		}
		b = appendBytes(binary.AppendUvarint(b, uint64(f.Number())), value)
	}
	return b, nil
}

func appendField(b []byte, f protoreflect.FieldDescriptor, v protoreflect.Value, at string, unordered []string) ([]byte, error) {
	var parts [][]byte
	var failed error
	add := func(f protoreflect.FieldDescriptor, v protoreflect.Value, before []byte) {
		part, err := appendValue(before, f, v, at, unordered)
		failed = errors.Join(failed, err)
		parts = append(parts, part)
	}
	switch {
	case f.IsMap():
		v.Map().Range(func(k protoreflect.MapKey, v protoreflect.Value) bool {
			add(f.MapValue(), v, appendBytes(nil, []byte(k.String())))
			return true
		})
		slices.SortFunc(parts, bytes.Compare)
	case f.IsList():
		for i := range v.List().Len() {
			add(f, v.List().Get(i), nil)
		}
		if slices.Contains(unordered, at) {
			slices.SortFunc(parts, bytes.Compare)
		}
	default:
		return appendValue(b, f, v, at, unordered)
	}
	for _, part := range parts {
		b = appendBytes(b, part)
	}
	return b, failed
}

func appendValue(b []byte, f protoreflect.FieldDescriptor, v protoreflect.Value, at string, unordered []string) ([]byte, error) {
	switch x := v.Interface().(type) {
	case protoreflect.Message:
		return appendMessage(b, x, at, unordered)
	case string:
		return append(b, x...), nil
	case []byte:
		return append(b, x...), nil
	case bool:
		if x {
			return append(b, 1), nil
		}
		return append(b, 0), nil
	case float32:
		return binary.BigEndian.AppendUint64(b, math.Float64bits(float64(x))), nil
	case float64:
		return binary.BigEndian.AppendUint64(b, math.Float64bits(x)), nil
	case protoreflect.EnumNumber:
		return binary.AppendVarint(b, int64(x)), nil
	case int32:
		return binary.AppendVarint(b, int64(x)), nil
	case int64:
		return binary.AppendVarint(b, x), nil
	case uint32:
		return binary.AppendUvarint(b, uint64(x)), nil
	case uint64:
		return binary.AppendUvarint(b, x), nil
	}
	return nil, fmt.Errorf("the field %s is of kind %s, which has no canonical form", at, f.Kind())
}
