"""Builds the programs of a Kubernetes control plane from Go modules and keeps them in a cache outside the tree.

Run as a program it builds what is missing and prints one line per program. Only the standard library is used,
so that the build can start before anything of ours is installed.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

TOOLS_DIRECTORY = Path(__file__).parent.parent / "tools"
MINIMUM_GO = (1, 26)
KUBERNETES_MINOR = "37"
KUBERNETES_VERSION = "v1.37.2"

# Without these the API server calls itself v0.0.0-master, which kubectl cannot parse.
KUBERNETES_VERSION_FLAGS = " ".join(
    f"-X {variable}={value}"
    for variable, value in (
        ("k8s.io/component-base/version.gitVersion", KUBERNETES_VERSION),
        ("k8s.io/component-base/version.gitMajor", "1"),
        ("k8s.io/component-base/version.gitMinor", KUBERNETES_MINOR),
        ("k8s.io/client-go/pkg/version.gitVersion", KUBERNETES_VERSION),
    )
)


@dataclass(frozen=True, slots=True)
class Program:
    """One program: its file name, the tool folder whose go.mod pins it, and its Go package."""

    name: str
    tool: str
    package: str
    link_flags: str = "-s -w"


PROGRAMS = (
    Program("etcd", "etcd", "go.etcd.io/etcd/server/v3"),
    *(
        Program(name, "kubernetes", f"k8s.io/kubernetes/cmd/{name}", f"-s -w {KUBERNETES_VERSION_FLAGS}")
        for name in ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")
    ),
    Program("kwok", "kwok", "sigs.k8s.io/kwok/cmd/kwok"),
    Program("karpenter-kwok", "karpenter", "sigs.k8s.io/karpenter/kwok"),
)


def cache_directory() -> Path:
    """Where built programs are kept: TOKENSCALER_CACHE, else the user's cache folder."""
    base = os.environ.get("TOKENSCALER_CACHE")
    if base:
        return Path(base)
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "tokenscaler"


def program_path(program: Program) -> Path:
    """Path of the built program, whether or not it exists yet.

    The folder's name holds a hash of go.mod, go.sum and the link flags, so a changed pin is a new build.
    """
    digest = hashlib.sha256(program.link_flags.encode())
    for file_name in ("go.mod", "go.sum"):
        digest.update((TOOLS_DIRECTORY / program.tool / file_name).read_bytes())
    return cache_directory() / "bin" / f"{program.tool}-{digest.hexdigest()[:16]}" / program.name


def go_version() -> tuple[int, int] | None:
    """(major, minor) of the Go toolchain on the PATH, or None where there is none."""
    try:
        answer = subprocess.run(["go", "env", "GOVERSION"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    match = re.match(r"go(\d+)\.(\d+)", answer.stdout)
    return (int(match[1]), int(match[2])) if match else None


def missing_programs() -> tuple[Program, ...]:
    """The programs that have not been built for the present pins."""
    return tuple(program for program in PROGRAMS if not program_path(program).exists())


def unavailable_reason() -> str | None:
    """Why the control plane cannot be had on this machine, or None when it can."""
    if not missing_programs():
        return None
    version = go_version()
    if version is None:
        return "Go is not installed (needed: >= 1.26)"
    if version < MINIMUM_GO:
        return f"Go {version[0]}.{version[1]} is too old (needed: >= 1.26)"
    return None


def build(program: Program) -> Path:
    """Builds one program unless it is there already; returns its path. Raises CalledProcessError."""
    path = program_path(program)
    if path.exists():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(f".{os.getpid()}")
    subprocess.run(
        ["go", "build", "-trimpath", f"-ldflags={program.link_flags}", "-o", str(unfinished), program.package],
        cwd=TOOLS_DIRECTORY / program.tool,
        env=os.environ | {"CGO_ENABLED": "0", "GOFLAGS": "-mod=mod"},
        check=True,
    )
    # Renamed when whole: an interrupted build must not look like a finished one.
    unfinished.rename(path)
    return path


def module_directory(tool: str, module: str) -> Path:
    """Folder of a module's source in Go's module cache (kwok's stages and Karpenter's CRDs lie there)."""
    answer = subprocess.run(
        ["go", "list", "-m", "-f", "{{.Dir}}", module],
        cwd=TOOLS_DIRECTORY / tool,
        env=os.environ | {"GOFLAGS": "-mod=mod"},
        capture_output=True,
        text=True,
        check=True,
    )
    return Path(answer.stdout.strip())


def main() -> int:
    """Builds everything that is missing, one program after the other (each uses all cores)."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="only say whether it can be had")
    arguments = parser.parse_args()
    reason = unavailable_reason()
    if reason is not None:
        print(f"control plane: not available: {reason}", file=sys.stderr)
        return 1
    if arguments.check:
        return 0
    for program in PROGRAMS:
        started = time.monotonic()
        already_built = program_path(program).exists()
        path = build(program)
        state = "cached" if already_built else f"built in {time.monotonic() - started:.0f} s"
        print(f"{program.name:<24} {state:<16} {path}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
