// Package simulation plays random schedules of workers, crashes, faults, late
// deliveries, clock jumps, webhooks and people in virtual time, over the real
// adapters, reconciler and ledger, and holds every step against what the fakes
// know to have happened. It holds tests only.
package simulation
