package keyderive

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/google/uuid"
)

const (
	maxID         = 255 // bytes of a command ID, its step included
	maxDay        = math.MaxUint16
	secondsPerDay = 24 * 60 * 60
)

// NewCommandID returns a fresh command ID (UUIDv7), which sorts by time. Store
// it with your own row before the first call: an ID made inside the call is a
// new intent at every try.
func NewCommandID() string { return uuid.Must(uuid.NewV7()).String() }

// CommandID returns the same ID for the same UTC day and parts, wherever and
// however often it is called. at is a stored time that never changes, as an
// order's creation; only its UTC day counts. The parts tell one intent of that
// day from another: CommandID(order.CreatedAt, "refund", order.ID).
func CommandID(at time.Time, parts ...string) (string, error) {
	if len(parts) == 0 || slices.ContainsFunc(parts, blank) {
		return "", fmt.Errorf("%w: CommandID needs at least one part, and none that is blank", ErrInvalid)
	}
	day, ok := dayOf(at)
	if !ok {
		return "", fmt.Errorf("%w: CommandID needs the stored time of the intent, between 1970-01-02 and 2149-06-06", ErrInvalid)
	}
	return dated("samekey command id", day, parts), nil
}

// Event identifies one effect that one consumer owes to an event. Its IDs never
// equal those that CommandID makes.
type Event struct {
	Consumer   string    // Required, as "billing-refunds": two consumers of one event are two effects.
	ID         string    // Required: the event's own id, equal at every delivery.
	Version    int       // The effect's version, raised on purpose only. Defaults to 1.
	OccurredAt time.Time // The event's own time, equal at every delivery; only its UTC day counts. Without it the ledger keeps the record for ever.
}

// CommandID returns the same ID for every delivery of e.
func (e Event) CommandID() (string, error) {
	if blank(e.Consumer) || blank(e.ID) {
		return "", fmt.Errorf("%w: Event needs Consumer and ID, and neither blank", ErrInvalid)
	}
	if e.Version < 0 {
		return "", fmt.Errorf("%w: Event.Version counts from 1", ErrInvalid)
	}
	const domain = "samekey event"
	parts := []string{e.Consumer, e.ID, strconv.Itoa(max(e.Version, 1))}
	if e.OccurredAt.IsZero() {
		u := digest(domain, "", parts)
		u[6] = u[6]&0x0f | 0x80
		return u.String(), nil
	}
	day, ok := dayOf(e.OccurredAt)
	if !ok {
		return "", fmt.Errorf("%w: Event.OccurredAt needs a time between 1970-01-02 and 2149-06-06, or none", ErrInvalid)
	}
	return dated(domain, day, parts), nil
}

// dayOf returns the UTC day of at. Day 0 stands for no day and is none.
func dayOf(at time.Time) (day int64, ok bool) {
	day = at.Unix() / secondsPerDay
	return day, 1 <= day && day <= maxDay
}

// dated returns a UUIDv7 whose time is the start of day and whose other bits
// come from domain, day and parts.
func dated(domain string, day int64, parts []string) string {
	u := digest(domain, strconv.FormatInt(day, 10), parts)
	ms := uint64(day) * secondsPerDay * 1000
	binary.BigEndian.PutUint16(u[0:2], uint16(ms>>32))
	binary.BigEndian.PutUint32(u[2:6], uint32(ms))
	u[6] = u[6]&0x0f | 0x70
	return u.String()
}

// digest hashes its arguments into a UUID whose version the caller sets.
func digest(domain, day string, parts []string) uuid.UUID {
	sum := sha256.Sum256(lengthPrefixed(append([]string{domain, day}, parts...)...))
	u := uuid.UUID(sum[:16])
	u[8] = u[8]&0x3f | 0x80
	return u
}

// Step returns the ID of one of several effects of the same operation under one
// command: Step("ord_1", "seller-7") is "ord_1/seller-7".
func Step(id, name string) (string, error) {
	if blank(name) || strings.Contains(name, "/") {
		return "", fmt.Errorf("%w: a step needs a name, neither blank nor with a slash", ErrInvalid)
	}
	stepped := id + "/" + name
	if err := CheckID(stepped); err != nil {
		return "", err
	}
	return stepped, nil
}

// CheckID returns an error that says what is wrong with a command ID, its step
// included: 1 to 255 bytes of UTF-8, without control characters; the ID and the
// step neither are blank nor begin or end with white space, and the only slash
// stands between them. IDs are compared byte for byte: other letter case, and other
// Unicode normalization, is another ID.
func CheckID(id string) error {
	if err := checkStored(id); err != nil {
		return err
	}
	command, step, _ := strings.Cut(id, "/")
	if padded(command) || padded(step) {
		return fmt.Errorf("%w: a command ID and its step may not begin or end with white space: with and without it they would be two commands; trim it where it is stored", ErrInvalid)
	}
	return nil
}

// padded reports white space, or a mark that shows nothing, around s.
func padded(s string) bool {
	return s != strings.TrimFunc(s, func(r rune) bool { return unicode.IsSpace(r) || r == '\u200b' || r == '\ufeff' })
}

// checkStored is CheckID for an ID that a ledger holds, which may be older than the
// rule about white space.
func checkStored(id string) error {
	command, step, stepped := strings.Cut(id, "/")
	switch {
	case blank(command):
		return fmt.Errorf("%w: a command ID may not be empty or blank; store one with your own row and pass it", ErrInvalid)
	case len(id) > maxID:
		return fmt.Errorf("%w: a command ID has at most %d bytes, its step included, this one has %d", ErrInvalid, maxID, len(id))
	case !printable(id):
		return fmt.Errorf("%w: a command ID is UTF-8 without control characters", ErrInvalid)
	case stepped && blank(step):
		return fmt.Errorf("%w: the step after a command ID's slash may not be empty or blank", ErrInvalid)
	case strings.Contains(step, "/"):
		return fmt.Errorf("%w: a command ID holds no slash, and a step has no steps", ErrInvalid)
	}
	return nil
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }

// Day returns the UTC day that a command ID carries, in days since 1970: that
// of a UUIDv7, with or without a prefix of lower-case letters, digits and one
// underscore, and with or without a step. Every other ID has day 0. A day after
// 2149-06-06 is an error.
func Day(commandID string) (int32, error) {
	id, _, _ := strings.Cut(commandID, "/")
	if prefix, rest, ok := strings.Cut(id, "_"); ok && prefix != "" && strings.Trim(prefix, "abcdefghijklmnopqrstuvwxyz0123456789") == "" {
		id = rest
	}
	if len(id) != 36 {
		return 0, nil
	}
	u, err := uuid.Parse(id)
	if err != nil || u.Version() != 7 || u.Variant() != uuid.RFC4122 {
		return 0, nil // another kind of ID, which carries no day
	}
	ms := uint64(binary.BigEndian.Uint16(u[0:2]))<<32 | uint64(binary.BigEndian.Uint32(u[2:6]))
	day := ms / (secondsPerDay * 1000)
	if day > maxDay {
		return 0, fmt.Errorf("%w: the command ID is a UUIDv7 with a day after 2149-06-06; take its time in milliseconds since 1970", ErrInvalid)
	}
	return int32(day), nil
}
