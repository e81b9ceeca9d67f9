# Assay. "make help" lists the targets; CONTRIBUTING.md explains them.
# Everything that a target needs beyond Go, Node.js, Python and gcc it installs
# itself, in pinned versions, into $(ASSAY_CACHE), outside the repository.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-builtin-rules
.NOTPARALLEL:
.DEFAULT_GOAL := help

export ASSAY_CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/assay

# The developer tools have a module of their own; Go's build cache keeps them.
tool := go tool -modfile=tools/go.mod
modules := . tools scripts/mkgguf

# In CI a result of an earlier run proves nothing.
TESTFLAGS ?= $(if $(CI),-count=1)
# Packages with goroutines of their own.
RACE ?= ./record/... ./pace/... ./engine/... ./llm/... ./load/... ./sim/... ./ask/... ./bench/... ./notify/... ./cmd/...
# Packages whose tests measure: they get the machine to themselves.
ALONE := -e /load$$ -e /bench$$ -e /cmd/assay$$
FUZZTIME ?= 1s
BENCH ?= .
COUNT ?= 1

.PHONY: help
help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 14

.PHONY: build
build: ## build ./assay, static
	CGO_ENABLED=0 go build -trimpath -o assay ./cmd/assay

.PHONY: ci
ci: check build test ## all that must hold before a change lands

.PHONY: check
check: fmt-check vet staticcheck tidy-check arch ## the static checks

.PHONY: fmt
fmt: ## format the Go files
	$(tool) gofumpt -w .

.PHONY: fmt-check
fmt-check:
	@bad=$$($(tool) gofumpt -l .); [[ -z $$bad ]] || { printf 'not formatted (run "make fmt"):\n%s\n' "$$bad"; exit 1; }

.PHONY: vet
vet:
	go vet ./...
	go -C scripts/mkgguf vet ./...

.PHONY: staticcheck
staticcheck:
	$(tool) staticcheck ./...

.PHONY: tidy-check
tidy-check:
	@for m in $(modules); do echo "go -C $$m mod tidy -diff"; go -C $$m mod tidy -diff; done

.PHONY: arch
arch: ## check who imports whom
	go test $(TESTFLAGS) -run '^TestArchitecture$$' .

.PHONY: test
test: engine models python test-unit test-race test-slow test-fuzz test-engine test-models test-python test-postgres ## every test

.PHONY: test-unit
test-unit: ## the default tests
	go test $(TESTFLAGS) $$(go list ./... | grep -v $(ALONE))
	go test $(TESTFLAGS) -p 1 $$(go list ./... | grep $(ALONE))
	go -C scripts/mkgguf test $(TESTFLAGS) ./...

.PHONY: test-race
test-race: ## the concurrent packages under the race detector
	CGO_ENABLED=1 go test $(TESTFLAGS) -race $(RACE)

# Whole packages: the long tests may ask for the variable through a helper.
.PHONY: test-slow
test-slow: ## the packages with long tests, these included
	dirs=$$(grep -rl --include='*_test.go' '"ASSAY_SLOW"' . | xargs dirname | sort -u); \
	ASSAY_SLOW=1 go test -count=1 -p 1 -timeout 20m $$dirs

SOAK ?= 20m
.PHONY: soak
soak: ## one long run at a low rate: memory and goroutines; SOAK=2h for longer
	ASSAY_SOAK=$(SOAK) go test -count=1 -v -timeout 24h -run '^TestSoak$$' ./bench

.PHONY: test-fuzz
test-fuzz: ## every fuzz function for FUZZTIME
	FUZZTIME=$(FUZZTIME) scripts/fuzz.sh

.PHONY: test-engine
test-engine: engine ## against a real llama.cpp engine
	node --test scripts/engine/text.test.mjs
	ASSAY_ENGINE=$$(scripts/engine/install.sh --where) scripts/gated.sh ASSAY_ENGINE

.PHONY: test-models
test-models: engine models ## with small trained models: a chat model on the real engine
	ASSAY_MODELS=$$(scripts/models/install.sh --where) ASSAY_ENGINE=$$(scripts/engine/install.sh --where) scripts/gated.sh ASSAY_MODELS

.PHONY: test-python
test-python: python ## our files in DuckDB, pandas and Polars, our scores beside sacrebleu
	ASSAY_PYTHON=$$(scripts/python/install.sh | tail -n 1) scripts/gated.sh ASSAY_PYTHON

.PHONY: test-postgres
test-postgres: ## the registry of baselines on a real PostgreSQL
	@scripts/postgres/install.sh >/dev/null
	scripts/postgres/run.sh scripts/gated.sh ASSAY_POSTGRES

.PHONY: bench
bench: ## the benchmarks; BENCH selects, COUNT repeats
	go test -run '^$$' -bench '$(BENCH)' -benchmem -count $(COUNT) ./...

PAIRS ?= 10000
SEED ?= 1
.PHONY: scores-oracle
scores-oracle: python ## PAIRS random texts scored by sacrebleu and rouge_score; ten minutes
	ASSAY_PYTHON=$$(scripts/python/install.sh | tail -n 1) ASSAY_PAIRS=$(PAIRS) ASSAY_PAIRS_SEED=$(SEED) \
	go test -count=1 -v -timeout 24h -run '^TestScoresOfRandomTexts$$' ./overlap

.PHONY: bench-scores
bench-scores: python ## our scores beside sacrebleu and rouge_score, as ratios of CPU time
	go run ./scripts/overlap -python "$$(scripts/python/install.sh | tail -n 1)"

.PHONY: bench-client
bench-client: ## the load client against its goals, in about two minutes; quiet machine wanted
	@go build -o $(ASSAY_CACHE)/bench-client ./scripts/bench-client
	@wrk=$$(scripts/bench-client/wrk.sh) || true; $(ASSAY_CACHE)/bench-client -wrk "$$wrk" $(BENCHFLAGS)

.PHONY: error-rates
error-rates: ## measure the error rates of the tests anew; ten minutes
	go run ./scripts/errorrates -o docs/error-rates.md

.PHONY: gate-rates
gate-rates: ## measure the error rates of whole suites anew; fifteen minutes
	go run ./scripts/gaterates -o docs/gate-rates.md

.PHONY: planted-faults
planted-faults: ## plant faults into models anew and count how often checks find them
	go run ./scripts/planted -o docs/planted-faults.md

.PHONY: originals
originals: ## measure published forms beside ours anew; two minutes
	go run ./scripts/originals -o docs/originals.md

.PHONY: lint
lint: ## a stricter linter than CI asks for; built on its first run
	go tool -modfile=tools/golangci-lint/go.mod golangci-lint run

.PHONY: vuln
vuln: ## known vulnerabilities; asks a database on the network
	$(tool) govulncheck ./...

.PHONY: engine
engine: ## install the real engine of the tests
	@scripts/engine/install.sh

.PHONY: models
models: ## install the small trained models of the tests
	@scripts/models/install.sh

.PHONY: python
python: ## install the Python packages of the tests
	@scripts/python/install.sh

.PHONY: clean
clean: ## remove what was built; runs/ and the cache stay
	rm -f assay
