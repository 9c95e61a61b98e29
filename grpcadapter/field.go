package grpcadapter

import (
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// fieldsAt returns the fields that a dotted path names, outermost first; nil if there
// are none. Only the last one may be a list or a map.
func fieldsAt(shape protoreflect.MessageDescriptor, path string) (fields []protoreflect.FieldDescriptor) {
	for name := range strings.SplitSeq(path, ".") {
		if shape == nil {
			return nil
		}
		f := shape.Fields().ByName(protoreflect.Name(name))
		if f == nil {
			return nil
		}
		fields = append(fields, f)
		shape = nil
		if f.Kind() == protoreflect.MessageKind && f.Cardinality() != protoreflect.Repeated {
			shape = f.Message()
		}
	}
	return fields
}

// isText reports whether path names one field of text.
func isText(shape protoreflect.MessageDescriptor, path string) bool {
	fields := fieldsAt(shape, path)
	if fields == nil {
		return false
	}
	last := fields[len(fields)-1]
	return last.Kind() == protoreflect.StringKind && last.Cardinality() != protoreflect.Repeated
}

// holder returns the message that holds the path's last field, and the field. Without
// fill it is nil where a message on the way is not set.
func holder(m protoreflect.Message, path string, fill bool) (protoreflect.Message, protoreflect.FieldDescriptor) {
	fields := fieldsAt(m.Descriptor(), path)
	if fields == nil {
		return nil, nil
	}
	last := len(fields) - 1
	for _, f := range fields[:last] {
		if !m.Has(f) && !fill {
			return nil, nil
		}
		m = m.Mutable(f).Message()
	}
	return m, fields[last]
}

func filled(m protoreflect.Message, path string) bool {
	in, f := holder(m, path, false)
	return in != nil && in.Has(f)
}

// clearAt clears a field, and the message that held nothing else.
func clearAt(m protoreflect.Message, path string) {
	in, f := holder(m, path, false)
	if in == nil || !in.Has(f) {
		return
	}
	in.Clear(f)
	if dot := strings.LastIndexByte(path, '.'); dot > 0 && isEmpty(in) {
		clearAt(m, path[:dot])
	}
}

func isEmpty(m protoreflect.Message) bool {
	empty := len(m.GetUnknown()) == 0
	m.Range(func(protoreflect.FieldDescriptor, protoreflect.Value) bool { empty = false; return false })
	return empty
}

func setAt(m protoreflect.Message, path, value string) {
	if in, f := holder(m, path, true); in != nil {
		in.Set(f, protoreflect.ValueOfString(value))
	}
}
