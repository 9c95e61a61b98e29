package paypal

import (
	"net/http"
	"slices"
	"strings"

	"github.com/seed-6b5e302b/samekey/internal/fakeprovider"
)

// The error names of PayPal's APIs.
const (
	invalidRequest = "INVALID_REQUEST"
	unprocessable  = "UNPROCESSABLE_ENTITY"
)

// failure is an answer that is no success.
type failure struct {
	status  int
	name    string
	message string
	details []object
	raw     object // the whole body, where it has another shape: OAuth
}

func (f *failure) answer(debugID string) fakeprovider.Answer {
	if f.raw != nil {
		return fakeprovider.Answer{Status: f.status, Body: encode(f.raw)}
	}
	o := object{"name": f.name, "message": f.message, "debug_id": debugID, "links": []object{{
		"href": "https://developer.paypal.com/api/rest/responses/", "rel": "information_link", "method": "GET"}}}
	if len(f.details) > 0 {
		o["details"] = f.details
	}
	return fakeprovider.Answer{Status: f.status, Body: encode(o)}
}

// detail describes one issue. A value is never repeated: it may be secret.
func detail(issue, field, description string) object {
	o := object{"issue": issue, "description": description}
	if field == "" {
		return o
	}
	o["field"], o["location"] = field, "query"
	switch {
	case strings.HasPrefix(field, "/"):
		o["location"] = "body"
	case strings.HasPrefix(field, "PayPal-"):
		o["location"] = "header"
	}
	return o
}

// issue is a failure with one detail: 400 for a malformed request, else 422.
func issue(name, field, description string) *failure {
	f := &failure{details: []object{detail(name, field, description)}}
	if is400(name) {
		f.status, f.name = http.StatusBadRequest, invalidRequest
		f.message = "The request is malformed or breaks the schema."
	} else {
		f.status, f.name = http.StatusUnprocessableEntity, unprocessable
		f.message = "The request is well formed but cannot be carried out."
	}
	return f
}

// is400 tells the issues of a malformed request from those of a refused one.
func is400(issue string) bool {
	return slices.Contains([]string{"INVALID_PARAMETER_SYNTAX", "INVALID_PARAMETER_VALUE", "INVALID_STRING_MAX_LENGTH",
		"INVALID_ARRAY_MIN_ITEMS", "INVALID_ARRAY_MAX_ITEMS", "MISSING_REQUIRED_PARAMETER", "MALFORMED_REQUEST_JSON",
		"PAYPAL_REQUEST_ID_REQUIRED"}, issue)
}

// refused is what a state machine or a check of the business says.
func refused(name, description string) *failure { return issue(name, "", description) }

// notFound is about an id in the path, or about the member of the body at field.
func notFound(field string) *failure {
	d := detail("INVALID_RESOURCE_ID", field, "No resource has this id.")
	if field != "" && !strings.HasPrefix(field, "/") {
		d["location"] = "path"
	}
	return &failure{status: http.StatusNotFound, name: "RESOURCE_NOT_FOUND",
		message: "There is no such resource.", details: []object{d}}
}

func unauthenticated() *failure {
	return &failure{status: http.StatusUnauthorized, name: "AUTHENTICATION_FAILURE",
		message: "The request has no credentials that PayPal accepts."}
}

// badToken is the answer to a token that PayPal does not know (any more).
func badToken() *failure {
	return &failure{status: http.StatusUnauthorized, raw: object{
		"error": "invalid_token", "error_description": "The access token is unknown, expired or revoked."}}
}

func full() *failure {
	return &failure{status: http.StatusServiceUnavailable, name: "SERVICE_UNAVAILABLE",
		message: "The fake holds as many objects as it may. Reset it, or raise its limit on objects."}
}

// duplicateBatch says that the first send of a batch was accepted. PayPal puts
// the link to the original batch into the detail, not among the links.
func duplicateBatch(original object) *failure {
	d := object{"issue": "Batch with given sender_batch_id already exists", "field": "SENDER_BATCH_ID",
		"location": "body", "link": []object{original}}
	return &failure{status: http.StatusBadRequest, name: "USER_BUSINESS_ERROR",
		message: "The batch was sent before.", details: []object{d}}
}

