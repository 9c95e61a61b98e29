package pagerduty

import (
	"net/http"

	rs "github.com/seed-6b5e302b/samekey/replaysemantics"
)

// Operations returns the table: one row for each operation, with its sources. Names
// are never changed or reused, since they are part of every key.
func Operations() []rs.Operation { return []rs.Operation{alertTrigger} }

const (
	events   = "https://developer.pagerduty.com/docs/events-api-v2/"
	restAPI  = "https://developer.pagerduty.com/api-reference/9d0b4b12e36f9-list-incidents"
	readDate = "2026-11-30"
)

var alertTrigger = rs.Operation{
	Name: "alert.trigger", Class: rs.Notification, Method: http.MethodPost, Path: "/v2/enqueue",
	Keys: []rs.Place{rs.JSON("/dedup_key")}, KeyMax: 255, Resend: rs.Latest,
	Lookup: "the incident with an alert of this dedup_key, read over the REST API where there is a token for it",
	Facts: []rs.Fact{
		{States: "the body's dedup_key, at most 255 characters", URL: events + "trigger-events/", Read: readDate, Grade: rs.Documented},
		{States: "a trigger is merged into the open alert with its dedup_key and routing_key; once that is resolved it opens another", URL: events + "trigger-events/", Read: readDate, Grade: rs.Documented},
		{States: "202 accepts the event for later work; 400 is malformed; 429 and 5xx are to be sent again", URL: events + "overview/", Read: readDate, Grade: rs.Documented},
		{States: "incidents are listed by incident_key, which finds those whose alerts have it", URL: restAPI, Read: readDate, Grade: rs.Documented},
		{States: "what an unknown routing_key gets", URL: events + "overview/", Read: readDate},
	},
}
