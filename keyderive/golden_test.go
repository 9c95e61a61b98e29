package keyderive_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/seed-6b5e302b/samekey/keyderive"
)

// goldenSum is the SHA-256 of testdata/keys.json. Neither ever changes: these
// keys stand at providers and these hashes in ledgers, and a derivation that
// gives others executes every open command a second time. The values were
// computed by a second implementation, in another language.
const goldenSum = "238b51c6d4efcc164bc9fa4fc8fbffd4066298b2e154d48f9103f2ee4f51d689"

type golden struct {
	Derivation string
	Keys       []struct {
		Note, Scope, Provider, Account, Operation string
		CommandID                                 string `json:"command_id"`
		SecretHex                                 string `json:"secret_hex"`
		Key, Hash, Mark                           string
		Day                                       int32
	}
	CommandIDs []struct {
		Note  string
		At    time.Time
		Parts []string
		ID    string
	} `json:"command_ids"`
	Events []struct {
		Note, Consumer, ID string
		Version            int
		OccurredAt         time.Time `json:"occurred_at"`
		CommandID          string    `json:"command_id"`
	}
	Secrets []struct {
		SecretHex   string `json:"secret_hex"`
		Fingerprint string
	}
}

func readGolden(t *testing.T) (g golden) {
	t.Helper()
	data, err := os.ReadFile("testdata/keys.json")
	if err != nil {
		t.Fatal(err)
	}
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != goldenSum {
		t.Errorf("testdata/keys.json has SHA-256 %x, want %s: the golden vectors never change; a new derivation gets a new Version and a file of its own", sum, goldenSum)
	}
	if err := json.Unmarshal(data, &g); err != nil {
		t.Fatal(err)
	}
	return g
}

// R3: the key is a pure function of the command, its scope, the account and the
// operation, today and in every later release.
func TestGoldenKeys(t *testing.T) {
	g := readGolden(t)
	if g.Derivation != keyderive.Version {
		t.Fatalf("the vectors are of derivation %q, the package makes %q", g.Derivation, keyderive.Version)
	}
	seen := map[string]string{}
	for _, v := range g.Keys {
		in := keyderive.Input{Scope: v.Scope, Provider: v.Provider, Account: v.Account, Operation: v.Operation, CommandID: v.CommandID}
		k, err := secretOf(t, v.SecretHex).Derive(in)
		if err != nil {
			t.Errorf("%s: %v", v.Note, err)
			continue
		}
		hash := k.Hash()
		if k.Raw() != v.Key || k.Day() != v.Day || hex.EncodeToString(hash[:]) != v.Hash || k.Mark() != v.Mark {
			t.Errorf("%s: key %s, day %d, hash %x, mark %s; want %s, %d, %s, %s",
				v.Note, k.Raw(), k.Day(), hash, k.Mark(), v.Key, v.Day, v.Hash, v.Mark)
		}
		if other, taken := seen[v.Key]; taken {
			t.Errorf("%s: has the key of %q", v.Note, other)
		}
		seen[v.Key] = v.Note
	}
}

// R24, R30: deterministic IDs stay what they are, and no event has the ID of
// another consumer, version or kind of caller.
func TestGoldenCommandIDs(t *testing.T) {
	g := readGolden(t)
	for _, v := range g.CommandIDs {
		if got, err := keyderive.CommandID(v.At, v.Parts...); err != nil || got != v.ID {
			t.Errorf("CommandID, %s: %q, %v; want %q", v.Note, got, err, v.ID)
		}
	}
	for _, v := range g.Events {
		e := keyderive.Event{Consumer: v.Consumer, ID: v.ID, Version: v.Version, OccurredAt: v.OccurredAt}
		if got, err := e.CommandID(); err != nil || got != v.CommandID {
			t.Errorf("Event, %s: %q, %v; want %q", v.Note, got, err, v.CommandID)
		}
	}
}

func TestGoldenSecrets(t *testing.T) {
	for _, v := range readGolden(t).Secrets {
		if got := secretOf(t, v.SecretHex).Fingerprint(); got != v.Fingerprint {
			t.Errorf("fingerprint %q, want %q", got, v.Fingerprint)
		}
	}
}

// secretOf returns the secret with these bytes, none for "".
func secretOf(t *testing.T, hexBytes string) keyderive.Secret {
	t.Helper()
	if hexBytes == "" {
		return keyderive.Secret{}
	}
	b, err := hex.DecodeString(hexBytes)
	if err != nil {
		t.Fatal(err)
	}
	s, err := keyderive.NewSecret(b)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
