# The words that people and CI use. `make` alone builds.

PREFIX ?= /usr/local
CARGO  ?= cargo
TARGET  = $(or $(CARGO_TARGET_DIR),target)
# What trials write down of what they did.
FIGURES = $(abspath $(TARGET))/figures
# Much of a story is waiting, for a program or a deadline.
SIDE_BY_SIDE = $$(($$(getconf _NPROCESSORS_ONLN) * 2))
# What is installed, side by side: each finds the others beside itself.
PROGRAMS = teamd teamctl teamd-pane teamd-acp teamd-mcp teamd-top

all: build

# The programs, as they are installed: with the C library in them, where there is one to be linked so. Each starts sooner then,
# and a join takes a quarter less memory. `make STATIC=` leaves that to cargo.
STATIC ?= $(if $(wildcard $(shell $(CC) -print-file-name=libc.a)),-C target-feature=+crt-static)
build:
	for program in $(PROGRAMS); do \
	    $(CARGO) rustc --release --locked -p teamd-agents --bin $$program -- $(STATIC) || exit; \
	done

# Format, lints, documentation, licences: warnings are errors.
check:
	$(CARGO) fmt --all --check
	$(CARGO) fmt --manifest-path fuzz/Cargo.toml --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --locked --document-private-items
	scripts/need cargo-deny
	$(CARGO) fetch --locked --quiet
	$(CARGO) deny --offline check licenses bans sources

# Every test: with the real tmux, real foreign writers, the trials of the promises at their usual size, and every parser
# under libFuzzer for some seconds; brings what it needs. What the trials did is written below target/figures.
test:
	scripts/need tmux node python3
	scripts/need c++
	scripts/need strace faketime || echo "Some trials are skipped without these."
	cd tests/compat/writers && npm ci --silent --no-audit --no-fund
	$(MAKE) --no-print-directory $(TARGET)/python/whole
	rm -rf $(FIGURES)
	$(CARGO) build --workspace --bins --locked
	FIGURES=$(FIGURES) SEEDS=20000 FOREIGN=needed RUST_TEST_THREADS=$(SIDE_BY_SIDE) \
	    $(CARGO) test --workspace --locked --no-fail-fast
	FIGURES=$(FIGURES) scripts/fuzz 10

# The table of the promises in README.md, with what was tried of each.
promises: test
	FIGURES=$(FIGURES) scripts/promises

# A Python of our own, with the MCP client that is not ours.
$(TARGET)/python/whole: tests/compat/mcp-requirements.txt
	rm -rf $(TARGET)/python
	python3 -m venv $(TARGET)/python
	$(TARGET)/python/bin/pip install --quiet --disable-pip-version-check --require-hashes -r $<
	touch $@

# Real agent programs against a scripted model; opt-in, installs them below target/.
test-agents:
	tests/compat/run-agents

# Claude Code itself as a teammate, three versions of it from npm, against a scripted model and without a network.
# Opt-in: `make test-claude RUNS=3`.
CLAUDE_VERSIONS ?= 2.1.45 2.1.158 latest
RUNS ?= 1
test-claude:
	@for word in npm unshare ip; do \
	    command -v $$word >/dev/null || { echo "test-claude: skipped, since there is no $$word"; exit 0; }; \
	done; \
	set -e; scripts/need tmux; \
	dir=$$(mkdir -p $(TARGET)/compat && cd $(TARGET)/compat && pwd)/claude; \
	tests/compat/claude/install "$$dir" $(CLAUDE_VERSIONS); \
	$(CARGO) build --workspace --bins --locked; \
	$(CARGO) test -p teamd-tests --test claude --locked --no-run; \
	TEAMD_TEST_CLAUDE="$$dir" RUNS=$(RUNS) tests/compat/offline $(CARGO) test --offline --quiet -p teamd-tests --test claude

# The tests of docs/incidents.md, and what became of each.
incidents:
	scripts/need tmux node python3
	scripts/need strace faketime || echo "Some trials are skipped without these."
	cd tests/compat/writers && npm ci --silent --no-audit --no-fund
	$(MAKE) --no-print-directory $(TARGET)/python/whole
	$(CARGO) build --workspace --bins --locked
	FOREIGN=needed scripts/incidents

# A worker, Claude Code and Codex as one team, run from one file; opt-in as the two above, which share what it installs.
test-mixed:
	tests/compat/mixed/run
# Every parser under libFuzzer, SECONDS each; needs a C++ compiler.
SECONDS ?= 10
fuzz:
	scripts/fuzz $(SECONDS)

