package httpadapter

import (
	"strings"
	"testing"
)

// Credentials leave the machine under TLS only.
func TestBaseURLInClear(t *testing.T) {
	t.Parallel()
	for base, fine := range map[string]bool{
		"https://api.example.com": true, "http://127.0.0.1:8080": true, "http://127.9.9.9": true, "http://[::1]:80": true,
		"http://localhost:1": true, "http://api.localhost": true, "http://provider.test": true, "http://LOCALHOST": true,
		"http://api.example.com": false, "http://10.0.0.1": false, "http://localhost.example.com": false,
		"http://127.0.0.1.example.com": false, "http://[::2]": false, "http://contest": false, "http://0.0.0.0": false,
	} {
		_, err := New(adapter(t, config("https://api.example.com")).Codec(), config(base)).Profile()
		if fine && err != nil || !fine && (err == nil || !strings.Contains(err.Error(), "in clear: use https")) {
			t.Errorf("%s: %v", base, err)
		}
	}
}
