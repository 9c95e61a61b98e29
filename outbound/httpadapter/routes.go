package httpadapter

type routes struct{}
