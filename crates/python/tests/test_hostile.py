"""Misuse: a Python exception that says what is wrong; never a panic, an abort or a hang."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

import windfall

ECE = "windfall/Ece471-v0"


@pytest.mark.parametrize(
    "wrong", [float("nan"), 1.5, "up", None, [1], np.array([1]), np.array([0, 1]), np.float32("nan"), object(), 2**70]
)
def test_actions_that_are_none(wrong):
    env = windfall.make(ECE)
    env.reset(seed=1)
    with pytest.raises(TypeError, match="allowed is one whole number from 0 to 4"):
        env.step(wrong)
    env.step(1)


@pytest.mark.parametrize("wrong", [-1, 5, np.int64(77), 2**62])
def test_actions_out_of_range(wrong):
    env = windfall.make(ECE)
    env.reset(seed=1)
    with pytest.raises(ValueError, match="allowed is 0 to 4"):
        env.step(wrong)


def test_numpys_numbers_are_actions():
    env = windfall.make(ECE)
    env.reset(seed=1)
    for action in (np.int64(1), np.uint8(1), np.array(1), True):
        env.step(action)


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        (np.zeros(3, dtype=np.int64), ValueError, "length 3|shape"),
        (np.zeros((4, 1), dtype=np.int64), ValueError, "shape"),
        (np.zeros(4), TypeError, "float64"),
        (np.full(4, np.nan), TypeError, "whole numbers"),
        (np.array([0, 1, 2, 5]), ValueError, r"actions\[3\] is 5"),
        (np.array([0, -1, 2, 3]), ValueError, r"actions\[1\] is -1"),
        (["a"] * 4, TypeError, "whole numbers"),
        (None, ValueError, "shape"),
    ],
)
def test_wrong_actions_of_a_vector_step_nobody(wrong, error, message):
    envs = windfall.make_vec(ECE, 4)
    before, _ = envs.reset(seed=1)
    with pytest.raises(error, match=message):
        envs.step(wrong)
    twin = windfall.make_vec(ECE, 4)
    twin.reset(seed=1)
    actions = np.array([1, 0, 1, 0])
    assert np.array_equal(envs.step(actions)[0], twin.step(actions)[0])


def test_strided_and_small_integers_are_actions():
    envs = windfall.make_vec(ECE, 4)
    envs.reset(seed=1)
    envs.step(np.zeros(8, dtype=np.int64)[::2])
    envs.step(np.zeros(4, dtype=np.int8))
    envs.step([0, 1, 2, 3])


def test_out_of_order():
    env = windfall.make(ECE)
    with pytest.raises(RuntimeError, match="no episode has begun"):
        env.step(0)
    env.reset(seed=1)
    for _ in range(200):
        env.step(0)
    with pytest.raises(RuntimeError, match="the episode is over"):
        env.step(0)
    envs = windfall.make_vec(ECE, 2, autoreset_mode="Disabled")
    with pytest.raises(RuntimeError, match="no episode has begun"):
        envs.step(np.zeros(2, dtype=np.int64))
    with pytest.raises(ValueError, match="never reset"):
        envs.reset(options={"reset_mask": np.array([True, False])})
    envs.reset(seed=1)
    for _ in range(200):
        envs.step(np.zeros(2, dtype=np.int64))
    with pytest.raises(RuntimeError, match="environment 0 is over"):
        envs.step(np.zeros(2, dtype=np.int64))
    with pytest.raises(ValueError, match="reset_mask"):
        envs.reset(options={"reset_mask": np.array([1, 0])})


def test_use_after_close():
    env, envs, multi = windfall.make(ECE), windfall.make_vec(ECE, 2), windfall.parallel_env()
    for closed in (env, envs, multi):
        closed.reset(seed=1)
        closed.close()
        closed.close()
    with pytest.raises(RuntimeError, match="closed; make a new one"):
        env.step(0)
    with pytest.raises(RuntimeError, match="closed; make a new one"):
        env.reset()
    with pytest.raises(RuntimeError, match="closed; make a new one"):
        envs.step(np.zeros(2, dtype=np.int64))
    with pytest.raises(RuntimeError, match="closed; make a new one|no episode"):
        multi.step({})
    with pytest.raises(RuntimeError, match="closed; make a new one"):
        multi.reset()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: windfall.make("windfall/None-v0"), "there is no environment"),
        (lambda: windfall.make(ECE, "tset"), "split"),
        (lambda: windfall.make_vec(ECE, 0), "num_envs is 0"),
        (lambda: windfall.make_vec(ECE, 1, autoreset_mode="Sometimes"), "Sometimes"),
        (lambda: windfall.parallel_env(functions=0), "functions is 0"),
        (lambda: windfall.parallel_env(load=float("nan")), "load is NaN"),
        (lambda: windfall.parallel_env(ticks=0), "ticks is 0"),
        (lambda: windfall.load_policy("nowhere.safetensors"), "nowhere.safetensors"),
        (lambda: windfall.load_policy("windfal"), "known are"),
        (lambda: windfall.Call(0, float("nan"), 100.0), "NaN|nan"),
        (lambda: windfall.Call(0, 1.0, 100.0, now=-1.0), "now is -1"),
        (lambda: windfall.compare(["windfal"], minutes=1), "windfal"),
        (lambda: windfall.compare(["fixed"], loads=[float("nan")], minutes=1), "loads"),
        (lambda: windfall.compare(["fixed"], scenario={"platfrom": {}}), "platfrom"),
        (lambda: windfall.simulate("fixed", trace="nowhere.wftrace"), "nowhere"),
    ],
)
def test_settings_that_are_not_allowed_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_vector_in_two_threads_refuses_the_second():
    envs = windfall.make_vec("windfall/Scaling-v0", 64)
    envs.reset(seed=1)
    problems, steps, actions = [], [0, 0], np.zeros(64, dtype=np.int64)

    def work(place):
        until = time.monotonic() + 1.5
        while time.monotonic() < until:
            try:
                envs.step(actions)
                steps[place] += 1
            except RuntimeError as error:
                problems.append(str(error))

    threads = [threading.Thread(target=work, args=(place,)) for place in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert not any(thread.is_alive() for thread in threads)
    assert sum(steps) > 0
    assert problems and all("in use by another thread" in problem for problem in problems)


def test_one_environment_in_two_threads_keeps_working():
    for name in (ECE, "windfall/Scaling-v0"):
        env = windfall.make(name)
        env.reset(seed=1)
        others = []

        def work(env=env, others=others):
            for _ in range(2000 if env.name == ECE else 200):
                try:
                    if any(env.step(0)[2:4]):
                        env.reset()
                except RuntimeError as error:
                    others.append(str(error))

        threads = [threading.Thread(target=work) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert not any(thread.is_alive() for thread in threads)
        assert all("another thread" in text or "episode" in text for text in others)


LONG_CALLS = {
    "compare": "windfall.compare(['fixed', 'windfall'], loads=[1.0], seeds=range(1, 400))",
    "simulate": "windfall.simulate('windfall', trace={'functions': 400, 'minutes': 6000.0}, load=1.0)",
    "capacity": "windfall.capacity(everybody=True, seeds=range(1, 40))",
    "a Python policy": "windfall.compare([lambda call: (call.reserved_cores, call.reserved_mib)], seeds=range(1, 400))",
}


@pytest.mark.parametrize("name", LONG_CALLS)
def test_ctrl_c_ends_a_long_call(name):
    code = f"""
        import signal, sys, windfall
        # A shell starts what runs in the background deaf to Ctrl-C.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        print("begins", flush=True)
        try:
            {LONG_CALLS[name]}
        except KeyboardInterrupt:
            print("interrupted", flush=True)
            sys.exit(7)
        """
    words = [sys.executable, "-c", textwrap.dedent(code)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "begins\n"
        time.sleep(1.5)
        process.send_signal(signal.SIGINT)
        try:
            out, err = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 7, (out, err)
    assert "interrupted" in out and "panicked" not in err


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_child_goes_on(in_process):
    done = in_process(
        """
        import os, warnings, numpy as np, windfall
        warnings.simplefilter("ignore")
        envs = windfall.make_vec("windfall/Scaling-v0", 8, threads=2)
        env = windfall.make("windfall/Ece471-v0")
        envs.reset(seed=1); env.reset(seed=1)
        envs.step(np.zeros(8, dtype=np.int64))
        child = os.fork()
        row = [envs.step(np.ones(8, dtype=np.int64))[0].sum() for _ in range(20)]
        env.step(1)
        rows = windfall.compare(["fixed"], loads=[0.8], seeds=[1], minutes=1)
        if child == 0:
            os._exit(0 if len(rows) == 1 else 3)
        _, status = os.waitpid(child, 0)
        envs.close()
        print(os.waitstatus_to_exitcode(status))
        """
    )
    assert done.stdout.strip() == "0", done.stderr


def test_a_fork_in_the_middle_of_a_step_is_refused_in_the_child_and_does_not_hang(in_process):
    done = in_process(
        """
        import os, threading, time, warnings, numpy as np, windfall
        warnings.simplefilter("ignore")
        envs = windfall.make_vec("windfall/Scaling-v0", 512, threads=2)
        envs.reset(seed=1)
        actions = np.zeros(512, dtype=np.int64)
        stop = False
        def work():
            while not stop:
                envs.step(actions)
        thread = threading.Thread(target=work)
        thread.start()
        time.sleep(0.3)
        codes = set()
        for _ in range(10):
            child = os.fork()
            if child == 0:
                try:
                    envs.step(actions)
                    os._exit(0)
                except RuntimeError:
                    os._exit(1)
            codes.add(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
            time.sleep(0.01)
        stop = True
        thread.join()
        print(sorted(codes))
        """
    )
    assert done.stdout.strip() in ("[0]", "[1]", "[0, 1]"), done.stderr


def resident() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="memory is read from /proc")
def test_memory_does_not_grow_over_ten_million_steps():
    env, envs = windfall.make(ECE), windfall.make_vec(ECE, 256)
    env.reset(seed=1)
    envs.reset(seed=1)
    actions = np.random.default_rng(1).integers(5, size=(64, 256))

    def some(single, rounds):
        for place in range(single):
            if env.step(place % 5)[3]:
                env.reset()
        for place in range(rounds):
            envs.step(actions[place % 64])

    some(100_000, 1000)
    before = resident()
    # 1,000,000 single steps and 36,000 x 256 = 9,216,000 in the vector.
    some(1_000_000, 36_000)
    assert resident() - before < 4 << 20


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="memory is read from /proc")
def test_memory_does_not_grow_over_environments_and_runs():
    def some():
        for _ in range(30):
            windfall.make("windfall/Scaling-v0").reset(seed=1)
            windfall.make_vec("windfall/Scaling-v0", 4, threads=2).reset(seed=1)
            windfall.simulate(lambda call: None, trace={"functions": 10, "minutes": 5.0, "calls_per_hour": 6000.0})

    some()
    some()
    before = resident()
    some()
    assert resident() - before < 8 << 20
