# Every command a person types. Each installs what it needs first (scripts/packages.txt) and can
# be run again at any time.

SHELL := /bin/bash
CARGO := cargo
# A rustup installed a minute ago is not yet on the PATH of the shell that installed it.
export PATH := $(PATH):$(HOME)/.cargo/bin

.DEFAULT_GOAL := help
.PHONY: help demo test test-all lint model simulate chaos fuzz mutants guards proof sqlx samples bare-root deploy-check image release-check

help:           ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

demo:           ## read the documents in samples/ on this machine alone, and compare the ends
	@scripts/setup.sh run
	$(CARGO) build --locked
	@scripts/demo.sh

test:           ## nine tests of ten, with a private Postgres and stand-ins for S3, SQS and models
	@scripts/setup.sh test
	@PROFILE=quick SCHEDULES=$${SCHEDULES:-100} IN_MEMORY=yes scripts/with_postgres.sh scripts/run_tests.sh

test-all:       ## every test, as CI runs them: twice the time
	@scripts/setup.sh test
	@IN_MEMORY=yes scripts/with_postgres.sh scripts/run_tests.sh

lint:           ## format, clippy, documentation, .sqlx, dependencies: no warning passes
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --workspace --no-deps --document-private-items --lib
	scripts/sqlx.sh --check
	scripts/fuzz.sh check
	scripts/dependencies.sh

sqlx:           ## renew .sqlx after a change of SQL or schema
	scripts/sqlx.sh

deploy-check:   ## Dockerfile, manifests, templates, alarms and board: what linters and schemas say
	scripts/check_deploy.sh

release-check:  ## what a release needs besides: bases by digest, the advisories of the day
	scripts/pin_images.sh --check
	scripts/dependencies.sh --online

image:          ## build and run the image without Docker, and weigh it; root only
	@scripts/setup.sh proof
	scripts/image.sh

model:          ## every state of claims and messages within bounds; DEPTH="FAULTS ORDERS" for others
	@scripts/setup.sh test
	scripts/model.sh $(DEPTH)

simulate:       ## the worker under random faults for MINUTES=60, going on where the last run stopped
	@scripts/setup.sh test
	scripts/simulate.sh $(MINUTES)

chaos:          ## workers and services killed, frozen, silenced, wiped, filled for MINUTES=3; SEED=…
	@scripts/setup.sh proof
	scripts/chaos.sh $(or $(MINUTES),3) $(SEED)

fuzz:           ## inputs that nobody wrote, MINUTES=10 for each target, or for TARGETS="pdf tiff"
	@scripts/setup.sh test
	scripts/fuzz.sh $(or $(MINUTES),10) $(TARGETS)

mutants:        ## what no test notices in the pure parts, file by file; hours, or PARTS="message_body"
	@scripts/setup.sh test
	scripts/mutants.sh $(PARTS)

guards:         ## each guard of tests/guards taken out, and the tests that have to fall then; GUARDS="name"
	@scripts/setup.sh test
	scripts/guards.sh $(GUARDS)

# Not part of `make test`: they need a clock, an idle machine or a long time.
PROOFS := scripts/slow_mix.sh scripts/orchestration.sh scripts/reading_steps.sh \
	scripts/reading_memory.sh scripts/repeat_pages.sh scripts/capacity.sh scripts/restore.sh scripts/kill_loop.sh \
	scripts/killed_without_database.sh scripts/bucket_lfs.sh scripts/submit_many.sh \
	scripts/throttle.sh scripts/random_vision.sh scripts/structure_peers.sh scripts/olmocr_peer.sh scripts/redis_peers.sh scripts/blobforge_peer.sh \
	scripts/contracts.sh scripts/killed_calls.sh scripts/batch_kills.sh \
	scripts/maintenance_scale.sh scripts/rolling_deploy.sh scripts/load_scans.sh scripts/outage.sh \
	scripts/surroundings.sh \
	scripts/attacks.sh scripts/api_contract.sh scripts/searchable_pdf.sh scripts/image.sh scripts/bare_root.sh

proof:          ## long runs and figures; an idle machine, root for the last two; BLOBFORGE_SOURCE=FOLDER
	@: $${BLOBFORGE_SOURCE:?a checkout of BlobForge, see scripts/blobforge_peer.sh}
	@scripts/setup.sh proof
	scripts/model.sh 2 1
	scripts/guards.sh
	scripts/chaos.sh 3
	@set -e; for proof in $(PROOFS); do echo "== $$proof"; $$proof; done

samples:        ## draw samples/ again (needs a Python environment, see scripts/make_samples.py)
	python3 scripts/make_samples.py samples

bare-root:      ## the two commands of the README in a bare Debian; root only
	scripts/bare_root.sh
