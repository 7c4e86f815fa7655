# Every target installs what it needs by itself: uv from hashes into .tools, everything else from uv.lock into .venv.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# Set PYTHON to choose one; otherwise the newest that fits is taken.
export PYTHON
UV := .tools/bin/uv
SYNC := $(UV) sync --quiet --frozen --compile-bytecode --python .tools/bin/python
RUN := .venv/bin

export UV_PYTHON_DOWNLOADS := never
export UV_PROJECT_ENVIRONMENT := .venv
export PYTHONDONTWRITEBYTECODE :=

# With ARGS=--api-server=real: what it consists of, built where it is not in the cache.
REAL = $(if $(filter --api-server=real real,$(ARGS)),hack/cluster/with etcd kube-apiserver kube-controller-manager --)

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: .venv/.synced ## Take seven runs to filed issues while their agents are killed, on a cluster of processes
	@$(REAL) $(RUN)/triage-local demo $(ARGS)

.PHONY: local
local: .venv/.synced ## Start a local cluster with the operator in it, to play with (Ctrl-C ends it)
	@$(REAL) $(RUN)/triage-local up $(ARGS)

.PHONY: test
test: .venv/.synced-dev ## Run the tests
	@$(RUN)/pytest -n 2 $(ARGS)

.PHONY: contract
contract: .venv/.synced-dev ## Run the tests of the API server emulator, the kubelet and the demo on a real API server
	@hack/contract-suite $(ARGS)

.PHONY: verify
verify: .venv/.synced-dev ## Check formatting, lint, types, layers, generated files, secrets and machine paths
	@hack/verify

.PHONY: generate
generate: .venv/.synced-dev ## Write the generated files anew: CRDs and references
	@$(RUN)/python hack/generate.py

.PHONY: bench
bench: .venv/.synced-bench ## Measure recovery, the cost of fence and journals, and the operator with 1,000 runs
	@PYTHONPATH=tests $(RUN)/python -m benchmarks $(ARGS)

.PHONY: cluster
cluster: ## Make a Kubernetes cluster of three nodes with kind, and build/cluster/kubeconfig
	@hack/cluster/create

.PHONY: cluster-delete
cluster-delete: ## Remove that cluster; what was built for it stays in the cache
	@hack/cluster/delete

.PHONY: e2e
e2e: .venv/.synced-dev ## Lose runs in every way on a kind cluster with the chart installed (half an hour)
	@hack/e2e $(ARGS)

.PHONY: kind-demo
kind-demo: .venv/.synced-dev ## Show on a kind cluster how runs survive a SIGKILL, an OOM kill and a drain
	@hack/kind-demo

.PHONY: images
images: ## Build the images of operator and agent with Docker, and print their sizes
	@hack/images/build

.PHONY: chaos
chaos: .venv/.synced-dev ## Kill agents of every shape everywhere, and hold what became of it against a ledger of effects
	@$(RUN)/python -m chaos $(ARGS)

.PHONY: observe
observe: .venv/.synced-dev ## Let an incident happen, and hold every query of dashboards and alerts against it
	@$(RUN)/python -m observe $(ARGS)

.PHONY: chart
chart: .venv/.synced-dev ## Package the chart into dist/
	@$(RUN)/python -c 'import helm_python; print(helm_python.package("charts/triage-operator", destination="dist"))'

.PHONY: clean
clean: ## Remove everything that these targets made
	rm -rf .venv .tools build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.tools/bin/uv: hack/uv.txt
	@echo "Installing into .tools and .venv; the first time takes a minute ..."
	@hack/bootstrap
	@touch $@

# The demo and the local cluster need no test tools.
.venv/.synced: uv.lock pyproject.toml | $(UV)
	@[ -e .venv/.synced-dev ] && $(MAKE) --no-print-directory .venv/.synced-dev \
		|| $(SYNC) --extra operator --extra agent --extra local
	@touch $@

.venv/.synced-bench: uv.lock pyproject.toml | $(UV)
	@$(SYNC) --all-extras --group dev --group bench
	@touch $@ .venv/.synced-dev .venv/.synced

.venv/.synced-dev: uv.lock pyproject.toml | $(UV)
	@$(SYNC) --all-extras --group dev
	@touch $@ .venv/.synced
