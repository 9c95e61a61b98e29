package httpadapter

func parseJSON(b []byte) (any, error) { return nil, nil }
func isParameter(s string) bool       { return len(s) > 2 && s[0] == '{' && s[len(s)-1] == '}' }
