package fakeincident

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
)

const maxBody = 1 << 20 // bytes of a request

// Handler serves POST /v1/incidents, with the key in the header Idempotency-Key, and
// POST /graphql, with the key in the field idempotencyKey of the mutation's input.
func (s *Service) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/incidents", s.rest)
	mux.HandleFunc("POST /graphql", s.graphql)
	return mux
}

func (s *Service) rest(w http.ResponseWriter, r *http.Request) {
	var alert Alert
	if !read(w, r, &alert) {
		return
	}
	incident, lost, err := s.Open(REST, r.Header.Get("Idempotency-Key"), alert)
	switch {
	case lost:
		panic(http.ErrAbortHandler) // closes the connection without an answer
	case errors.Is(err, ErrInFlight):
		write(w, http.StatusConflict, map[string]string{"code": "in_flight"})
	case errors.Is(err, ErrMismatch):
		write(w, http.StatusUnprocessableEntity, map[string]string{"code": "key_reused"})
	case err != nil:
		write(w, http.StatusBadRequest, map[string]string{"code": "invalid"})
	default:
		write(w, http.StatusCreated, incident)
	}
}

// graphql knows one mutation. Every answer to a request that it can read has status
// 200, an error's too.
func (s *Service) graphql(w http.ResponseWriter, r *http.Request) {
	var request struct {
		Query     string
		Variables struct {
			Input struct {
				Alert
				IdempotencyKey string
			}
		}
	}
	if !read(w, r, &request) {
		return
	}
	if !strings.Contains(request.Query, "createIncident") {
		writeError(w, http.StatusBadRequest, "GRAPHQL_VALIDATION_FAILED")
		return
	}
	input := request.Variables.Input
	incident, lost, err := s.Open(GraphQL, input.IdempotencyKey, input.Alert)
	switch {
	case lost:
		panic(http.ErrAbortHandler)
	case errors.Is(err, ErrInFlight):
		writeError(w, http.StatusOK, "KEY_IN_FLIGHT")
	case errors.Is(err, ErrMismatch):
		writeError(w, http.StatusOK, "KEY_REUSED")
	case err != nil:
		writeError(w, http.StatusOK, "BAD_USER_INPUT")
	default:
		write(w, http.StatusOK, map[string]any{"data": map[string]any{"createIncident": incident}})
	}
}

func read(w http.ResponseWriter, r *http.Request, into any) bool {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil || json.Unmarshal(body, into) != nil {
		write(w, http.StatusBadRequest, map[string]string{"code": "unreadable"})
		return false
	}
	return true
}

func writeError(w http.ResponseWriter, status int, code string) {
	write(w, status, map[string]any{
		"data":   nil,
		"errors": []any{map[string]any{"message": "not done", "extensions": map[string]string{"code": code}}},
	})
}

func write(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // a client that is gone reads nothing
}
