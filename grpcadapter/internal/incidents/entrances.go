package incidents

import (
	"errors"
	"net/http"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/seed-6b5e302b/samekey/grpcadapter"
	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/outbound/carriers"
	"github.com/seed-6b5e302b/samekey/outbound/graphqladapter"
	"github.com/seed-6b5e302b/samekey/outbound/httpadapter"
	"github.com/seed-6b5e302b/samekey/providers/ietf"
	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

const (
	operation = "incident.create"
	window    = 24 * time.Hour
	handbook  = "https://incidents.test/handbook"
)

var fact = rs.Fact{States: "keys are kept for 24 hours", URL: handbook, Read: "2026-12-01", Grade: rs.Documented}

// REST is the carrier that goes to POST /v1/incidents.
func REST(base string) carriers.Carrier {
	row := rs.Operation{
		Name: operation, Class: rs.Object, Method: http.MethodPost, Path: "/v1/incidents",
		Keys: []rs.Place{rs.Header("Idempotency-Key")}, Window: window, Resend: rs.Original,
		Facts: []rs.Fact{fact},
	}
	adapter := ietf.New(httpadapter.Config{
		Provider: "incidents", Account: "eu", Mode: "test", BaseURL: base, Operations: []rs.Operation{row},
	}, nil)
	return carriers.Carrier{Name: "rest", Adapter: adapter, Encode: carriers.Body}
}

// GraphQL is the carrier that goes to POST /graphql.
func GraphQL(base string) carriers.Carrier {
	create := graphqladapter.Mutation{
		Row:      graphqladapter.Operation(operation, "createIncident", "idempotencyKey", window, fact),
		Document: "mutation Open($input: CreateIncidentInput!) { createIncident(input: $input) { id status alert service severity } }",
		Errors: map[string]outbound.Code{
			"BAD_USER_INPUT": outbound.ErrRejected, "GRAPHQL_VALIDATION_FAILED": outbound.ErrRejected,
			"KEY_IN_FLIGHT": outbound.ErrInFlight, "KEY_REUSED": outbound.ErrFingerprintConflict,
		},
	}
	create.Row.Class = rs.Object
	adapter := graphqladapter.New(httpadapter.Config{
		Provider: "incidents", Account: "eu", Mode: "test", BaseURL: base,
	}, nil, create)
	return carriers.Carrier{Name: "graphql", Adapter: adapter, Encode: create.Encode, Decode: create.Decode}
}

// Method is the gRPC method, whose key is a field of the request.
func Method(types Types) grpcadapter.Method {
	create := grpcadapter.Method{
		Row:     grpcadapter.Operation(operation, Create, rs.Custom("idempotency_key"), window, fact),
		Request: types.CreateRequest, Response: types.Incident,
		Applied: func(response proto.Message) outbound.Verdict {
			return outbound.Verdict{Effect: outbound.EffectApplied, ExternalRef: Text(response, "id"), ObjectStatus: Text(response, "status")}
		},
		Errors:  map[codes.Code]outbound.Code{codes.InvalidArgument: outbound.ErrRejected, codes.ResourceExhausted: outbound.ErrRateLimited},
		Reasons: map[string]outbound.Code{"KEY_IN_FLIGHT": outbound.ErrInFlight, "KEY_REUSED": outbound.ErrFingerprintConflict},
	}
	create.Row.Class = rs.Object
	return create
}

// GRPC is the carrier that goes to the gRPC method.
func GRPC(conn grpc.ClientConnInterface, types Types) carriers.Carrier {
	create := Method(types)
	adapter := grpcadapter.New(grpcadapter.Config{
		Provider: "incidents", Account: "eu", Mode: "test", Conn: conn, Methods: []grpcadapter.Method{create},
	})
	return carriers.Carrier{
		Name: "grpc", Adapter: adapter,
		Encode: func(op rs.Operation, parameters []byte) (outbound.Message, error) {
			request := create.Request.ProtoReflect().New().Interface()
			if err := protojson.Unmarshal(parameters, request); err != nil {
				return outbound.Message{}, errors.New("the parameters are no CreateRequest") // its error quotes them
			}
			call := create.Call(outbound.Command{}, request)
			return call.Message, call.Err
		},
		Decode: func(_ rs.Operation, a *outbound.Answer) ([]byte, error) {
			response := create.Response.ProtoReflect().New().Interface()
			if err := proto.Unmarshal(a.Body, response); err != nil {
				return nil, err
			}
			return protojson.Marshal(response)
		},
	}
}

// Adapter puts entrances together, the preferred one first. shared is the source which
// shows that they remember keys together; nil: it is not known.
func Adapter(shared *rs.Fact, ways ...carriers.Carrier) *carriers.Adapter {
	return carriers.New(carriers.Config{Carriers: ways, SharedKeys: shared})
}

// CommandOf is the command of an alert: whoever handles the alert, and however often,
// names the same intent (R30).
func CommandOf(alertID string) outbound.Command {
	return outbound.Command{ID: "alert-" + alertID}
}
