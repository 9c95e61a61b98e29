// Package incidents is the gRPC entrance of the fake incident service.
//
//	service Incidents {
//	  rpc Create(CreateRequest) returns (Incident);
//	}
//	message CreateRequest {
//	  string idempotency_key = 1;
//	  string alert = 2;
//	  string service = 3;
//	  string severity = 4;
//	}
//	message Incident {
//	  string id = 1;
//	  string status = 2;
//	  string alert = 3;
//	  string service = 4;
//	  string severity = 5;
//	}
//
// Its messages are made from this description when a program starts, so that there is
// no generated code.
package incidents

import (
	"context"
	"errors"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/seed-6b5e302b/samekey/internal/fakeincident"
)

// Create is the method's full name.
const Create = "/incidents.v1.Incidents/Create"

// Types are the service's messages.
type Types struct{ CreateRequest, Incident *dynamicpb.Message }

// NewTypes makes the service's messages. They have no values.
func NewTypes() (Types, error) {
	file, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{
		Name: proto.String("incidents/v1/incidents.proto"), Package: proto.String("incidents.v1"), Syntax: proto.String("proto3"),
		MessageType: []*descriptorpb.DescriptorProto{
			message("CreateRequest", "idempotency_key", "alert", "service", "severity"),
			message("Incident", "id", "status", "alert", "service", "severity"),
		},
	}, nil)
	if err != nil {
		return Types{}, err
	}
	made := func(name protoreflect.Name) *dynamicpb.Message {
		return dynamicpb.NewMessage(file.Messages().ByName(name))
	}
	return Types{made("CreateRequest"), made("Incident")}, nil
}

// message describes a message of text fields, numbered in order.
func message(name string, fields ...string) *descriptorpb.DescriptorProto {
	m := &descriptorpb.DescriptorProto{Name: &name}
	for i, field := range fields {
		m.Field = append(m.Field, &descriptorpb.FieldDescriptorProto{
			Name: &field, Number: proto.Int32(int32(i + 1)),
			Type:  descriptorpb.FieldDescriptorProto_TYPE_STRING.Enum(),
			Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(),
		})
	}
	return m
}

// Set sets a field of text.
func Set(m proto.Message, field, value string) {
	r := m.ProtoReflect()
	r.Set(r.Descriptor().Fields().ByName(protoreflect.Name(field)), protoreflect.ValueOfString(value))
}

// Text returns a field of text.
func Text(m proto.Message, field string) string {
	r := m.ProtoReflect()
	return r.Get(r.Descriptor().Fields().ByName(protoreflect.Name(field))).String()
}

// NewServer returns a gRPC server that is the service's entrance. A key in the
// metadata idempotency-key is not read.
func NewServer(s *fakeincident.Service, types Types, opts ...grpc.ServerOption) *grpc.Server {
	server := grpc.NewServer(opts...)
	server.RegisterService(&grpc.ServiceDesc{
		ServiceName: strings.Split(Create, "/")[1],
		Methods: []grpc.MethodDesc{{MethodName: "Create", Handler: func(_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			request := types.CreateRequest.New().Interface()
			if err := decode(request); err != nil {
				return nil, err
			}
			return create(s, types, request)
		}}},
	}, nil)
	return server
}

func create(s *fakeincident.Service, types Types, request proto.Message) (proto.Message, error) {
	incident, lost, err := s.Open(fakeincident.GRPC, Text(request, "idempotency_key"), fakeincident.Alert{
		Alert: Text(request, "alert"), Service: Text(request, "service"), Severity: Text(request, "severity"),
	})
	switch {
	case lost:
		return nil, status.Error(codes.Unavailable, "the connection to the backend broke")
	case errors.Is(err, fakeincident.ErrInFlight):
		return nil, detailed(codes.Aborted, "KEY_IN_FLIGHT")
	case errors.Is(err, fakeincident.ErrMismatch):
		return nil, detailed(codes.AlreadyExists, "KEY_REUSED")
	case err != nil:
		return nil, status.Error(codes.InvalidArgument, "the request is not valid")
	}
	response := types.Incident.New().Interface()
	for field, value := range map[string]string{
		"id": incident.ID, "status": incident.Status, "alert": incident.Alert,
		"service": incident.Service, "severity": incident.Severity,
	} {
		Set(response, field, value)
	}
	return response, nil
}

func detailed(code codes.Code, reason string) error {
	s, err := status.New(code, "not done").WithDetails(&errdetails.ErrorInfo{Reason: reason, Domain: "incidents"})
	if err != nil {
		return err
	}
	return s.Err()
}
