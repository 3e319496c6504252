# What a person and CI call. `make help` lists the targets.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# What stands after `make test PYTEST_ARGUMENTS=...` narrows or widens the run.
PYTEST_ARGUMENTS ?=
# Most of the long tests wait for windows and restarts: three at a time keep two cores busy. 0 runs them one by one.
WORKERS ?= 3
export OPENBLAS_NUM_THREADS := 1

.DEFAULT_GOAL := help

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(VENV)/.installed: tests/requirements.txt pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("tokenscaler needs Python >= 3.11, this is " + sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r tests/requirements.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps -e .
	@touch $@

setup: $(VENV)/.installed ## create .venv with the locked requirements

lock: $(VENV)/.installed ## renew the locked requirements (hashes, no addresses)
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate --no-header --upgrade pyproject.toml --extra forecast -o deploy/requirements.txt
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate --no-header --upgrade pyproject.toml --extra forecast --extra tune --group test --group dev -o tests/requirements.txt

demo: setup ## the real loop on a simulated fleet: no cluster, no Prometheus
	@$(BIN)/tokenscaler demo

test: setup system-programs programs ## every test; says in one line what this machine cannot run
	@$(BIN)/pytest -q -n $(WORKERS) --dist worksteal $(PYTEST_ARGUMENTS)

# Debian's prometheus and chromium, where we may install them; the tests say what is missing where we may not.
system-programs:
	@for program in prometheus chromium; do \
	  command -v $$program >/dev/null && continue; \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo "installing $$program"; \
	    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$program; } >/dev/null \
	      || echo "$$program could not be installed"; \
	  fi; \
	done

programs: ## build and cache the control plane's programs, where Go >= 1.26 is there
	@if $(PYTHON) tests/cluster/harness/binaries.py --check 2>/dev/null; then $(PYTHON) tests/cluster/harness/binaries.py; fi

cluster: setup programs ## a real control plane with fake nodes, up until Ctrl-C; prints its kubeconfig
	@$(BIN)/python -m tests.cluster.harness.control_plane

bench: setup ## the figures of a large fleet, printed as tables
	@$(BIN)/python -m tests.benchmarks

TRACES ?= tests/data/traces
bench-forecast: setup ## the forecaster's accuracy, events and cost; TRACES=DIR for other recorded loads
	@$(BIN)/python -m tests.benchmarks.forecast --traces $(TRACES)

SAMPLE ?= 400
SEED ?= 1
MODULES ?=
mutation: setup ## how many small faults in policies/ the tests find: of SAMPLE=400 (all: an hour); MODULES='policies/history.py' for some
	@$(BIN)/python -m tests.mutation --sample $(SAMPLE) --seed $(SEED) $(foreach module,$(MODULES),'$(module)')

PLANS ?= 1000000
proof-plans: setup ## random plans and lives of nodes that must break no law; PLANS=1000000 (10 min)
	@TOKENSCALER_PLANS=$(PLANS) $(BIN)/pytest -q tests/policies/test_node_capacity_laws.py tests/policies/test_node_move_laws.py $(PYTEST_ARGUMENTS)

EVENTS ?= 200
proof-events: setup system-programs programs ## random loads and lost nodes on a real Karpenter, with two Deployments and with one; EVENTS=200 (40 min)
	@TOKENSCALER_EVENTS=$(EVENTS) $(BIN)/pytest -q -s tests/cluster/test_random_events.py $(PYTEST_ARGUMENTS)

proof-karpenter: setup system-programs programs ## a real Karpenter: down for two minutes, held back by a replica that loads, to spot and back on demand, dollars (20 min)
	@TOKENSCALER_LONG_LOOKS=1 $(BIN)/pytest -q -s tests/cluster/test_karpenter_outage.py tests/cluster/test_held_back_consolidation.py tests/cluster/test_capacity_split.py tests/cluster/test_capacity_buffers.py $(PYTEST_ARGUMENTS)

reference: setup ## write the generated pages anew: the decision record, the knobs
	@$(BIN)/python -m autoscaler.reference

SEEDS ?= 1
PROFILES ?=
TABLE ?=
bench-capacity: setup ## how near a learned capacity comes to the truth in simulation, and what a wrong one costs (7 min for each of SEEDS=1); TABLE=learning or wrong, PROFILES=8b
	@$(BIN)/python -m tests.benchmarks.capacity --seeds $(SEEDS) --profiles '$(PROFILES)' $(if $(TABLE),--only $(TABLE))

ONLY ?= speed sampling
bench-replay: setup ## the replay's speed and sampling, in simulation; ONLY= for the policy's rows too, which take long; ONLY='azure wave' for some
	@$(BIN)/python -m tests.benchmarks.replay --traces $(TRACES) --only $(ONLY)

lint: setup ## ruff, mypy --strict, import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

.PHONY: help setup lock demo test system-programs programs cluster bench bench-forecast bench-replay bench-capacity mutation proof-plans proof-events proof-karpenter reference lint
