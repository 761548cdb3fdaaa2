"""The command line starts at once, and says what there is."""
import os
import pathlib
import subprocess
import sys

import pytest

import swell
from swell.cli import COMMANDS


def test_help_is_made_of_little():
    """What makes help slow is what it imports: swell's own command modules and light parts of the standard library."""
    program = ("import sys\nbefore = set(sys.modules)\nfrom swell.cli import main\nmain(['--help'])\n"
               "print(*(set(sys.modules) - before), sep=',', file=sys.stderr)")
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    imported = done.stderr.strip().split(",")
    foreign = {name.split(".")[0] for name in imported} - sys.stdlib_module_names - {"swell"}
    assert not foreign
    assert not {"asyncio", "multiprocessing", "http", "xml", "unittest", "sqlite3", "ctypes"} & set(imported)
    assert sum(name.split(".")[0] == "swell" for name in imported) < 40 and len(imported) < 200


def test_help_imports_nothing_heavy():
    program = ("import sys\nfrom swell.cli import main\nmain(['--help'])\nmain(['solve', '--help'])\n"
               "heavy = {'numpy', 'scipy', 'rich', 'matplotlib', 'cupy'} & set(sys.modules)\n"
               "assert not heavy, heavy")
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(cli, command):
    status, out, err = cli(command, "--help")
    assert status == 0 and f"swell {command}" in out and not err


def test_help_keeps_the_lines_of_its_example(cli):
    assert "\n  swell helmholtz cabin.msh --source firewall" in cli("helmholtz", "--help")[1]


def test_every_benchmark_has_a_page_of_its_own(cli):
    from swell.cli.bench import BENCHMARKS, OPTIONS, POSITIONAL
    pages = {name: cli("bench", name, "--help") for name in BENCHMARKS}
    assert len({out for _, out, _ in pages.values()}) == len(BENCHMARKS)
    for name, (status, out, err) in pages.items():
        assert status == 0 and not err and BENCHMARKS[name][0] in " ".join(out.split())
        taken = {o for o in OPTIONS if f"--{o} " in out or f"--{o}]" in out}
        assert taken == set(BENCHMARKS[name][1]) - set(POSITIONAL)


def test_options_that_need_another_one_stand_apart(cli):
    from swell.bench.block_gmres import OF_RANKS
    from swell.cli.bench import ONLY_WITH
    needing = ONLY_WITH["block-gmres", "ranks"]
    assert {option.replace("-", "_") for option in needing} == set(OF_RANKS)
    others, _, apart = cli("bench", "block-gmres", "--help")[1].partition("options:")[2].partition("only with --ranks:")
    for option in needing:
        assert f"--{option} " in f"{apart} " or f"--{option}\n" in apart, option
        assert f"\n  --{option} " not in others and f"\n  --{option}\n" not in others


def test_help_lists_what_is_registered(cli):
    out = cli("solve", "--help")[1]
    for kind in ("method", "precond", "format", "ordering", "scaling"):
        assert all(name in out for name in swell.names(kind))


def test_version(cli):
    assert cli("--version") == (0, f"swell {swell.__version__}\n", "")


@pytest.mark.parametrize("arguments", [[], ["sovle"], ["solve"], ["solve", "A.mtx", "--nonsense"]])
def test_a_wrong_command_line_is_one_line(cli, arguments):
    status, out, err = cli(*arguments)
    assert status == 2 and not out
    assert err.startswith("swell: ") and err.count("\n") == 1


FULL = pathlib.Path("/dev/full")


@pytest.mark.skipif(not FULL.exists(), reason="no /dev/full here")
@pytest.mark.parametrize("arguments", [["--help"], ["solve", "--help"], ["--version"], ["bench", "--help"],
                                       ["solve", "gallery:poisson1d:9", "--method", "cg"],
                                       ["solve", "gallery:poisson1d:9", "--method", "cg", "--json"]])
def test_an_output_that_is_full_is_told(arguments):
    with FULL.open("wb") as full:
        done = subprocess.run([sys.executable, "-m", "swell", *arguments], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert done.stderr.startswith("swell: the output cannot be written: No space left on device")


def test_a_reader_that_has_seen_enough_is_no_error():
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run([sys.executable, "-m", "swell", "--help"], stdout=write, stderr=subprocess.PIPE, text=True)
    os.close(write)
    assert done.returncode == 0 and not done.stderr


def test_an_output_that_is_closed():
    program = "import os, sys\nos.close(1)\nos.execv(sys.executable, [sys.executable, '-m', 'swell', '--version'])"
    done = subprocess.run([sys.executable, "-c", program], stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0 and not done.stderr


def test_unexpected_errors_are_one_line_without_debug(cli, folder, monkeypatch):
    def broken(path, name):
        raise RuntimeError("not\nexpected")
    monkeypatch.setattr("swell.io.read_matrix_with_notes", broken)
    status, out, err = cli("solve", folder / "A.mtx")
    assert status == 2 and not out and err.count("\n") == 1
    assert "RuntimeError: not expected" in err and "--debug" in err
    with pytest.raises(RuntimeError):
        cli("solve", folder / "A.mtx", "--debug")
