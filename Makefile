# Everything that a contributor runs. `make test` is what CI runs.

GOLANGCI_LINT_VERSION := v2.15.0
GOLANGCI_LINT         := bin/golangci-lint-$(GOLANGCI_LINT_VERSION)
FUZZTIME              ?= 30s
BENCH                 ?= full
DURATION              ?= 30s
STORE                 ?= postgres
SEED                  ?=

.DEFAULT_GOAL := help
.PHONY: help demo test lint bench fuzz chaos sandbox

help: ## Show this list.
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /\1\t/' | expand -t 8

demo: ## Show what samekey does, against two fake providers; needs no server.
	@go run ./cmd/samekey demo

test: ## Test all modules with the race detector, on a PostgreSQL of their own.
	@scripts/test.sh

lint: $(GOLANGCI_LINT) ## Run golangci-lint on all modules.
	@set -e; for mod in $$(find . -name go.mod -not -path '*/node_modules/*' -not -path '*/testdata/*' -not -path './.tmp/*' | sort); do \
		echo "== golangci-lint: $$(dirname $$mod)"; \
		(cd $$(dirname $$mod) && $(CURDIR)/$(GOLANGCI_LINT) run --config $(CURDIR)/.golangci.yaml ./...); \
	done

$(GOLANGCI_LINT):
	@echo "== building golangci-lint $(GOLANGCI_LINT_VERSION), about a minute"
	@GOBIN=$(CURDIR)/bin go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT_VERSION)
	@mv bin/golangci-lint $@

bench: ## Compare with the alternatives, into docs/benchmarks; BENCH=quick prints the ratios in a minute.
	@cd bench && go build -o ../bin/bench . && ../bin/bench $(if $(filter quick,$(BENCH)),-mode quick,-out ../docs/benchmarks)

fuzz: ## Run each fuzz target for FUZZTIME (30s).
	@scripts/fuzz.sh $(FUZZTIME)

chaos: ## Search schedules and known-bad builds, then kill workers for DURATION (30s) on STORE (postgres, sqlite); SEED repeats.
	@set -e; seed='$(SEED)'; seed=$${seed:-$$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}; \
	echo "SEED=$$seed"; \
	go test -c -o bin/simulation.test ./internal/simulation; \
	bin/simulation.test -test.timeout 10m -test.run '^TestSimulation$$' -for 1m -seed $$seed; \
	bin/simulation.test -test.timeout 30m -test.run '^TestVariants$$' -search -seed $$seed; \
	go test -count=1 -timeout 20m -run '^TestBacklogIsDrained$$' ./internal/chaos; \
	go build -o bin/chaos ./internal/chaos/run; \
	bin/chaos -duration $(DURATION) -store $(STORE) -seed $$seed

sandbox: ## Ask the real sandboxes whether the facts hold; needs test credentials, see docs/sandbox.md.
	@cd integration && go build -o ../bin/sandbox ./sandbox && ../bin/sandbox
