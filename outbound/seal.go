package outbound

// Sealer protects bodies before the ledger sees them. A Tink AEAD is one.
// Implementations are safe for concurrent use.
type Sealer interface {
	Encrypt(plaintext, associatedData []byte) ([]byte, error)
	Decrypt(ciphertext, associatedData []byte) ([]byte, error)
}
