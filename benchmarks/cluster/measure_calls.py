"""What a call of a Ray actor takes on this machine: run by `measure_inputs.py`.

Three numbers: the wall time of a call and its answer, one after another; the CPU time of the calling process per call
when many are in flight, as during a run, which bounds how many workers one process can serve; and the CPU time of
`ray.wait` per answer that is still to come, which grows with the workers, whether or not something happened.
"""

import json
import logging
import os
import statistics
import subprocess
import sys
import tempfile
import time

WORKERS = 2
CALLS = 300
WAITED = 2000
ANSWER_BYTES = 100_000


def main() -> None:
    try:
        import ray
    except ImportError:
        sys.exit("measuring calls needs Ray: pip install 'headcount[ray]'")
    with tempfile.TemporaryDirectory(prefix="hc-", dir="/tmp") as folder:
        began = time.perf_counter()
        ray.init(
            num_cpus=WORKERS,
            include_dashboard=False,
            log_to_driver=False,
            logging_level=logging.ERROR,
            _temp_dir=folder,
        )
        started = time.perf_counter() - began
        try:
            measured = _measured(ray)
        finally:
            ray.shutdown()
    print(json.dumps({"ray": ray.__version__, "init_seconds": round(started, 2), **measured, **_start_up()}))


def _measured(ray) -> dict:
    class Answerer:
        def answer(self, size: int) -> bytes:
            return os.urandom(size)

    actors = [ray.remote(Answerer).options(num_cpus=1).remote() for _ in range(WORKERS)]
    began = time.perf_counter()
    ray.get([actor.answer.remote(0) for actor in actors])
    actors_started = time.perf_counter() - began
    alone = []
    for _ in range(CALLS):
        began = time.perf_counter()
        ray.get(actors[0].answer.remote(0))
        alone.append(time.perf_counter() - began)

    def in_flight(size: int) -> float:
        """CPU seconds of this process per call: sent, waited for and read as `ray_cluster` does."""
        began, pending = time.process_time(), [actor.answer.remote(size) for actor in actors for _ in range(8)]
        for _ in range(CALLS):
            ready, pending = ray.wait(pending, num_returns=1)
            ray.get(ready[0])
            pending.append(actors[_ % WORKERS].answer.remote(size))
        took = time.process_time() - began
        ray.get(pending)
        return took / CALLS

    class Sleeper:
        def sleep(self) -> None:
            time.sleep(3600)

    sleeper = ray.remote(Sleeper).options(num_cpus=0).remote()
    unanswered = [sleeper.sleep.remote() for _ in range(WAITED)]
    waits = []
    for _ in range(10):
        began = time.process_time()
        ray.wait(unanswered, num_returns=WAITED, timeout=0)
        waits.append(time.process_time() - began)
    ray.kill(sleeper)

    return {
        "wait_cpu_seconds_per_reference": round(statistics.median(waits) / WAITED, 9),
        "actors_seconds": round(actors_started, 2),
        "call_seconds": round(statistics.median(alone), 6),
        "call_least_seconds": round(min(alone), 6),
        "call_cpu_seconds": round(in_flight(0), 6),
        "answer_bytes": ANSWER_BYTES,
        "answer_cpu_seconds": round(in_flight(ANSWER_BYTES), 6),
    }


def _start_up() -> dict:
    """CPU seconds of a fresh process until JAX has its device and headcount is imported."""
    code = "import time, headcount.engine.trainer, jax; jax.devices(); print(time.process_time())"
    environment = os.environ | {"JAX_PLATFORMS": "cpu"}
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True, env=environment)
    return {"import_cpu_seconds": round(float(done.stdout), 2)}


if __name__ == "__main__":
    main()
