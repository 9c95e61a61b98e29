package keyderive_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/seed-6b5e302b/samekey/keyderive"
)

const v7 = "01997a3c-5e00-7abc-8def-0123456789ab" // a UUIDv7 of day 20355

var input = keyderive.Input{
	Scope: "tenant-7", Provider: "stripe", Account: "acct_1Nv0FG/live",
	Operation: "refund.create", CommandID: v7,
}

func derive(t testing.TB, in keyderive.Input) keyderive.Key {
	t.Helper()
	k, err := keyderive.Derive(in)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// R4, C16: a key is an opaque UUID of 36 characters, which every provider's
// limit holds, and its first 16 bits are the day.
func TestKeyForm(t *testing.T) {
	for _, id := range []string{v7, "ord_" + v7, v7 + "/line-3", "cap_1", "名前", strings.Repeat("x", 255)} {
		in := input
		in.CommandID = id
		k := derive(t, in)
		u, err := uuid.Parse(k.Raw())
		if err != nil || u.Version() != 8 || u.Variant() != uuid.RFC4122 || len(k.Raw()) != 36 || u.String() != k.Raw() {
			t.Errorf("%q: the key is no UUIDv8 in lower case (%v)", id, err)
		}
		want, err := keyderive.Day(id)
		if err != nil {
			t.Fatal(err)
		}
		if bits := int32(u[0])<<8 | int32(u[1]); bits != want || k.Day() != want {
			t.Errorf("%q: day bits %d, Day %d, want %d", id, bits, k.Day(), want)
		}
	}
}

// R4: whoever reads the key learns nothing that the caller put in.
func TestKeyHoldsNoInput(t *testing.T) {
	in := keyderive.Input{
		Scope: "alice@example.com", Provider: "stripe", Account: "acct_cafe/live",
		Operation: "refund.create", CommandID: "4915112345678",
	}
	k := derive(t, in)
	for _, shown := range []string{k.Raw(), k.Mark(), k.String()} {
		for _, s := range []string{in.Scope, in.CommandID, in.Provider, in.Account, in.Operation, "cafe"} {
			flat := strings.ReplaceAll(shown, "-", "")
			if strings.Contains(flat, s) || strings.Contains(flat, hex.EncodeToString([]byte(s))) {
				t.Errorf("%q shows %q", shown, s)
			}
		}
	}
}

// R3, R5, R19, R32: each field alone makes another key, and so does the secret;
// the same fields make the same key.
func TestEveryFieldCounts(t *testing.T) {
	keys := map[keyderive.Key]string{derive(t, input): "the input"}
	add := func(name string, k keyderive.Key) {
		if other, taken := keys[k]; taken {
			t.Errorf("%s: same key as %s", name, other)
		}
		keys[k] = name
	}
	for name, change := range map[string]func(*keyderive.Input){
		"scope":     func(in *keyderive.Input) { in.Scope = "tenant-8" },
		"no scope":  func(in *keyderive.Input) { in.Scope = "" },
		"provider":  func(in *keyderive.Input) { in.Provider = "stripe2" },
		"account":   func(in *keyderive.Input) { in.Account = "acct_2/live" },
		"mode":      func(in *keyderive.Input) { in.Account = "acct_1Nv0FG/test" },
		"operation": func(in *keyderive.Input) { in.Operation = "refund.cancel" },
		"command":   func(in *keyderive.Input) { in.CommandID = "cap_1" },
		"case":      func(in *keyderive.Input) { in.CommandID = strings.ToUpper(v7) },
		"step":      func(in *keyderive.Input) { in.CommandID += "/a" },
		"step 2":    func(in *keyderive.Input) { in.CommandID += "/b" },
	} {
		in := input
		change(&in)
		add(name, derive(t, in))
	}
	for _, first := range []byte{1, 2} {
		s, err := keyderive.NewSecret(bytes.Repeat([]byte{first}, 32))
		if err != nil {
			t.Fatal(err)
		}
		k, err := s.Derive(input)
		if err != nil {
			t.Fatal(err)
		}
		add("secret", k)
	}
	if first, again := derive(t, input), derive(t, input); first != again {
		t.Error("the same input gave two keys")
	}
}

// A row of the ledger holds the hash of its scope only, and makes its key again.
func TestRederive(t *testing.T) {
	for _, s := range []keyderive.Secret{{}, secretOf(t, strings.Repeat("ab", 32))} {
		want, err := s.Derive(input)
		if err != nil {
			t.Fatal(err)
		}
		row := input
		row.Scope = "not looked at"
		got, err := s.Rederive(row, keyderive.ScopeHash(input.Scope))
		if err != nil || got != want {
			t.Errorf("Rederive = %v, %v; want %v", got, err, want)
		}
		row.CommandID = ""
		if _, err := s.Rederive(row, keyderive.ScopeHash(input.Scope)); !errors.Is(err, keyderive.ErrInvalid) {
			t.Errorf("a row without a command: %v, want ErrInvalid", err)
		}
	}
}

func TestParse(t *testing.T) {
	k := derive(t, input)
	got, err := keyderive.Parse(k.Raw())
	if err != nil || got != k || got.Hash() != k.Hash() || got.Day() != k.Day() {
		t.Errorf("Parse(Raw) = %v, %v; want %v", got, err, k)
	}
	for name, raw := range map[string]string{
		"empty":         "",
		"upper case":    strings.ToUpper(k.Raw()),
		"no hyphens":    strings.ReplaceAll(k.Raw(), "-", ""),
		"braces":        "{" + k.Raw() + "}",
		"urn":           "urn:uuid:" + k.Raw(),
		"UUIDv4":        "9b2f4c1e-7d3a-4e5f-8a6b-0c1d2e3f4a5b",
		"other variant": "4f8398e6-9b04-85fa-c0d4-8efdb31b4e2a",
		"an SDK's own":  "2374923749237492374_aB3-xY",
		"too long":      k.Raw() + "0",
	} {
		if got, err := keyderive.Parse(raw); !errors.Is(err, keyderive.ErrInvalid) || !got.IsZero() {
			t.Errorf("%s: Parse = %v, %v; want no key and ErrInvalid", name, got, err)
		} else if raw != "" && strings.Contains(err.Error(), raw) {
			t.Errorf("%s: the error shows what may be a key: %v", name, err)
		}
	}
}

func TestMark(t *testing.T) {
	k := derive(t, input)
	if m := k.Mark(); len(m) != 36 || m != strings.ToLower(m) || m != keyderive.MarkOf(k.Day(), k.Hash()) {
		t.Errorf("Mark = %q, want MarkOf(Day, Hash): 36 hex digits in lower case", m)
	}
	day, hash, err := keyderive.ParseMark(k.Mark())
	if err != nil || day != k.Day() || hash != k.Hash() {
		t.Errorf("ParseMark = %d, %x, %v; want %d, %x", day, hash, err, k.Day(), k.Hash())
	}
	last := keyderive.MarkOf(math.MaxUint16, hash)
	if day, _, err := keyderive.ParseMark(last); err != nil || day != math.MaxUint16 {
		t.Errorf("ParseMark of the last day = %d, %v", day, err)
	}
	for _, bad := range []string{"", "4f83", strings.ToUpper(k.Mark()), k.Mark() + "00", k.Raw(), strings.Repeat("z", 36)} {
		if _, _, err := keyderive.ParseMark(bad); !errors.Is(err, keyderive.ErrInvalid) {
			t.Errorf("ParseMark(%q): %v, want ErrInvalid", bad, err)
		}
	}
}

func TestZeroKey(t *testing.T) {
	var k keyderive.Key
	if !k.IsZero() || k.Raw() != "" || k.Day() != 0 || k.Mark() != "" || k.String() != "key:none" {
		t.Errorf("the zero Key: Raw %q, Day %d, Mark %q, String %q", k.Raw(), k.Day(), k.Mark(), k)
	}
	if derive(t, input).IsZero() {
		t.Error("a derived key is zero")
	}
}

func TestBadInput(t *testing.T) {
	long := strings.Repeat("x", 256)
	for name, c := range map[string]struct {
		change func(*keyderive.Input)
		says   string
	}{
		"no provider":        {func(in *keyderive.Input) { in.Provider = "" }, "Input.Provider needs"},
		"blank provider":     {func(in *keyderive.Input) { in.Provider = " \t" }, "Input.Provider needs"},
		"long provider":      {func(in *keyderive.Input) { in.Provider = long }, "1 to 255 bytes"},
		"no operation":       {func(in *keyderive.Input) { in.Operation = "" }, "Input.Operation needs"},
		"control character":  {func(in *keyderive.Input) { in.Operation = "refund\ncreate" }, "without control characters"},
		"no account":         {func(in *keyderive.Input) { in.Account = "" }, "Input.Account needs"},
		"account, no UTF-8":  {func(in *keyderive.Input) { in.Account = "\xff/live" }, "UTF-8"},
		"account, no mode":   {func(in *keyderive.Input) { in.Account = "acct_1" }, "as acct_1Nv0FG/live"},
		"account, no id":     {func(in *keyderive.Input) { in.Account = "/live" }, "as acct_1Nv0FG/live"},
		"account, mode gone": {func(in *keyderive.Input) { in.Account = "acct_1/" }, "as acct_1Nv0FG/live"},
		"no command":         {func(in *keyderive.Input) { in.CommandID = "" }, "store one with your own row"},
		"blank command":      {func(in *keyderive.Input) { in.CommandID = " \u00a0" }, "store one with your own row"},
		"long command":       {func(in *keyderive.Input) { in.CommandID = long }, "at most 255 bytes, its step included, this one has 256"},
		"long with its step": {func(in *keyderive.Input) { in.CommandID = long[:250] + "/steps" }, "this one has 256"},
		"command, control":   {func(in *keyderive.Input) { in.CommandID = "a\x00b" }, "without control characters"},
		"command, no UTF-8":  {func(in *keyderive.Input) { in.CommandID = "a\xc3" }, "UTF-8"},
		"step of a step":     {func(in *keyderive.Input) { in.CommandID = "a/b/c" }, "a step has no steps"},
		"step without ID":    {func(in *keyderive.Input) { in.CommandID = "/b" }, "may not be empty"},
		"step, blank ID":     {func(in *keyderive.Input) { in.CommandID = " /b" }, "may not be empty or blank"},
		"no step":            {func(in *keyderive.Input) { in.CommandID = "a/" }, "the step after"},
		"blank step":         {func(in *keyderive.Input) { in.CommandID = "a/ " }, "the step after"},
		"day too late":       {func(in *keyderive.Input) { in.CommandID = "ffffffff-ffff-7abc-8def-0123456789ab" }, "in milliseconds"},
	} {
		in := input
		c.change(&in)
		k, err := keyderive.Derive(in)
		if !errors.Is(err, keyderive.ErrInvalid) || !k.IsZero() {
			t.Errorf("%s: %v, %v; want no key and ErrInvalid", name, k, err)
			continue
		}
		if !strings.Contains(err.Error(), c.says) || strings.ContainsAny(err.Error(), "\n\x00") {
			t.Errorf("%s: %q, want one line with %q", name, err, c.says)
		}
	}
}

// The longest of everything that is allowed still derives.
func TestBounds(t *testing.T) {
	for name, in := range map[string]keyderive.Input{
		"255 bytes everywhere": {Scope: strings.Repeat("s", 4096), Provider: strings.Repeat("p", 255), Account: strings.Repeat("a", 250) + "/live", Operation: strings.Repeat("o", 255), CommandID: strings.Repeat("c", 255)},
		"255 with its step":    {Provider: "p", Account: "a/b", Operation: "o", CommandID: strings.Repeat("c", 250) + "/step"},
		"account is a path":    {Provider: "p", Account: "acct_1/acct_2/live", Operation: "o", CommandID: "c"},
	} {
		if _, err := keyderive.Derive(in); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func BenchmarkDerive(b *testing.B) {
	secret, err := keyderive.NewSecret(bytes.Repeat([]byte{7}, 32))
	if err != nil {
		b.Fatal(err)
	}
	for _, s := range []keyderive.Secret{{}, secret} {
		b.Run(s.String(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.Derive(input); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
