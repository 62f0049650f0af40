# Each target first makes .venv if there is none, from a Python 3.11 to 3.14 on PATH (PYTHON=... picks one).
# ARGS is passed on:  make test ARGS='-k cut'   make serve ARGS='--port 9000'
.DEFAULT_GOAL := help
.PHONY: help demo check test docs typescript faults mutants serve bench fuzz attacks rehearsal cluster audit lint format lock
# What these two name belongs to other programs: .venv has all that is needed.
unexport PYTHONHOME PYTHONPATH
CASES := 10000
SEEDS := 0:1000
BIN := .venv/bin
CUDA = $(wildcard gpu_engine/cuda/kernels/*.cu* gpu_engine/cuda/kernels/*/*.cu*)

help: ## what there is
	@sed -n 's/^\([a-z]*\):.*## /  make \1 - /p' Makefile

demo: .venv/.run ## load a real road network, solve it, patch it warm, kill the worker: all over HTTP
	$(BIN)/headrace demo $(ARGS)

serve: .venv/.run ## the service on this machine, with its own Redis, at http://127.0.0.1:8080
	$(BIN)/headrace serve $(ARGS)

check: lint ## the linters, and the tests that need neither Redis nor processes: a minute, before each commit
	$(BIN)/pytest -n auto --dist worksteal -q -m "not service" --ignore tests/property $(ARGS)

test: .venv/.dev ## all tests, by one process more than there are cores: many of them wait
	$(BIN)/headrace warm-up
	$(BIN)/pytest -n $$(($$(getconf _NPROCESSORS_ONLN) + 1)) --dist worksteal $(ARGS)

typescript: .venv/.dev ## build the TypeScript client and test it against a service of its own
	$(BIN)/pytest -q tests/contract/test_typescript.py $(ARGS)

docs: .venv/.dev ## the pages as a site in build/docs, without warnings and without the network
	$(BIN)/sphinx-build --fail-on-warning --keep-going --nitpicky --quiet -c docs/site $(ARGS) . build/docs
	@echo "The site is build/docs/index.html."

bench: .venv/.dev ## the benchmarks, each checking its answers
	$(BIN)/python -m benchmarks $(ARGS)

faults: .venv/.dev ## SEEDS [0:1000] histories with kills, pauses, full disks and torn logs, each checked; half an hour
	$(BIN)/python -m tests.faults --seeds $(SEEDS) $(ARGS)

mutants: .venv/.dev ## puts each listed mistake into a copy of the sources: do the tests notice; half an hour
	$(BIN)/python -m tests.mutants $(ARGS)

fuzz: .venv/.all ## invented and damaged requests and files, and sequences of right ones, CASES of each kind [10000]; finds no 5xx, no hang, nothing wrong
	$(BIN)/python -m tests.fuzz formats --cases $(CASES) $(ARGS)
	$(BIN)/python -m tests.fuzz api --cases $(CASES) $(ARGS)
	$(BIN)/python -m tests.fuzz sequences --cases $(CASES) $(ARGS)

attacks: .venv/.all ## every known attack on a real service, with the probes asked all the while; ten minutes
	$(BIN)/python -m tests.attacks $(ARGS)

rehearsal: .venv/.all ## the processes of deploy/, as its files say, without an engine or a cluster; five minutes
	$(BIN)/headrace warm-up
	$(BIN)/python -m tests.rehearsal $(ARGS)

cluster: .venv/.all ## workers in a Ray cluster of four nodes on this machine, some of them killed; two minutes
	$(BIN)/pytest -q tests/cluster $(ARGS)

audit: .venv/.all ## are there known holes in what is locked (asks a public database)
	$(BIN)/pip-audit --disable-pip --require-hashes -r requirements/all.txt -r requirements/image-gpu12.txt -r requirements/image-gpu13.txt $(ARGS)

lint: .venv/.dev ## ruff, clang-format and mypy --strict
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/python -m scripts.synchronous_client --check
	$(BIN)/clang-format --dry-run --Werror $(CUDA)
	$(BIN)/mypy

format: .venv/.dev ## let ruff and clang-format put the sources in order, and make the synchronous client
	$(BIN)/ruff check --fix
	$(BIN)/ruff format
	$(BIN)/python -m scripts.synchronous_client
	$(BIN)/clang-format -i $(CUDA)

lock: ## choose the versions in requirements/ anew where pyproject.toml asks for it; ARGS=--upgrade: all of them
	scripts/lock.sh $(ARGS)

# Stamps: what requirements/run.txt, dev.txt or all.txt pins is installed. Each holds all of the one before.
.venv/.%: requirements/%.txt pyproject.toml clients/python/pyproject.toml scripts/venv.sh | $(if $(PYTHON),named)
	@scripts/venv.sh $*

.PHONY: named
named: # where PYTHON is given: is it the one of .venv
	@scripts/named_python.sh