// Refuse words the engine's own decisions. 413, 415 and 424 have no published
// shape at PayPal.
func (d *dialect) Refuse(c *fakeprovider.Call, why fakeprovider.Refusal) fakeprovider.Answer {
	f := &failure{}
	v1 := false
	debugID := ""
	if c.Request != nil {
		debugID = c.Request.ID
		v1 = strings.HasPrefix(c.Request.Path, "/v1/")
	}
	switch why {
	case fakeprovider.InFlightConflict:
		f.status, f.name, f.message = http.StatusConflict, "RESOURCE_CONFLICT", "The resource is being changed."
		f.details = []object{detail("PREVIOUS_REQUEST_IN_PROGRESS", "", "A request with this PayPal-Request-Id is still running.")}
	case fakeprovider.Mismatch:
		if v1 {
			f.status, f.name, f.message = http.StatusBadRequest, "DUPLICATE_REQUEST_ID", "This PayPal-Request-Id was used with another body."
			f.details = []object{detail("DUPLICATE_REQUEST_ID", "", "This PayPal-Request-Id was used with another body.")}
			break
		}
		f = refused("PAYPAL_REQUEST_ID_PREVIOUSLY_USED", "This PayPal-Request-Id was used with another body.")
	case fakeprovider.RateLimited, fakeprovider.LockTimedOut:
		f.status, f.name, f.message = http.StatusTooManyRequests, "RATE_LIMIT_REACHED", "Too many requests."
	case fakeprovider.NotAuthenticated:
		f = unauthenticated()
	case fakeprovider.Internal:
		f.status, f.name, f.message = http.StatusInternalServerError, "INTERNAL_SERVER_ERROR", "An internal error occurred."
	case fakeprovider.Unavailable:
		f.status, f.name, f.message = http.StatusServiceUnavailable, "SERVICE_UNAVAILABLE", "The service is not available."
	case fakeprovider.FailedDependency:
		f.status, f.name, f.message = http.StatusFailedDependency, "FAILED_DEPENDENCY", "Something that the request needs failed."
	case fakeprovider.TooLarge:
		f.status, f.name, f.message = http.StatusRequestEntityTooLarge, "REQUEST_ENTITY_TOO_LARGE", "The request's body is too large."
	case fakeprovider.UnreadableEncoding:
		f.status, f.name, f.message = http.StatusUnsupportedMediaType, "UNSUPPORTED_MEDIA_TYPE", "Send the body without a Content-Encoding."
	case fakeprovider.KeyMissing:
		f = issue("MISSING_REQUIRED_PARAMETER", "PayPal-Request-Id", "The fake is strict: send a PayPal-Request-Id with every call that takes one.")
	case fakeprovider.MemoryFull:
		f = full()
		f.message = "The fake holds as many keys as it may. Reset it, or raise its limit on keys."
	default:
		f.status, f.name, f.message = http.StatusInternalServerError, "INTERNAL_SERVER_ERROR", "The fake has no answer for "+string(why)+"."
	}
	return f.answer(debugID)
}

// mocked gives the answer that the header PayPal-Mock-Response asks for, as the
// sandbox does. A code that is a status of what the operation makes is left to
// the operation.
func (x *exec) mocked() *failure {
	if x.mock == "" || slices.Contains(x.route.outcomes, x.mock) {
		return nil
	}
	f := refused(x.mock, "The header PayPal-Mock-Response asked for this.")
	switch x.mock {
	case "INTERNAL_SERVER_ERROR", "INTERNAL_SERVICE_ERROR":
		f.status = http.StatusInternalServerError
	case "SERVICE_UNAVAILABLE":
		f.status = http.StatusServiceUnavailable
	case "RATE_LIMIT_REACHED":
		f.status = http.StatusTooManyRequests
	case "NOT_AUTHORIZED", "PERMISSION_DENIED":
		f.status, f.name = http.StatusForbidden, "NOT_AUTHORIZED"
	case "RESOURCE_NOT_FOUND", "INVALID_RESOURCE_ID":
		f.status, f.name = http.StatusNotFound, "RESOURCE_NOT_FOUND"
	case "RESOURCE_CONFLICT", "PREVIOUS_REQUEST_IN_PROGRESS":
		f.status, f.name = http.StatusConflict, "RESOURCE_CONFLICT"
	}
	if f.status >= http.StatusInternalServerError || f.status == http.StatusTooManyRequests {
		f.name, f.details = x.mock, nil
	}
	return f
}
