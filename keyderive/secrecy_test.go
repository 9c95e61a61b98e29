package keyderive_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"strings"
	"testing"

	"github.com/seed-6b5e302b/samekey/keyderive"
)

const secretText = "correct horse battery staple, 32+"

type holder struct { // exported fields: fmt and encoders ask the methods
	Key    keyderive.Key
	Secret keyderive.Secret
	Keys   []keyderive.Key
	ByName map[string]keyderive.Secret
}

type hider struct { // unexported fields: fmt asks no method
	key    keyderive.Key
	secret keyderive.Secret
	keys   []keyderive.Key
	inner  *hider
	any    any
}

func secrets(t *testing.T) (keyderive.Key, keyderive.Secret) {
	t.Helper()
	s, err := keyderive.NewSecret([]byte(secretText))
	if err != nil {
		t.Fatal(err)
	}
	k, err := s.Derive(input)
	if err != nil {
		t.Fatal(err)
	}
	return k, s
}

// R14: whatever prints, formats or marshals a key or a secret, alone or within
// another value, shows neither.
func TestNothingShowsKeyOrSecret(t *testing.T) {
	k, s := secrets(t)
	values := map[string]any{
		"key": k, "key pointer": &k, "secret": s, "secret pointer": &s,
		"holder": holder{k, s, []keyderive.Key{k}, map[string]keyderive.Secret{"x": s}},
		"hider":  hider{k, s, []keyderive.Key{k}, &hider{key: k, secret: s}, s},
		"&hider": &hider{key: k, secret: s, any: k},
		"map":    map[keyderive.Key]int{k: 1},
		"error":  fmt.Errorf("send %v under %v: %w", k, s, errors.New("refused")),
	}
	for name, v := range values {
		for _, verb := range strings.Fields("%v %+v %#v %s %q %+q %x %X %# x %d %o %b %c %U %e %f %g %t %p %T %z %10.3s %!") {
			shows(t, name+" by "+verb, fmt.Sprintf(verb, v), k)
		}
		shows(t, name+" by Sprint", fmt.Sprint(v), k)
		for how, marshal := range map[string]func(any) ([]byte, error){"json": json.Marshal, "xml": xml.Marshal} {
			out, err := marshal(v)
			if err != nil { // xml knows no maps
				out = []byte(err.Error())
			}
			shows(t, name+" by "+how, string(out), k)
		}
		var out bytes.Buffer
		log.New(&out, "", 0).Println(v)
		for _, h := range []slog.Handler{slog.NewTextHandler(&out, nil), slog.NewJSONHandler(&out, nil)} {
			slog.New(h).Info("sent", "value", v, slog.Group("g", "value", v))
		}
		shows(t, name+" by log and slog", out.String(), k)
	}
}

// shows fails the test if out holds the key or the secret in any usual spelling.
func shows(t *testing.T, how, out string, k keyderive.Key) {
	t.Helper()
	out = strings.ToLower(out)
	plain := strings.NewReplacer("-", "", " ", "").Replace(out)
	flat := strings.ReplaceAll(k.Raw(), "-", "")
	for _, text := range []string{k.Raw(), secretText} {
		b := []byte(text)
		spellings := []string{text, base64.StdEncoding.EncodeToString(b), fmt.Sprintf("%d", b), hex.EncodeToString(b)}
		for _, s := range append(spellings, strings.Trim(fmt.Sprintf("%#v", b), "[]byte{}")) {
			if strings.Contains(out, strings.ToLower(s)) {
				t.Errorf("%s shows it: %q", how, out)
			}
		}
	}
	for _, part := range []string{flat, flat[8:], hex.EncodeToString([]byte(flat))} {
		if strings.Contains(plain, part) {
			t.Errorf("%s shows the key's digits: %q", how, out)
		}
	}
}

// What is shown instead is still of use: it leads to the row, and tells two apart.
func TestWhatIsShown(t *testing.T) {
	k, s := secrets(t)
	hash := k.Hash()
	if want := "key:" + hex.EncodeToString(hash[:4]); fmt.Sprintf("%+v", holder{Key: k}.Key) != want || k.String() != want {
		t.Errorf("a key prints as %v, want %s", k, want)
	}
	if want := "secret:" + s.Fingerprint(); fmt.Sprintf("%#v", s) != want || s.String() != want || len(s.Fingerprint()) != 16 {
		t.Errorf("a secret prints as %v, want %s", s, want)
	}
	if none := (keyderive.Secret{}); none.Fingerprint() != "none" || none.String() != "secret:none" {
		t.Errorf("no secret prints as %v", none)
	}
	text, err := json.Marshal(holder{Key: k, Secret: s})
	if err != nil || !strings.Contains(string(text), k.String()) || !strings.Contains(string(text), s.String()) {
		t.Errorf("JSON is %s, %v", text, err)
	}
	var back holder
	if err := json.Unmarshal(text, &back); err == nil {
		t.Error("a printed key was read back as a key")
	}
}

func TestNewSecret(t *testing.T) {
	for _, b := range [][]byte{nil, {}, []byte("hunter2"), bytes.Repeat([]byte{1}, 31)} {
		s, err := keyderive.NewSecret(b)
		if !errors.Is(err, keyderive.ErrInvalid) || !s.IsZero() || !strings.Contains(err.Error(), "at least 32 random bytes") {
			t.Errorf("%d bytes: %v, %v; want no secret and ErrInvalid", len(b), s, err)
		}
		if len(b) > 0 && strings.Contains(err.Error(), string(b)) {
			t.Errorf("the error shows the bytes: %v", err)
		}
	}
	b := []byte(secretText)
	s, err := keyderive.NewSecret(b)
	if err != nil {
		t.Fatal(err)
	}
	before := s.Fingerprint()
	clear(b)
	if s.Fingerprint() != before || s.IsZero() {
		t.Error("the secret changed with the caller's bytes")
	}
}
