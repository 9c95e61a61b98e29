package keyderive

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"
)

// maxID bounds a command ID, its step included.
const maxID = 255

// NewCommandID returns a fresh command ID (UUIDv7), which sorts by time. Store
// it with your own row before the first call: an ID made inside the call is a
// new intent at every try.
func NewCommandID() string { return uuid.Must(uuid.NewV7()).String() }

// CommandID returns the same ID for the same UTC day and parts, wherever and
// however often it is called. at is a stored time that never changes, as an
// order's creation; only its UTC day counts. The parts tell one intent of that
// day from another: CommandID(order.CreatedAt, "refund", order.ID).
func CommandID(at time.Time, parts ...string) (string, error) {
	day := at.Unix() / secondsPerDay
	if day < 1 || day > math.MaxUint16 {
		return "", fmt.Errorf("%w: CommandID needs a time between 1970-01-02 and 2149-06-06", ErrInvalid)
	}
	if len(parts) == 0 {
		return "", fmt.Errorf("%w: CommandID needs at least one part", ErrInvalid)
	}
	for _, p := range parts {
		if p == "" {
			return "", fmt.Errorf("%w: CommandID needs parts that are not empty", ErrInvalid)
		}
	}
	u := digest("samekey command id", strconv.FormatInt(day, 10), parts...)
	ms := uint64(day) * secondsPerDay * 1000
	binary.BigEndian.PutUint16(u[0:2], uint16(ms>>32))
	binary.BigEndian.PutUint32(u[2:6], uint32(ms))
	u[6] = u[6]&0x0f | 0x70
	return u.String(), nil
}

// Event identifies one effect that one consumer owes to an event.
type Event struct {
	Consumer   string    // Required, as "billing-refunds": two consumers of one event are two effects.
	ID         string    // Required: the event's own id, equal at every delivery.
	Version    int       // The effect's version, raised on purpose only. 0 means 1.
	OccurredAt time.Time // The event's own time, equal at every delivery. Without it the ledger keeps the record for ever.
}

// CommandID returns the same ID for every delivery of e.
func (e Event) CommandID() (string, error) {
	if e.Consumer == "" || e.ID == "" {
		return "", fmt.Errorf("%w: Event needs Consumer and ID", ErrInvalid)
	}
	if e.Version < 0 {
		return "", fmt.Errorf("%w: Event.Version counts from 1", ErrInvalid)
	}
	parts := []string{"samekey event", e.Consumer, e.ID, strconv.Itoa(max(e.Version, 1))}
	if e.OccurredAt.IsZero() {
		u := digest("samekey event without time", "", parts...)
		u[6] = u[6]&0x0f | 0x80
		return u.String(), nil
	}
	return CommandID(e.OccurredAt, parts...)
}

// digest hashes parts into a UUID whose version the caller sets.
func digest(domain, day string, parts ...string) uuid.UUID {
	sum := sha256.Sum256(lengthPrefixed(append([]string{domain, day}, parts...)...))
	u := uuid.UUID(sum[:16])
	u[8] = u[8]&0x3f | 0x80
	return u
}

// Step returns the ID of one of several effects of the same operation under one
// command: Step("ord_1", "seller-7") is "ord_1/seller-7".
func Step(id, name string) (string, error) {
	if name == "" || strings.ContainsRune(name, '/') {
		return "", fmt.Errorf("%w: a step needs a name without a slash", ErrInvalid)
	}
	if strings.ContainsRune(id, '/') {
		return "", fmt.Errorf("%w: a command ID holds no slash, and a step has no steps", ErrInvalid)
	}
	stepped := id + "/" + name
	return stepped, CheckID(stepped)
}

// CheckID returns an error that says what is wrong with a command ID, its step
// included: 1 to 255 bytes of UTF-8, not blank, no control characters.
func CheckID(id string) error {
	switch {
	case strings.TrimSpace(id) == "":
		return fmt.Errorf("%w: a command ID may not be empty or blank", ErrInvalid)
	case len(id) > maxID:
		return fmt.Errorf("%w: a command ID has at most %d bytes, its step included, this one has %d", ErrInvalid, maxID, len(id))
	case !printable(id):
		return fmt.Errorf("%w: a command ID is UTF-8 without control characters", ErrInvalid)
	case strings.Count(id, "/") > 1:
		return fmt.Errorf("%w: a command ID holds no slash, and a step has no steps", ErrInvalid)
	case strings.HasPrefix(id, "/"), strings.HasSuffix(id, "/"):
		return fmt.Errorf("%w: a command ID and its step may not be empty", ErrInvalid)
	}
	return nil
}

func printable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}

const secondsPerDay = 24 * 60 * 60

// Day returns the UTC day that a command ID carries, in days since 1970: that
// of a UUIDv7, with or without a prefix of lower-case letters, digits and one
// underscore, and with or without a step. Every other ID has day 0. A day after
// 2149-06-06 is an error.
func Day(commandID string) (int32, error) {
	id, _, _ := strings.Cut(commandID, "/")
	if i := strings.IndexByte(id, '_'); i > 0 && strings.Trim(id[:i], "abcdefghijklmnopqrstuvwxyz0123456789") == "" {
		id = id[i+1:]
	}
	if len(id) != 36 {
		return 0, nil
	}
	u, err := uuid.Parse(id)
	if err != nil || u.Version() != 7 || u.Variant() != uuid.RFC4122 {
		return 0, nil
	}
	ms := uint64(binary.BigEndian.Uint16(u[0:2]))<<32 | uint64(binary.BigEndian.Uint32(u[2:6]))
	day := ms / (secondsPerDay * 1000)
	if day > math.MaxUint16 {
		return 0, fmt.Errorf("%w: the command ID carries a day after 2149-06-06", ErrInvalid)
	}
	return int32(day), nil
}
