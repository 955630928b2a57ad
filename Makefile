# One line per target; the work is in `xtask`. `make up` and `make test` are all that a fresh clone needs.

# Outside the checkout, so that every clone reuses what is built.
export CARGO_TARGET_DIR ?= $(or $(SITES_CACHE_DIR),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/sites)/target

# Cargo compares times only: it would take what another clone built here last for the build of this one.
$(shell mkdir -p $(CARGO_TARGET_DIR); cd $(CARGO_TARGET_DIR) || exit; [ "$$(cat checkout 2>/dev/null)" = "$(CURDIR)" ] || \
	{ find $(CURDIR) -name '*.rs' -not -path '*/target/*' -exec touch {} +; echo "$(CURDIR)" > checkout; })

# A failed test's message and place say enough, and are the last lines of a log.
export RUST_BACKTRACE := 0

# Tests that load the whole machine: alone and one after the other, so that they do not starve the rest.
HEAVY := fault_matrix b25_a_cold hub_runs_five_hundred life_05_life_08_two_hundred
# Tests whose pods really run: they mostly wait, on one node for all.
NODE := real_client real_node real_site

LOADTEST := cargo build --release --locked --package sites --package sites-loadtest && $(CARGO_TARGET_DIR)/release/sites-loadtest

.PHONY: up down test soak lint generated screenshots cluster load-smoke load-hub load-runtime load clean

up: ## A cluster, an operator and a running sample Site
	cargo xtask up

down: ## End what `up` started
	cargo xtask down

test: lint ## Lint, then every test on a real control plane
	cargo xtask setup && cargo xtask cluster build
	cargo test --workspace --locked -- --test-threads 6 $(foreach test,$(HEAVY) $(NODE),--skip $(test))
	cargo test --workspace --locked --test it -- --test-threads 3 $(NODE)
	cargo test --workspace --locked --test it -- --test-threads 1 $(HEAVY)

soak: ## The fault matrix for SOAK_MINUTES (30) with a seed of its own; SITES_MATRIX_SEED repeats one
	cargo xtask setup && cargo xtask cluster build && SITES_MATRIX_SEED=$(or $(SITES_MATRIX_SEED),0) \
		SITES_MATRIX_SECONDS=$$(( $(or $(SOAK_MINUTES),30) * 60 )) \
		cargo test --workspace --locked --test it fault_matrix_everything -- --nocapture

lint: ## Format, lints, documentation, generated files, dependencies
	cargo xtask lint

generated: ## Write the files that the product's binary generates
	cargo xtask generated

screenshots: ## Pictures of the pages, taken by the browser's test on a real node
	cargo xtask setup && cargo xtask cluster build
	SITES_SCREENSHOTS=$(CURDIR)/docs/screenshots cargo test --locked --test it real_site_browser

cluster: ## Only the local cluster
	cargo xtask cluster up

load-smoke: ## The operator against bare clients with 1,000 Sites; about twelve minutes, wants a quiet machine
	$(LOADTEST) run

load-hub: ## Pages of the Hub's list of 10,000 Sites against the same bytes served statically; about five minutes
	$(LOADTEST) run --only hub --sites 10000

load-runtime: ## A site's pod on a real node: memory, files and uploads against a bare nginx; about six minutes
	$(LOADTEST) run --only runtime

load: ## The same with 10,000 Sites: hours
	$(LOADTEST) run --size full

clean: ## End what runs, remove cluster binaries of older versions, say what the caches hold
	cargo xtask down && cargo xtask cluster clean
