package keyderive_test

import (
	"errors"
	"testing"

	"github.com/seed-6b5e302b/samekey/keyderive"
)

// FuzzInjective moves the border between every two neighbouring fields, steps
// and modes included: no two different inputs may give one key (R3, R5, C05).
func FuzzInjective(f *testing.F) {
	f.Add("tenant-7", "stripe", "acct_1Nv0FG", "live", "refund.create", v7, "line-3", uint8(1))
	f.Add("", "p", "a/b", "c", "o", "ord_"+v7, "", uint8(3))
	f.Add("a", "aa", "aaa", "aaaa", "aaaaa", "aaaaaa", "aaaaaaa", uint8(2))
	f.Add("\x00\x00\x00\x01", "\x00", "é", "/", "日本", "x\x00", "/", uint8(0))
	secret, err := keyderive.NewSecret([]byte("thirty-two bytes for fuzzing only"))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, scope, provider, account, mode, operation, command, step string, cut uint8) {
		fields := [...]string{scope, provider, account, mode, operation, command, step}
		inputs := map[keyderive.Input]bool{inputOf(fields): true}
		for i := range len(fields) - 1 {
			moved := fields
			joined := fields[i] + fields[i+1]
			at := int(cut) % (len(joined) + 1)
			moved[i], moved[i+1] = joined[:at], joined[at:]
			inputs[inputOf(moved)] = true
			swapped := fields
			swapped[i], swapped[i+1] = fields[i+1], fields[i]
			inputs[inputOf(swapped)] = true
		}
		made := map[keyderive.Key]keyderive.Input{}
		for in := range inputs {
			for _, s := range []keyderive.Secret{{}, secret} {
				k, err := s.Derive(in)
				if err != nil {
					if !errors.Is(err, keyderive.ErrInvalid) {
						t.Fatalf("%+v: %v, want ErrInvalid", in, err)
					}
					continue
				}
				if other, taken := made[k]; taken {
					t.Fatalf("one key for %+v and %+v", in, other)
				}
				made[k] = in
				if back, err := keyderive.Parse(k.Raw()); err != nil || back != k {
					t.Fatalf("%+v: Parse(Raw) = %v, %v", in, back, err)
				}
			}
		}
	})
}

func inputOf(f [7]string) keyderive.Input {
	in := keyderive.Input{Scope: f[0], Provider: f[1], Account: f[2] + "/" + f[3], Operation: f[4], CommandID: f[5]}
	if f[6] != "" {
		in.CommandID += "/" + f[6]
	}
	return in
}

// FuzzDay: any text has a day or an error, and a step changes nothing.
func FuzzDay(f *testing.F) {
	f.Add(v7)
	f.Add("ord_" + v7 + "/a")
	f.Add("ffffffff-ffff-7abc-8def-0123456789ab")
	f.Fuzz(func(t *testing.T, id string) {
		day, err := keyderive.Day(id)
		if err != nil && !errors.Is(err, keyderive.ErrInvalid) || day < 0 || day > 65535 {
			t.Fatalf("Day(%q) = %d, %v", id, day, err)
		}
		stepped, err2 := keyderive.Day(id + "/step")
		if stepped != day || (err == nil) != (err2 == nil) {
			t.Fatalf("Day(%q) = %d, with a step %d", id, day, stepped)
		}
	})
}