# The trials of the promises at their large size, for hours; goes on where it was cut off.
STAGES ?=
torture:
	scripts/need tmux node python3
	scripts/need strace faketime || echo "Some trials are skipped without these."
	cd tests/compat/writers && npm ci --silent --no-audit --no-fund
	$(CARGO) build --workspace --bins --locked
	FOREIGN=needed scripts/torture $(STAGES)

# Everything at once for so many minutes, with a schedule of what goes wrong; SEED=n for another.
MIN ?= 10
soak:
	scripts/need tmux node
	scripts/need faketime || echo "Without this no clock jumps."
	cd tests/compat/writers && npm ci --silent --no-audit --no-fund
	$(CARGO) build --workspace --bins --locked
	MIN=$(MIN) $(CARGO) test --locked -p teamd-tests --test faults soak:: -- --nocapture

# docs/ as a book, below target/book: with all that its pages link to, at the same place.
BOOK  = README.md CONTRIBUTING.md CHANGELOG.md LICENSE-APACHE LICENSE-MIT docs examples packaging
PAGES = $(TARGET)/book-source
book:
	scripts/need mdbook
	rm -rf $(PAGES)
	mkdir -p $(PAGES)/src
	cp docs/book.toml $(PAGES)
	cp -R $(BOOK) $(PAGES)/src
	sed -e 's|](\.\./|](|' -e t -e 's|](|](docs/|' docs/SUMMARY.md >$(PAGES)/src/SUMMARY.md
	mdbook build $(PAGES)

# A team of three workers, which stays.
team:
	scripts/need tmux
	$(CARGO) build --bins --locked
	scripts/team

# A team of three workers surveys this repository, live in tmux, and goes.
demo:
	scripts/need tmux
	$(CARGO) build --bins --locked
	scripts/demo

IN_MEMORY = TMPDIR=$${TMPDIR:-$$([ -w /dev/shm ] && echo /dev/shm || echo /tmp)}

# The figures of docs/performance.md, measured here and now; ROWS names some of them.
bench: build
	scripts/need tmux node
	cd tests/compat/writers && npm ci --silent --no-audit --no-fund
	$(CARGO) build --release -p teamd-tests --bins --locked
	$(IN_MEMORY) $(TARGET)/release/bench $(ROWS)
	[ -n "$(ROWS)" ] || $(IN_MEMORY) $(CARGO) bench -q -p teamd-store --bench operations --locked

# Man pages and completions, written by the teamctl that was built.
SHARE = $(TARGET)/release/share
share: build
	rm -rf $(SHARE)
	$(TARGET)/release/teamctl man $(SHARE)/man
	for shell in bash zsh fish; do \
	    $(TARGET)/release/teamctl completions $$shell >$(SHARE)/teamctl.$$shell || exit; \
	done

# Programs, man pages and completions below PREFIX.
BELOW = $(DESTDIR)$(PREFIX)
install: share
	install -d $(BELOW)/bin $(BELOW)/share/man/man1
	install -m 755 $(PROGRAMS:%=$(TARGET)/release/%) $(BELOW)/bin
	install -m 644 $(SHARE)/man/* $(BELOW)/share/man/man1
	install -D -m 644 $(SHARE)/teamctl.bash $(BELOW)/share/bash-completion/completions/teamctl
	install -D -m 644 $(SHARE)/teamctl.zsh $(BELOW)/share/zsh/site-functions/_teamctl
	install -D -m 644 $(SHARE)/teamctl.fish $(BELOW)/share/fish/vendor_completions.d/teamctl.fish

# The Debian package, below target/debian.
deb: share
	scripts/need cargo-deb
	gzip -9n $(SHARE)/man/*
	$(CARGO) deb --package teamd-agents --no-build --output $(TARGET)/debian/teamd-agents.deb

# The same, unpacked into a directory and run from there: nothing is installed.
deb-test: deb
	scripts/need tmux
	packaging/try-deb $(TARGET)/debian/teamd-agents.deb

# A formula for Homebrew with the source that it builds, below target/formula; URL is where the source will lie.
VERSION = $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
SOURCE = teamd-agents-$(VERSION)
URL ?= file://$(abspath $(TARGET))/formula/$(SOURCE).tar.gz
formula:
	mkdir -p $(TARGET)/formula
	git archive --prefix=$(SOURCE)/ --output=$(TARGET)/formula/$(SOURCE).tar.gz HEAD
	sum=$$(sha256sum $(TARGET)/formula/$(SOURCE).tar.gz | cut -d ' ' -f 1); \
	sed -e 's|@URL@|$(URL)|' -e "s|@SHA256@|$$sum|" packaging/teamd-agents.rb >$(TARGET)/formula/teamd-agents.rb

clean:
	$(CARGO) clean

.PHONY: all build book check test promises test-agents test-claude test-mixed incidents fuzz torture soak team demo bench share install deb deb-test formula clean
