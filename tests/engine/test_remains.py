"""What is left of a local cluster after the process that started it was killed."""

import io
import subprocess
import sys

import pytest

from headcount.cluster import remains


@pytest.mark.skipif(sys.platform != "linux", reason="processes are read from /proc")
@pytest.mark.parametrize("stubborn", [False, True], ids=["asked", "killed"])
def test_processes_with_files_of_the_folder_end_and_others_do_not(tmp_path, monkeypatch, stubborn):
    folder = tmp_path / "cluster"
    folder.mkdir()
    script = "import signal, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN) if sys.argv[1] == 'True' else 0; "
    script += "print('ready', flush=True); time.sleep(60)"

    def started(log):
        return subprocess.Popen(
            [sys.executable, "-S", "-c", script, str(stubborn)], stdout=subprocess.PIPE, stderr=log, text=True
        )

    with open(folder / "log", "w") as inside, open(tmp_path / "log", "w") as outside:
        ours, another = started(inside), started(outside)
    for process in (ours, another):
        assert process.stdout.readline() == "ready\n"
    assert list(remains.processes_of(str(folder))) == [ours.pid]
    monkeypatch.setattr(remains, "GRACE_SECONDS", 0.2)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
    remains.main(str(folder))
    try:
        assert ours.wait(10) == (-9 if stubborn else -15)
        assert another.poll() is None
    finally:
        for process in (ours, another):
            process.kill()
            process.communicate()
