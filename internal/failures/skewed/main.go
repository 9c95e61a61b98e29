package main

import (
	"fmt"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed-6b5e302b/samekey/outbound"
	"github.com/seed-6b5e302b/samekey/providers/stripe"
	"github.com/seed-6b5e302b/samekey/recordstore/postgres"
)

var _ = outbound.New
var _ = stripe.New
var _ = postgres.New
var _ = pgxpool.New
var _ = http.Get

func main() { s := time.Now(); time.Sleep(100 * time.Millisecond); fmt.Println(s, time.Since(s)) }
